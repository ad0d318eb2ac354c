"""Model universes: random programs of operations on a small graph, by two handles and by other
processes that may be killed, against an in-memory model with branches and merges.

One universe is one seed. A failure names its seed and the shortest program that still fails:

    python -m tests.universe 17        plays one universe again

`make test` plays 300 of them, `make crash UNIVERSES=5000` as many as are asked for.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from tests.crash.nursery import Nursery
from tests.crash.sizes import FULL, UNIVERSES, note
from tests.support.shrinker import shrink
from tests.universe.__main__ import try_seed
from tests.universe.programs import LENGTH

pytestmark = pytest.mark.crash

FEW = 6
SHORT = 17
# In lots, so that several workers have something to do.
LOT = 25
LOTS = [range(start, min(start + LOT, UNIVERSES)) for start in range(FEW, UNIVERSES, LOT)]


def play_all(seeds: range, folder: Path, nursery: Nursery) -> Counter[str]:
    outcomes: Counter[str] = Counter()
    for seed in seeds:
        outcomes += try_seed(seed, folder, nursery, length=LENGTH if FULL else SHORT)
    operations = sum(outcomes.values())
    killed = sum(n for name, n in outcomes.items() if name.endswith("killed"))
    note(
        "universes",
        first=seeds.start,
        last=seeds.stop - 1,
        played=len(seeds),
        operations=operations,
        killed=killed,
    )
    return outcomes


# ledger: B01 B02 C01 C14 C17 R14
def test_a_few_universes(nursery: Nursery, tmp_path: Path) -> None:
    outcomes = play_all(range(FEW), tmp_path, nursery)
    assert outcomes["put done"] > 5
    assert outcomes["merge done"] > 1


# ledger: B01 B02 C01 C14 C17 R14
@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seeds", LOTS, ids=lambda seeds: f"{seeds.start}-{seeds.stop - 1}")
def test_many_universes(nursery: Nursery, tmp_path: Path, seeds: range) -> None:
    play_all(seeds, tmp_path, nursery)


def test_shrinking_finds_what_matters() -> None:
    tried: list[list[int]] = []

    def fails(items: list[int]) -> bool:
        tried.append(items)
        return 3 in items and 17 in items

    assert shrink(list(range(40)), fails) == [3, 17]
    assert len(tried) < 120
