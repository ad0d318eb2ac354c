"""Answers do not depend on what the cache has lost: numbers of rows, and arrays by number."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.crash.sizes import FULL
from tests.support.memorypressure import Pressure

FAST, SLOW = 4, 40 if FULL else 10
STEPS = 12


@pytest.mark.parametrize("seed", range(FAST))
def test_18_12_answers_survive_lost_entries(seed: int, tmp_path: Path) -> None:
    Pressure(seed, tmp_path / "graph").play(STEPS)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(FAST, FAST + SLOW))
def test_18_12_answers_survive_lost_entries_at_length(seed: int, tmp_path: Path) -> None:
    Pressure(seed, tmp_path / "graph").play(2 * STEPS)
