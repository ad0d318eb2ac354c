"""Operations over a network that fails: each request of an operation meets each kind of fault.

A `NetworkStage` prepares a scene in the bucket, counts the requests of an operation that nothing
disturbs, and replays the scene with a fault at chosen requests. Prepared graphs are not reused,
because the operation changes them; each case has a prefix of its own.
"""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from tests.crash.nursery import Nursery
from tests.support.faultproxy import Choice, FaultProxy, NetworkFault

# With these nothing was promised about whether the operation happened.
UNCLEAR = ("CommitOutcomeUnknownError", "StorageUnknownError")
NOT_MET = "not met"
Plain = dict[str, Any]


def nth_only(nth: int) -> Choice:
    return lambda number, seen: number == nth


def from_nth(nth: int) -> Choice:
    return lambda number, seen: number >= nth


class NetworkStage:
    """A scene on a server behind a proxy. Only the operation itself goes through faults."""

    def __init__(self, nursery: Nursery, proxy: FaultProxy, scene: str, place: str) -> None:
        self.nursery, self.proxy, self.scene, self._place = nursery, proxy, scene, place
        uri = self._prepare()
        before = self._look(uri)
        start = len(proxy.seen)
        said = nursery.run("attempt", scene, uri).result()
        assert said["error"] is None, said
        self.requests = [f"{seen.verb} {seen.path}" for seen in proxy.seen[start:]]
        self.views: Plain = {"before": before, "after": self._look(uri), "between": []}

    def meet(self, fault: NetworkFault, chosen: Choice, where: str) -> str | None:
        """One case; returns the name of the error that the operation raised, if any; `NOT_MET` if
        there was no such request, as leases are renewed more or less often."""
        uri = self._prepare()
        self.proxy.fail(fault, chosen)
        try:
            said = self.nursery.run("attempt", self.scene, uri).result()
        finally:
            self.proxy.heal()
        told = f"{self.scene}: {fault} at {where}: {said['error']}: {said['message']}"
        if not self.proxy.met:
            assert said["error"] is None, told
            return NOT_MET
        assert said["ours"], f"not an error of ours: {told}"
        seen = self.nursery.run("look_and_reopen", uri).result()
        allowed = [self.views["before"], self.views["after"]]
        assert seen["view"] in allowed, f"half is visible: {told}"
        now = self._look(uri)
        if said["error"] is None:
            assert now == self.views["after"], f"acknowledged, and not there: {told}"
        elif said["error"] not in UNCLEAR:
            assert now == self.views["before"], f"it happened all the same: {told}"
        ending = self.nursery.run("check_case", self.scene, uri, self.views, seen)
        assert not ending.signal, f"ended by signal {ending.signal}: {told}"
        assert not ending.error, f"{told}\n{ending.error}"
        error: str | None = said["error"]
        return error

    def _prepare(self) -> str:
        uri = f"{self._place}/{uuid4().hex}"
        self.nursery.run("prepare", self.scene, uri).result()
        return uri

    def _look(self, uri: str) -> Any:
        return self.nursery.run("look", uri).result()["view"]
