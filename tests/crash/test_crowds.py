"""Processes that write for each other and are killed at random: each insert once, or never."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.crash.crowds import CrowdLoop
from tests.crash.nursery import Nursery
from tests.crash.sizes import note

pytestmark = pytest.mark.crash

FEW = 3
MANY = 60


def crowd_again_and_again(nursery: Nursery, folder: Path, cycles: range) -> None:
    loop = CrowdLoop(folder, nursery)
    for number in cycles:
        loop.cycle(number)
    assert loop.acknowledged, "nobody ever got anything done"
    assert loop.shared, "nobody ever wrote for another"
    note("crowds", cycles=len(cycles), acknowledged=len(loop.acknowledged), shared=loop.shared)


# ledger: C01 C17
def test_a_few_crowds(nursery: Nursery, tmp_path: Path) -> None:
    crowd_again_and_again(nursery, tmp_path, range(FEW))


# ledger: C01 C17
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_many_crowds(nursery: Nursery, tmp_path: Path) -> None:
    crowd_again_and_again(nursery, tmp_path, range(1_000, 1_000 + MANY))
