"""Derived files may be lost or damaged at any time: no answer changes, and nothing fails."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.crash.sizes import FULL
from tests.support.decay import Decay

FAST, SLOW = 3, 30 if FULL else 8


@pytest.mark.parametrize("seed", range(FAST))
def test_18_16_18_20_answers_do_not_depend_on_derived_files(seed: int, tmp_path: Path) -> None:
    Decay(seed, tmp_path).play(8)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(FAST, FAST + SLOW))
def test_18_16_18_20_answers_do_not_depend_on_derived_files_at_length(
    seed: int, tmp_path: Path
) -> None:
    Decay(seed, tmp_path).play(24)
