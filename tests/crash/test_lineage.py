"""Histories against the model of `tests.lineage`: commits as a graph with several merge bases,
deletes and re-inserts, rebases, reverts, picks, schemas that part, deleted branches, cleanup.

One universe is one seed. A failure names its seed and the shortest program that still fails:

    python -m tests.lineage 17        plays one universe again

`make test` plays 200 of them, `make crash` 5,000.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from tests.crash.sizes import LINEAGES, note
from tests.lineage.__main__ import try_seed
from tests.lineage.player import template

pytestmark = pytest.mark.crash

FEW = 10
LOT = 95 if LINEAGES < 1000 else 250
LOTS = [range(start, min(start + LOT, LINEAGES)) for start in range(FEW, LINEAGES, LOT)]


def play_all(seeds: range, folder: Path) -> Counter[str]:
    empty = template(folder)
    outcomes: Counter[str] = Counter()
    for seed in seeds:
        outcomes += try_seed(seed, folder, empty)
    merges = sum(n for name, n in outcomes.items() if name.endswith("merged"))
    note(
        "lineage",
        first=seeds.start,
        last=seeds.stop - 1,
        played=len(seeds),
        operations=sum(outcomes.values()),
        merges=merges,
        rebases=sum(n for name, n in outcomes.items() if name.startswith("rebase done")),
        crossed=outcomes["cross merged, merged"],
        cleanups=outcomes["cleanup done"],
    )
    return outcomes


def test_a_few_histories_of_the_model(tmp_path: Path) -> None:
    outcomes = play_all(range(FEW), tmp_path)
    assert outcomes["merge merged"] > 1
    assert outcomes["cleanup done"] > 1


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seeds", LOTS, ids=lambda seeds: f"{seeds.start}-{seeds.stop - 1}")
def test_18_many_histories_of_the_model(tmp_path: Path, seeds: range) -> None:
    play_all(seeds, tmp_path)
