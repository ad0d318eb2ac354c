"""Bugs that once gave wrong answers, planted again: lives notice each within a few seeds."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.lives.__main__ import play
from tests.lives.player import DifferenceError
from tests.lives.story import story
from tests.mutants.catalogue import applied

MOST_SEEDS = 50
PLANTED = {
    "test_18_08": "integers become null",
    "test_18_10": "dates without ends",
    "test_18_11": "search finds the dead",
    "test_18_12": "branches share a text index",
    "test_18_13": "walks touch both ends",
}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("number", PLANTED)
def test_lives_notice(number: str, tmp_path: Path) -> None:
    with applied(PLANTED[number]):
        for seed in range(MOST_SEEDS):
            told = story(seed)
            try:
                play(told, told.ops, tmp_path / str(seed))
            except DifferenceError:
                print(f"{PLANTED[number]}: noticed at seed {seed}")
                return
    pytest.fail(f"{PLANTED[number]!r} lived through {MOST_SEEDS} seeds")
