"""Histories of four processes that are killed while they write: still honest.

What a dead writer left half-done is finished or undone by the others, and what any of them was
told stays true.
"""

from __future__ import annotations

import pytest
from tests.histories import Workers, play_all

POINTS = [
    "commit.after_lock=kill@9",
    "commit.after_sidecar=kill@7",
    "commit.before_table=kill@8",
    "commit.after_table=kill@9",
    "commit.before_publish=kill@6",
    "commit.after_publish=kill@8",
    "commit.before_disarm=kill@7",
]


@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("fault", POINTS)
def test_histories_with_deaths_are_honest(fault, tmp_path):
    """ledger: C01, C14, C17, R14"""
    workers = Workers(4, fault)
    try:
        outcomes = play_all(workers, tmp_path, range(12), count=6)
    finally:
        workers.close()
    assert outcomes["done"] > 50
