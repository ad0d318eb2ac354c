"""The crash sweep: an operation is killed around each durable step that it takes.

`Stage` prepares a scene once, records its steps, and puts the graph back for each case. A case
kills at a window (just before or just after a step), lets another process recover, and a third one
check; or kills that recovery too, around each of its own steps, and lets yet another finish.

The graph goes back to the very address at which it was made, because branches name the files that
they share by address.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.crash.deeds import BETWEEN, litter
from tests.crash.nursery import Nursery
from tests.crash.stepcalls import REOPEN

BEFORE, AFTER = "before", "after"


@dataclass(frozen=True)
class Window:
    """Just before or just after the nth step, counted from 1."""

    nth: int
    when: str
    step: str

    def __str__(self) -> str:
        return f"{self.when} step {self.nth} ({self.step})"


def windows(steps: list[str]) -> Iterator[Window]:
    for nth, step in enumerate(steps, 1):
        yield Window(nth, BEFORE, step)
        yield Window(nth, AFTER, step)


class Stage:
    """A scene with its graph, ready to be acted again and again."""

    def __init__(self, nursery: Nursery, scene: str, folder: Path) -> None:
        self.nursery = nursery
        self.scene = scene
        self.uri = str(folder / "graph")
        self._kept = folder / "kept"
        self._killed = folder / "killed"
        folder.mkdir(parents=True, exist_ok=True)
        between = self._look_between()
        nursery.run("prepare", scene, self.uri).result()
        before = self.look()["view"]
        if Path(self.uri).exists():
            shutil.copytree(self.uri, self._kept)
        said = nursery.run("record_steps", scene, self.uri).result()
        assert said["outside"] == [], f"{scene}: steps that nobody knows: {said['outside']}"
        self.steps: list[str] = said["steps"]
        assert self.steps, f"{scene} takes no durable step at all"
        self.views = {"before": before, "after": self.look()["view"], "between": between}

    def look(self) -> Any:
        return self.nursery.run("look", self.uri).result()

    def _look_between(self) -> list[Any]:
        if self.scene not in BETWEEN:
            return []
        self.nursery.run("prepare_between", self.scene, self.uri).result()
        seen = self.look()["view"]
        for place in (Path(self.uri), *litter(self.uri)):
            _remove(place)
        return [seen]

    @property
    def windows(self) -> list[Window]:
        return list(windows(self.steps))

    def reset(self) -> None:
        _copy(self._kept, Path(self.uri))

    def kill(self, window: Window) -> None:
        """Act, and die at the window."""
        self.reset()
        ending = self.nursery.run("kill_at_step", self.scene, self.uri, window.nth, window.when)
        assert ending.killed, f"{self.scene}: {window} was not reached: {ending}"

    def keep_killed(self) -> None:
        """Remember what the dead left."""
        _copy(Path(self.uri), self._killed)

    def kill_recovery(self, window: Window) -> None:
        """Recover what the dead left, and die at the window."""
        _copy(self._killed, Path(self.uri))
        ending = self.nursery.run("kill_at_step", REOPEN, self.uri, window.nth, window.when)
        assert ending.killed, f"{self.scene}: recovery {window} was not reached: {ending}"

    def refuse_halves(self, seen: Any, where: object) -> None:
        allowed = [self.views["before"], self.views["after"], *self.views["between"]]
        assert seen["view"] in allowed, f"{self.scene}: half is visible, killed {where}"

    def check(self, seen: Any, where: object) -> None:
        """Everything that must hold once it is recovered, however often that took."""
        ending = self.nursery.run("check_case", self.scene, self.uri, self.views, seen)
        assert not ending.signal, f"{self.scene}: killed {where}: ended by {ending.signal}"
        assert not ending.error, f"{self.scene}: killed {where}:\n{ending.error}"


def sweep_once(stage: Stage, window: Window) -> None:
    """Killed, recovered, checked."""
    stage.kill(window)
    seen = stage.nursery.run("look_and_reopen", stage.uri).result()
    stage.refuse_halves(seen, window)
    stage.check(seen, window)


def sweep_twice(stage: Stage, window: Window, every: bool = False) -> int:
    """The same with a second kill, around each step of the recovery; returns how many there were.
    What lies just before a step looks on disk like what lies just after the one before it, so only
    `every` kills at both."""
    stage.kill(window)
    stage.keep_killed()
    first = stage.look()
    steps = stage.nursery.run("record_steps", REOPEN, stage.uri).result()["steps"]
    chosen = [w for w in windows(steps) if every or w.when == AFTER]
    for again in chosen:
        where = f"{window}, then in recovery {again}"
        stage.kill_recovery(again)
        between = stage.nursery.run("look_and_reopen", stage.uri).result()
        stage.refuse_halves(between, where)
        seen = first
        if between["view"] == stage.views["after"]:
            seen = {**first, "view": between["view"]}
        stage.check(seen, where)
    return len(chosen)


def _copy(source: Path, target: Path) -> None:
    """Make a folder equal to another, which may be absent."""
    shutil.rmtree(target, ignore_errors=True)
    if source.exists():
        shutil.copytree(source, target)


def _remove(place: Path) -> None:
    if place.is_dir():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)
