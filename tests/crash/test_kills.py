"""Writers killed at random times: every acknowledged commit is there, whole, once."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.crash.killloop import KillLoop
from tests.crash.nursery import Nursery
from tests.crash.sizes import KILL_CYCLES, note

pytestmark = pytest.mark.crash

FEW = 4
LOT = 20
LOTS = [range(start, min(start + LOT, KILL_CYCLES)) for start in range(0, KILL_CYCLES, LOT)]


def kill_again_and_again(nursery: Nursery, folder: Path, cycles: range) -> None:
    loop = KillLoop(folder, nursery)
    for number in cycles:
        loop.cycle(number)
    acknowledged = sum(map(len, loop.acknowledged.values()))
    assert acknowledged, "nobody ever got anything done"
    note(
        "kill loop",
        cycles=len(cycles),
        first=cycles.start,
        acknowledged=acknowledged,
        published=sum(map(len, loop.seen.values())),
    )


# ledger: C01 C17 R14
def test_a_few_kills(nursery: Nursery, tmp_path: Path) -> None:
    kill_again_and_again(nursery, tmp_path, range(10_000, 10_000 + FEW))


# ledger: C01 C17 R14
@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("cycles", LOTS, ids=lambda lot: f"{lot.start}-{lot.stop - 1}")
def test_many_kills(nursery: Nursery, tmp_path: Path, cycles: range) -> None:
    kill_again_and_again(nursery, tmp_path, cycles)
