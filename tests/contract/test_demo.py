"""The tour that the README promises runs to its end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_tour_ends_well(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "demo.tour", "--out", str(tmp_path / "out")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "The tour is over" in done.stdout
    for shown in ("300000 inserted", "… commit:", "1 inserted", "Never finished", "rolled_back"):
        assert shown in done.stdout


def test_every_step_has_a_title() -> None:
    from demo import tour

    assert all(step.__doc__ for step in tour.STEPS)
