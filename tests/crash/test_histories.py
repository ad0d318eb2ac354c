"""Histories of four processes of which some are killed while they write: still honest.

What a dead writer left half-done is finished or undone by the others, and what any of them was
told stays true.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from tests.crash.nursery import Nursery, call
from tests.crash.sizes import FULL
from tests.support.concurrenthistories import Trial, new_cells, recorded

import omnigraph

POINTS = [
    "commit.after_lock",
    "commit.after_sidecar",
    "commit.before_table",
    "commit.after_table",
    "commit.before_publish",
    "commit.after_publish",
    "commit.before_disarm",
]
HISTORIES = 12 if FULL else 5


def play(nursery: Nursery, folder: Path, seed: int, point: str) -> Trial:
    """One history of four, of whom two die at the point when they have come there often enough."""
    folder.mkdir()
    chance = random.Random(f"{point} {seed}")
    uri = new_cells(folder).uri
    logs = [folder / f"w{number}.jsonl" for number in range(4)]
    deaths = ["", "", *(f"{point}=kill@{chance.randrange(1, 5)}" for _ in range(2))]
    endings = nursery.run_all(
        [
            call("take_part", uri, str(log), seed * 100 + number, 6, 1 + seed % 2, faults=death)
            for number, (log, death) in enumerate(zip(logs, deaths, strict=True))
        ]
    )
    died = sum(ending.killed for ending in endings)
    for ending in endings:
        assert not ending.error, ending.error
    return Trial(omnigraph.open(uri), recorded(logs), died=died > 0)


@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("point", POINTS)
def test_histories_with_deaths_are_honest(nursery: Nursery, tmp_path: Path, point: str) -> None:
    """ledger: C01, C14, C17, R14"""
    outcomes: Counter[str] = Counter()
    deadly = 0
    for seed in range(HISTORIES):
        trial = play(nursery, tmp_path / f"h{seed}", seed, point)
        outcomes += trial.judge()
        deadly += trial.died
    assert outcomes["done"] > 4 * HISTORIES
    assert deadly > HISTORIES // 2
