"""Random lives in which the graph is replaced under live handles."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.crash.restores import play


@pytest.mark.parametrize("seed", range(1, 9))
def test_18_07_lives_with_restores(tmp_path: Path, seed: int) -> None:
    play(seed, tmp_path / "life")
