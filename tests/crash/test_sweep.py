"""Every operation, killed around every durable step that it takes, recovered and checked.

Just before and just after each step, and again with a second kill after every step of the recovery;
in `make test` only after each step, since what lies just before one looks on disk like what lies
just after the one before it. Which steps there are is recorded anew each time, and a visible change
outside of them fails the recording: so the windows that are crossed are all that there are.
"""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest
from tests.crash.nursery import Nursery
from tests.crash.scenes import SCENES
from tests.crash.sizes import FULL, note
from tests.crash.sweep import AFTER, Stage, Window, sweep_once, sweep_twice

pytestmark = pytest.mark.crash

QUICK = ("verb load", "branch create", "deed keyed mutation")
# The same steps as another scene that is swept.
ALIKE = ("one table", "three tables", "merge", "schema", "keyed")
SWEPT = [name for name in SCENES if name not in ALIKE]


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.getbasetemp() / uuid4().hex


def chosen(stage: Stage) -> list[Window]:
    return [w for w in stage.windows if FULL or w.when == AFTER or w.nth == 1]


def sweep(stage: Stage) -> None:
    crossed = 0
    for window in chosen(stage):
        sweep_once(stage, window)
        crossed += 1
    again = 0
    if FULL:
        for window in stage.windows:
            if window.when == AFTER:
                again += sweep_twice(stage, window)
    note(
        "crash sweep",
        operation=stage.scene,
        steps=len(stage.steps),
        known=len(stage.windows),
        crossed=crossed,
        in_recovery=again,
    )


# ledger: R14 R15
@pytest.mark.parametrize("scene", QUICK)
def test_a_few_operations(nursery: Nursery, folder: Path, scene: str) -> None:
    sweep(Stage(nursery, scene, folder))


# ledger: R14 R15
@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("scene", [name for name in SWEPT if name not in QUICK])
def test_every_operation(nursery: Nursery, folder: Path, scene: str) -> None:
    sweep(Stage(nursery, scene, folder))


# ledger: R14
@pytest.mark.slow
def test_a_second_kill_in_the_recovery(nursery: Nursery, folder: Path) -> None:
    """One window in which tables must be put back, one in which they must be published."""
    stage = Stage(nursery, "verb ingest: merge", folder)
    landed = [w for w in stage.windows if w.when == AFTER and "lance commit" in w.step]
    assert sum(sweep_twice(stage, window, every=True) for window in (landed[0], landed[2])) >= 8
