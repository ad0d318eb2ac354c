"""Power cuts: what children of the nursery do on a machine that loses power, and what must hold on
it afterwards.

`cut_at_step` acts a scene and cuts the power at a window, or after everything was acknowledged.
`recover_and_cut` cuts it at a step of the recovery that an interrupted scene needs.
`check_after_cut` runs when the machine is up again: a reader opens the graph without changing
anything, a writer opens it, and whatever was acknowledged is there, whole and once.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.crash.cases import View, view
from tests.crash.killloop import BRANCHES, SCHEMA, KillLoop, heard
from tests.crash.machine import Machine, cut_power
from tests.crash.nursery import Nursery
from tests.crash.stepcalls import Plain, look, typed
from tests.crash.steps import Act, Recorder, Step, intercepted
from tests.crash.sweep import Stage, Window
from tests.support.doorgraph import ACTOR, branch, new_graph, rows, write

import omnigraph
from omnigraph.commit.branches import delete_branch
from omnigraph.errors import GraphNotFoundError
from omnigraph.history.refs import list_branches
from omnigraph.operations.verification import Finding
from omnigraph.storage import wholeness
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.wholeness import hint_file

# The kinds of files that a commit consists of, by a part of their path.
KINDS = {
    "data": "/data/",
    "deletion": "/_deletions/",
    "index": "/_indices/",
    "transaction": "/_transactions/",
    "manifest": "/_versions/",
    "control object": "__refs/",
    "publish": "__manifest/",
}

# A planted missing sync of each kind, and a scene that writes files of it.
SPOILED = {
    "data": "verb ingest: append",
    "deletion": "verb mutate: delete some",
    "index": "verb optimize",
    "transaction": "verb ingest: append",
    "manifest": "verb ingest: append",
    "directory entry": "verb ingest: append",
    "control object": "branch create",
    "publish": "verb ingest: append",
}


class Cutter:
    """Cuts the power just before or just after the nth step, counted from 1, and ends."""

    def __init__(self, disk: str, nth: int, when: str, torn: bool) -> None:
        self.disk, self.nth, self.when, self.torn = disk, nth, when, torn
        self.passed = 0

    def __call__(self, step: Step, act: Act) -> Any:
        self.passed += 1
        if self.passed == self.nth and self.when == "before":
            self.end()
        result = act()
        if self.passed == self.nth and self.when == "after":
            self.end()
        return result

    def end(self) -> None:
        cut_power(self.disk, torn=self.torn)
        os.kill(os.getpid(), signal.SIGKILL)


def cut_at_step(scene: str, uri: str, disk: str, nth: int, when: str, torn: bool) -> None:
    """Act, and cut the power at a window; with `nth` 0 after the acknowledgement."""
    from tests.crash import scenes

    cutter = Cutter(disk, nth, when, torn)
    with intercepted(cutter):
        scenes.SCENES[scene].act(GraphRoot.at(uri))
    cutter.end()


def record_recovery(uri: str, start: int) -> list[str]:
    """The durable steps of the recovery, on a machine that was started `start` times."""
    recorder = Recorder(uri)
    with patch.object(wholeness, "boot_id", lambda: f"start {start}"), intercepted(recorder):
        _open(uri, read_only=False)
    return [str(step) for step in recorder.steps]


def recover_and_cut(uri: str, disk: str, nth: int, torn: bool, start: int, seen: str) -> None:
    """Recover, and cut the power just after the nth step, counted from 1; with 0 or a greater
    number than there are steps, after the recovery, whose result is noted in the file `seen`."""
    cutter = Cutter(disk, nth, "after", torn)
    with patch.object(wholeness, "boot_id", lambda: f"start {start}"), intercepted(cutter):
        _open(uri, read_only=False)
    Path(seen).write_text(json.dumps(look(uri)["view"]))
    cutter.end()


def check_after_cut(
    scene: str, uri: str, views: Plain, acknowledged: bool, start: int
) -> dict[str, Any]:
    """Everything that must hold once the machine is up again. Says what was lost."""
    with patch.object(wholeness, "boot_id", lambda: f"start {start}"):
        return _check(scene, uri, views, acknowledged)


def _check(scene: str, uri: str, views: Plain, acknowledged: bool) -> dict[str, Any]:
    from tests.crash import scenes

    before, after = typed(views["before"]), typed(views["after"])
    allowed = [after] if acknowledged else [before, after, *map(typed, views["between"])]
    _open(uri, read_only=True)
    losses = _open(uri, read_only=False)
    shown = view(uri)
    assert shown in allowed, f"lost or half there: {losses}" if acknowledged else "half is visible"
    assert not (acknowledged and losses), f"acknowledged, and lost: {losses}"
    if shown is not None and not scene.startswith("verb repair"):
        rules = scene.startswith(("verb", "deed"))
        found = [each for each in findings(uri) if rules or each.part != "constraint"]
        assert found == [], found
    if scene.startswith("verb repair"):
        # What it was called for may still be to do. Where a publish was lost, the foreign version
        # was set aside with it, and there is nothing left to adopt.
        scenes.act(scene, uri)
        assert losses or view(uri) == after, "done again, it gives something else"
    elif shown == before != after and "revert" not in scene:
        scenes.act(scene, uri)
        assert view(uri) == after, "done again, it gives something else"
    _check_writable(uri, view(uri))
    return {"losses": losses, "shown": "after" if shown == after else "before"}


def findings(uri: str) -> list[Finding]:
    """What `fsck` finds. Lance writes its note of the newest version without forcing it, and can do
    without the note, so a damaged one is left out."""
    every = omnigraph.open(uri, actor="act-anna").verify().findings
    return [each for each in every if not each.where.endswith(hint_file(""))]


def _open(uri: str, *, read_only: bool) -> list[str]:
    try:
        graph = omnigraph.open(uri, actor="act-anna", read_only=read_only)
    except GraphNotFoundError:
        return []
    return [loss.message for loss in graph.losses]


def _check_writable(uri: str, shown: View | None) -> None:
    root = GraphRoot.at(uri)
    if shown is None:
        new_graph(uri)
    branch(root, "afterwards")
    for each in list_branches(root):
        before = rows(root, each.name)
        tables = {name: {"new": 1} for name in ("A", "B", "Link")}
        write(root, tables, branch=each.name)
        expected = {name: {**before.get(name, {}), "new": 1} for name in tables}
        assert rows(GraphRoot.at(uri), each.name) == {**before, **expected}
    delete_branch(root, "afterwards", ACTOR)


class PoweredStage(Stage):
    """A scene on a machine, whose power is cut again and again."""

    def __init__(self, nursery: Nursery, scene: str, machine: Machine) -> None:
        self.machine = machine
        super().__init__(nursery, scene, machine.place / "stage")

    def cut(self, window: Window | None, *, torn: bool = False) -> None:
        """Act, with a power cut at the window; None: after the acknowledgement."""
        self.reset()
        self.machine.force()
        nth, when = (0, "") if window is None else (window.nth, window.when)
        disk = str(self.machine.place)
        ending = self.nursery.run("cut_at_step", self.scene, self.uri, disk, nth, when, torn)
        assert ending.killed, f"{self.scene}: {window} was not reached: {ending}"
        self.machine.restart()

    def check_cut(self, window: Window | None) -> dict[str, Any]:
        start = self.machine.starts
        acknowledged = window is None
        ending = self.nursery.run(
            "check_after_cut", self.scene, self.uri, self.views, acknowledged, start
        )
        where = window or "after the acknowledgement"
        assert not ending.signal, f"{self.scene}: cut {where}: ended by {ending.signal}"
        assert not ending.error, f"{self.scene}: cut {where}:\n{ending.error}"
        found: dict[str, Any] = ending.answer
        return found

    def interrupt(self, window: Window, *, by_cut: bool) -> None:
        """Act, and end at the window: by a power cut, or by a kill that loses nothing."""
        if by_cut:
            self.cut(window, torn=True)
            return
        self.reset()
        self.machine.force()
        ending = self.nursery.run("kill_at_step", self.scene, self.uri, window.nth, window.when)
        assert ending.killed, f"{self.scene}: {window} was not reached: {ending}"

    def cut_recovery(self, window: Window, *, by_cut: bool) -> int:
        """Interrupt the scene, and cut the power after each step of its recovery and after all of
        them; returns the number of cuts."""
        self.interrupt(window, by_cut=by_cut)
        steps = self.nursery.run("record_recovery", self.uri, self.machine.starts).result()
        for nth in range(len(steps) + 1):
            self.interrupt(window, by_cut=by_cut)
            where = f"{window}, then in recovery after step {nth} of {steps}"
            self._recover_and_cut(nth, where, lasting=bool(steps))
        return len(steps) + 1

    def _recover_and_cut(self, nth: int, where: str, *, lasting: bool) -> None:
        """`lasting`: the recovery does something, and what it has done must be there. If there is
        nothing to do, the commit was visible before, was never acknowledged, and may be lost."""
        seen = self.machine.place.with_name(f"{self.machine.place.name}.seen")
        arguments = (str(self.machine.place), nth, nth % 2 == 0, self.machine.starts, str(seen))
        ending = self.nursery.run("recover_and_cut", self.uri, *arguments)
        assert ending.killed, f"{self.scene}: {where}: {ending}"
        self.machine.restart()
        views = self.views
        if seen.exists():  # the recovery was complete before the cut
            shown = json.loads(seen.read_text())
            seen.unlink()
            assert shown in (views["before"], *views["between"], views["after"])
            if lasting and shown in (views["before"], views["after"]):
                views = {**views, "between": [], "before": shown}
        start = self.machine.starts
        ending = self.nursery.run("check_after_cut", self.scene, self.uri, views, False, start)
        assert not ending.signal, f"{self.scene}: {where}: ended by {ending.signal}"
        assert not ending.error, f"{self.scene}: {where}:\n{ending.error}"

    def spoil(self, kind: str) -> list[str]:
        """What a missing sync of one kind of file would have lost: the files of that kind that the
        scene wrote are empty, or, for `directory entry`, not there."""
        kept = {str(path.relative_to(self._kept)) for path in self._kept.rglob("*")}
        graph = Path(self.uri)
        spoiled = []
        for path in sorted(graph.rglob("*")):
            name = str(path.relative_to(graph))
            if name not in kept and path.is_file() and _is_of(kind, name):
                path.unlink() if kind == "directory entry" else os.truncate(path, 0)
                spoiled.append(name)
        self.machine.force()
        return spoiled


def _is_of(kind: str, name: str) -> bool:
    if kind == "directory entry":
        return "/data/" in name and not name.startswith("__manifest")
    if kind != "publish" and name.startswith("__manifest/"):
        return False
    return KINDS[kind] in f"/{name}" or name.startswith(KINDS[kind])


class PowerLoop(KillLoop):
    """Writers on a machine whose power is cut at no particular instant."""

    def __init__(self, folder: Path, nursery: Nursery, machine: Machine, durability: str) -> None:
        self.folder, self.nursery, self.machine = folder, nursery, machine
        self.durability = durability
        self.folder.mkdir(parents=True, exist_ok=True)
        self.uri = str(machine.place / "graph")
        nursery.run("make_loop_graph", self.uri, durability).result()
        machine.force()
        self.acknowledged = {name: set() for name in BRANCHES}
        self.seen = {name: set() for name in BRANCHES}
        self.lost = 0

    def cut(self, number: int) -> None:
        """Writers live for a moment; then the power goes, and everything is looked at."""
        chance = random.Random(number)
        branches = chance.sample(BRANCHES, chance.randrange(1, 3))
        lives = [self._start(f"w{number}x{k}", name) for k, name in enumerate(branches)]
        if chance.random() < 0.85:
            self._wait_for_word(lives)
        time.sleep(chance.uniform(0, 0.15))
        self.machine.cut(torn=self.durability == "process" or chance.random() < 0.5)
        for child, pipe, name in lives:
            os.kill(child, signal.SIGKILL)
            self.nursery.bury(child)  # it may have met the dead disk and ended by itself
            self.acknowledged[name] |= heard(pipe)
        self.machine.restart()
        found = self.nursery.run(
            "check_loop", self.uri, _listed(self.acknowledged), _listed(self.seen),
            self.machine.starts, self.durability,
        ).result()  # fmt: skip
        self.seen = {name: set(tokens) for name, tokens in found["seen"].items()}
        self.lost += found["losses"]
        if self.durability == "process":
            self.acknowledged = {name: set(tokens) for name, tokens in self.seen.items()}


def make_loop_graph(uri: str, durability: str) -> str:
    graph = omnigraph.init(uri, SCHEMA, actor="act-anna", durability=durability)
    graph.create_branch("side")
    return "made"


def check_loop(
    uri: str, acknowledged: Plain, seen: Plain, start: int, durability: str
) -> dict[str, Any]:
    """All that was acknowledged is there, whole and once. With `process`, whatever is there is
    whole and once, and a prefix of it."""
    with patch.object(wholeness, "boot_id", lambda: f"start {start}"):
        omnigraph.open(uri, read_only=True)
        losses = len(omnigraph.open(uri, actor="act-anna").losses)
        loop = object.__new__(PowerLoop)
        loop.uri = uri
        strict = durability == "power"
        loop.acknowledged = {
            n: set(tokens) if strict else set() for n, tokens in acknowledged.items()
        }
        loop.seen = {n: set(tokens) if strict else set() for n, tokens in seen.items()}
        loop._check()
        assert findings(uri) == []
        return {"seen": _listed(loop.seen), "losses": losses}


def _listed(found: dict[str, set[str]]) -> dict[str, list[str]]:
    return {name: sorted(tokens) for name, tokens in found.items()}
