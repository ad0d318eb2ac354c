"""Whatever happened to a graph, a search finds the rows that a plain reading says match."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.crash.sizes import FULL
from tests.support.searchlives import STEMS, Life, distance

from omnigraph.storage import indexplan
from omnigraph.storage.analysis import stems

FAST, SLOW = 4, 40 if FULL else 10
STEPS = 14


@pytest.fixture(autouse=True)
def _small_vectors_are_indexed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexplan, "_EXACT_BYTES", 0)
    monkeypatch.setattr(indexplan, "_EXACT_ROWS", 0)


def test_the_table_of_stems_is_right() -> None:
    for word, stem in STEMS.items():
        assert stems(word) == ([] if stem is None else [stem])
    assert [distance("har", word) for word in ("har", "hair", "harness", "cafe")] == [0, 1, 4, 3]


@pytest.mark.parametrize("seed", range(FAST))
def test_18_11_searches_find_what_matches(seed: int, tmp_path: Path) -> None:
    Life(seed, str(tmp_path / "graph")).play(STEPS)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(FAST, FAST + SLOW))
def test_18_11_searches_find_what_matches_at_length(seed: int, tmp_path: Path) -> None:
    Life(seed, str(tmp_path / "graph")).play(2 * STEPS)
