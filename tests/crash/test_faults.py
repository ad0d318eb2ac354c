"""Every durable step of every operation, met by every fault that a store may show.

Whatever happens: only errors of ours are raised; who was told that it is done finds it done; who
was told that it failed for certain finds nothing of it, now or after recovery; and the next try
succeeds. In `make test` each step meets one fault, in `make crash` all of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.crash.errands import Fault
from tests.crash.nursery import Nursery
from tests.crash.sizes import FULL, note
from tests.crash.sweep import Stage
from tests.crash.test_sweep import QUICK, SWEPT

pytestmark = pytest.mark.crash

# After these nobody has promised that it did not happen.
UNCLEAR = ("CommitOutcomeUnknownError", "StorageUnknownError")
FAULTS = list(Fault)


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.getbasetemp() / uuid4().hex


def meet(stage: Stage, nth: int, fault: Fault) -> str:
    """One fault at one step, and everything that must hold afterwards; returns what was raised."""
    where = f"{stage.scene}: {fault} at step {nth} ({stage.steps[nth - 1]})"
    stage.reset()
    said = stage.nursery.run("fail_at_step", stage.scene, stage.uri, nth, str(fault)).result()
    told = f"{where}: {said['error']}: {said['message']}"
    assert said["met"], f"{where}: the step was not reached"
    assert said["ours"], f"not an error of ours: {told}"
    seen = stage.nursery.run("look_and_reopen", stage.uri).result()
    stage.refuse_halves(seen, told)
    now = stage.look()["view"]
    if said["error"] is None:
        # A merge stands whatever becomes of the branch that was to be deleted after it.
        enough = stage.views["between"] if "delete the source" in stage.scene else []
        done = [stage.views["after"], *enough]
        assert now in done, f"{where}: it was told to be done, and is not"
    elif said["error"] not in UNCLEAR:
        refused = [stage.views["before"], *stage.views["between"]]
        assert now in refused, f"it happened all the same: {told}"
    stage.check(seen, told)
    return str(said["error"])


def faults_at(nth: int, scene: str) -> list[Fault]:
    if FULL:
        return FAULTS
    return [FAULTS[(nth + len(scene)) % len(FAULTS)]]


def meet_all(stage: Stage) -> None:
    met = 0
    raised: dict[str, int] = {}
    for nth in range(1, len(stage.steps) + 1):
        for fault in faults_at(nth, stage.scene):
            error = meet(stage, nth, fault)
            raised[error] = raised.get(error, 0) + 1
            met += 1
    note("fault sweep", operation=stage.scene, met=met, raised=raised)


# ledger: R10 S02
@pytest.mark.parametrize("scene", QUICK)
def test_a_few_operations(nursery: Nursery, folder: Path, scene: str) -> None:
    meet_all(Stage(nursery, scene, folder))


# ledger: R10 S02
@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("scene", [name for name in SWEPT if name not in QUICK])
def test_every_operation(nursery: Nursery, folder: Path, scene: str) -> None:
    meet_all(Stage(nursery, scene, folder))


def test_what_torn_writes_leave_has_no_name(nursery: Nursery, folder: Path) -> None:
    stage = Stage(nursery, "branch create", folder)
    stage.reset()
    said: Any = stage.nursery.run("fail_at_step", stage.scene, stage.uri, 2, "torn").result()
    assert said["error"] == "StoragePermanentError"
    assert list((Path(stage.uri) / "__refs").glob("*")) == []
    assert list((Path(stage.uri) / "__tmp").glob("*")) == []
