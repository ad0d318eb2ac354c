"""The power of a machine is cut, at every durable step of every operation, after acknowledgements,
and at random instants: every acknowledged commit is there, whole and once; the graph opens and can
be written to.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.crash.machine import Machine, why_not
from tests.crash.nursery import Nursery
from tests.crash.powercuts import SPOILED, PoweredStage, PowerLoop
from tests.crash.sizes import FULL, RANDOM_CUTS, note
from tests.crash.sweep import AFTER, Window
from tests.crash.test_sweep import SWEPT

pytestmark = [
    pytest.mark.crash,
    pytest.mark.skipif(why_not() is not None, reason=f"power is not cut here: {why_not()}"),
]

QUICK = ("verb ingest: append", "branch create")
LOT = 10
LOTS = [range(start, min(start + LOT, RANDOM_CUTS)) for start in range(0, RANDOM_CUTS, LOT)]


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    with Machine(tmp_path / "machine") as machine:
        yield machine


def windows(stage: PoweredStage, every: bool) -> list[Window | None]:
    """The windows of an operation, and the instant after its acknowledgement."""
    chosen = [window for window in stage.windows if FULL or (every and window.when == AFTER)]
    return [*chosen, None]


def cut_everywhere(stage: PoweredStage, every: bool) -> None:
    cuts = undone = 0
    for window in windows(stage, every):
        for torn in (False, True) if FULL else (True,):
            stage.cut(window, torn=torn)
            undone += stage.check_cut(window)["shown"] == "before"
            cuts += 1
    note("power cuts", operation=stage.scene, cuts=cuts, undone=undone, acknowledged=1)


@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare")
def test_19_a_restart_beside_a_process_that_holds_the_mount(machine: Machine) -> None:
    """Another test may start a process in a mount namespace of its own, which then keeps the file
    system that was shut down: everything in it is an input/output error."""
    (machine.place / "forced").write_text("x")
    machine.force()
    with holder_of_mounts():
        machine.cut(torn=True)
        machine.restart()
        assert (machine.place / "forced").read_text() == "x"
        (machine.place / "later").write_text("y")
        machine.force()
        machine.cut(torn=False)
        machine.restart()
    assert (machine.place / "later").read_text() == "y"


@contextmanager
def holder_of_mounts() -> Iterator[None]:
    """A process with a mount namespace of its own."""
    command = ["unshare", "-m", "sh", "-c", "echo; exec sleep 600"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
        finally:
            process.kill()


@pytest.mark.parametrize("scene", QUICK)
def test_19_a_few_operations(nursery: Nursery, machine: Machine, scene: str) -> None:
    cut_everywhere(PoweredStage(nursery, scene, machine), every=True)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("scene", [name for name in SWEPT if name not in QUICK])
def test_19_every_operation(nursery: Nursery, machine: Machine, scene: str) -> None:
    cut_everywhere(PoweredStage(nursery, scene, machine), every=False)


def cut_recoveries(stage: PoweredStage, chosen: list[Window]) -> None:
    """After a kill and after a power cut by turns."""
    cuts = sum(
        stage.cut_recovery(window, by_cut=bool(number % 2)) for number, window in enumerate(chosen)
    )
    note("power cuts", operation=stage.scene, cuts=cuts, in_recovery=cuts)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_19_a_cut_in_a_recovery(nursery: Nursery, machine: Machine) -> None:
    """Windows in which tables must be put back, and in which they must be published."""
    stage = PoweredStage(nursery, "verb ingest: append", machine)
    landed = [w for w in stage.windows if w.when == AFTER and "lance commit" in w.step]
    cut_recoveries(stage, [landed[0], landed[2]])


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.skipif(not FULL, reason="a part of `make crash`")
@pytest.mark.parametrize("scene", SWEPT)
def test_19_cuts_in_every_recovery(nursery: Nursery, machine: Machine, scene: str) -> None:
    stage = PoweredStage(nursery, scene, machine)
    cut_recoveries(stage, [window for window in stage.windows if window.when == AFTER])


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("cuts", LOTS, ids=lambda lot: f"{lot.start}-{lot.stop - 1}")
def test_19_cuts_at_random(nursery: Nursery, machine: Machine, tmp_path: Path, cuts: range) -> None:
    loop = PowerLoop(tmp_path / "loop", nursery, machine, "power")
    for number in cuts:
        loop.cut(number)
    acknowledged = sum(map(len, loop.acknowledged.values()))
    assert acknowledged, "no commit was ever acknowledged"
    note(
        "power cuts",
        operation="at random",
        cuts=len(cuts),
        undone=loop.lost,
        acknowledged=acknowledged,
    )


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_19_process_durability_opens_after_a_cut(
    nursery: Nursery, machine: Machine, tmp_path: Path
) -> None:
    """The last seconds may be lost; what is there is whole, and the graph can be written to."""
    loop = PowerLoop(tmp_path / "loop", nursery, machine, "process")
    cuts = range(900, 910 if FULL else 904)
    for number in cuts:
        loop.cut(number)
    assert loop.lost, "nothing was ever lost: the cut does not cut"
    note(
        "power cuts",
        operation="process durability",
        cuts=len(cuts),
        undone=loop.lost,
        acknowledged=0,
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", SPOILED)
def test_19_a_missing_sync_of_each_kind_is_noticed(
    nursery: Nursery, machine: Machine, kind: str
) -> None:
    stage = PoweredStage(nursery, SPOILED[kind], machine)
    stage.cut(None)
    assert stage.spoil(kind), f"{stage.scene} writes no file of this kind"
    with pytest.raises(AssertionError, match="cut after the acknowledgement"):
        stage.check_cut(None)
    note("missing syncs", kind=kind, scene=stage.scene)
