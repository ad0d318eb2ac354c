"""Ids that are not among others: both ways give the same."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pyarrow as pa
import pytest

from omnigraph.bulk import absence


@pytest.fixture(params=["compared", "joined"])
def _way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(absence, "_MANY", 0 if request.param == "joined" else 10**9)


@pytest.mark.usefixtures("_way")
@pytest.mark.parametrize("seed", range(5))
def test_what_is_left_are_those_that_nobody_has(seed: int) -> None:
    chance = random.Random(seed)
    ids = [f"n{chance.randrange(40)} ä" for _ in range(200)]
    pieces = [[f"n{chance.randrange(40)} ä" for _ in range(10)] for _ in range(4)]
    left = absence.without(pa.array(ids), [pa.array(piece) for piece in pieces])
    assert left.type == pa.string()
    assert set(left.to_pylist()) == set(ids) - {id_ for piece in pieces for id_ in piece}


@pytest.mark.usefixtures("_way")
def test_nothing_is_asked_for_once_nothing_is_left() -> None:
    def others() -> Iterator[pa.Array]:
        yield pa.array(["a", "b", "c"])
        raise AssertionError("asked for more")

    assert len(absence.without(pa.array(["a", "b", "a"]), others())) == 0


@pytest.mark.usefixtures("_way")
def test_without_others_all_are_left() -> None:
    assert absence.without(pa.array(["a", "b"]), []).to_pylist() == ["a", "b"]
    assert sorted(
        absence.without(pa.array(["a", "b"]), [pa.array([], pa.string())]).to_pylist()
    ) == [
        "a",
        "b",
    ]
