"""What children of the nursery do with durable steps: record them, die at one, or meet a fault;
and what a process that comes later sees and checks.

Called by name. `what` is a scene to act, or `REOPEN` for the recovery that opening brings. Whoever
looks is a process of its own, which has never seen the graph before: nothing that a cache knows
can hide what lies on disk.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from tests.crash.cases import Graph, View, view
from tests.crash.errands import Fault, Faulty
from tests.crash.steps import Killer, Recorder, intercepted
from tests.support.doorgraph import pending

import omnigraph
from omnigraph.errors import OmniGraphError
from omnigraph.storage.root import GraphRoot

REOPEN = "reopen"
Plain = dict[str, Any]


def record_steps(what: str, uri: str) -> dict[str, list[str]]:
    """Do it, and say which durable steps it took, and what changed outside of them."""
    recorder = Recorder(uri)
    with intercepted(recorder):
        _do(what, uri)
    recorder.look()
    return {"steps": [str(step) for step in recorder.steps], "outside": recorder.outside}


def kill_at_step(what: str, uri: str, nth: int, when: str) -> int:
    """Do it and die on the way; who lives on says how many steps there were."""
    killer = Killer(nth, when)
    with intercepted(killer):
        _do(what, uri)
    return killer.passed


def fail_at_step(what: str, uri: str, nth: int, fault: str) -> Plain:
    """Do it with a fault at one step: what was raised, if anything, and whether it was ours."""
    faulty = Faulty(nth, Fault(fault))
    with intercepted(faulty):
        said = attempt(what, uri)
    return {**said, "met": faulty.met, "passed": faulty.passed}


def attempt(what: str, uri: str) -> Plain:
    """Do it: what was raised, if anything, and whether it was ours."""
    said: Plain = {"error": None, "ours": True, "message": ""}
    try:
        _do(what, uri)
    except Exception as error:  # noqa: BLE001  # whether it is one of ours is the question
        said["error"] = type(error).__name__
        said["ours"] = isinstance(error, OmniGraphError)
        said["message"] = str(error)
    return said


def look(uri: str) -> Plain:
    """What a reader sees, and how many operations wait for recovery."""
    return {"view": plain(view(uri)), "pending": len(pending(GraphRoot.at(uri)))}


def look_and_reopen(uri: str) -> Plain:
    """What a reader sees before recovery; then recover."""
    from tests.crash import scenes

    seen = look(uri)
    return {**seen, "outcomes": scenes.reopen(uri)}


class Case(Graph):
    """A graph that was left in the middle and recovered, for its last look."""

    def __init__(self, scene: str, uri: str, views: Plain, seen: Plain) -> None:
        self.scene, self.uri = scene, uri
        self.before, self.after = typed(views["before"]), typed(views["after"])
        self.allowed = [self.before, self.after, *map(typed, views["between"])]
        self.seen, self.interrupted = typed(seen["view"]), seen["pending"]

    def check(self) -> None:
        from tests.crash import scenes

        shown = view(self.uri)
        assert shown in self.allowed, "half is visible after recovery"
        if self.seen == self.after:
            assert shown == self.after, "what was visible is gone"
        if shown is not None and not self.scene.startswith("verb repair"):
            # Scenes that write through the door alone do not care where edges end.
            rules = self.scene.startswith(("verb", "deed"))
            every = omnigraph.open(self.uri, actor="act-anna").verify().findings
            found = [each for each in every if rules or each.part != "constraint"]
            assert found == [], found
        # What was undone can be done again; a revert names the newest commit, which is another now.
        if shown == self.before != self.after and "revert" not in self.scene:
            scenes.act(self.scene, self.uri)
            assert view(self.uri) == self.after, "done again, it gives something else"
        elif shown not in (self.before, self.after):
            self.before = shown  # between two commits of one deed
        self.check_recovered()


def check_case(scene: str, uri: str, views: Plain, seen: Plain) -> str:
    Case(scene, uri, views, seen).check()
    return "fine"


def plain(seen: View | None) -> Plain | None:
    return None if seen is None else asdict(seen)


def typed(seen: Plain | None) -> View | None:
    if seen is None:
        return None
    types = tuple(tuple(names) for names in seen["types"])
    return View(seen["branches"], types, tuple(seen["tags"]))


def _do(what: str, uri: str) -> None:
    from tests.crash import scenes

    if what == REOPEN:
        scenes.reopen(uri)
    else:
        scenes.SCENES[what].act(GraphRoot.at(uri))
