"""A short run of everything at once; `make soak` runs it for an hour."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.crash.sizes import FULL, note
from tests.soak.run import show, soak

SECONDS = 180 if FULL else 25


@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_everything_at_once(tmp_path: Path) -> None:
    report = soak(tmp_path, SECONDS)
    assert report.problems == [], "\n".join(show(report))
    assert report.activities.total() > 100
    assert report.killed >= 1
    note("soak", seconds=SECONDS, activities=report.activities.total(), killed=report.killed)
