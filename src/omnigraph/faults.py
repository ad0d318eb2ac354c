"""Named fault points: instants at which a test may make the program fail, stop or wait.

Code that crosses a border worth testing says `faults.hit("commit.after_table")`. Nothing happens
unless that point is armed, and the call costs one flag check. Points are armed for a process,

    OMNIGRAPH_FAULTS="commit.after_table=kill@2;commit.before_publish=delay:50"

or for a block of a test:

    with faults.armed("commit.before_publish", faults.Raise(StorageTransientError)):
        ...

Entries of the variable are `point=action`, separated by semicolons. Actions: `kill`,
`raise:<error class>`, `delay:<milliseconds>`, `pause:<release file>`; a trailing `@3` means only
the third time, `@every:3` every third time. While paused, `<release file>.reached` exists.

Guarantees: every name is declared in `POINTS`; an unknown name is an error when it is armed and,
once the variable is set (even to nothing) or anything is armed, also when it is hit. A malformed
variable fails on import, before any work begins.

Absent on purpose: probabilities. A fault happens at a named instant of a counted pass, so that a
failure found once is found again.
"""

from __future__ import annotations

import builtins
import difflib
import os
import re
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path

from omnigraph import errors
from omnigraph.errors import InvalidArgumentError

VARIABLE = "OMNIGRAPH_FAULTS"

POINTS: dict[str, str] = {
    "commit.before_lock": "the proposal is complete; the writer lock is not requested yet",
    "commit.after_lock": "the writer lock is held; nothing has been checked under it",
    "commit.before_sidecar": "requirements hold; no recovery record exists",
    "commit.after_sidecar": "the recovery record is durable; no table has changed",
    "commit.before_fork": "a table is about to be forked for its branch",
    "commit.after_fork": "the fork of the table exists; nothing references it",
    "commit.before_table": "the staged write of one table is about to be committed",
    "commit.between_steps": "one of several transactions of a table is committed",
    "commit.after_table": "one table is committed; the manifest is not published",
    "commit.before_confirm": "all tables are committed; the recovery record does not state it yet",
    "commit.after_confirm": "the recovery record contains the committed versions",
    "commit.before_publish": "the manifest is about to be published",
    "commit.after_publish": "the commit is visible; the record still exists",
    "commit.before_disarm": "the recovery record is about to be deleted",
    "commit.after_disarm": "the recovery record is deleted; the call has not returned",
    "recovery.before_restore": "a table is about to be restored to its old version",
    "recovery.after_restore": "one table was restored; the manifest does not pin it yet",
    "recovery.before_publish": "recovery is about to publish its result",
    "recovery.after_publish": "recovery has published; its audit row is missing",
    "recovery.before_audit": "the audit row is about to be written",
    "recovery.after_audit": "the audit row is written; the record still exists",
    "recovery.before_erase": "the recovered record is about to be deleted",
    "recovery.after_erase": "the recovered record is deleted",
    "stage.after_detached": "a detached version of a table exists; nothing references it",
    "cleanup.before_reclaim": "cleanup has determined the unneeded data; nothing is removed",
    "cleanup.after_reclaim": "cleanup has removed the unneeded data of one table",
    "upgrade.before_step": "a manifest of an older format is about to be migrated one step",
    "upgrade.before_stamp": "the step is done; the manifest still has the old format number",
    "upgrade.after_stamp": "one manifest has the next format number",
    "init.before_manifest": "the schema of a graph is stored; the graph does not exist yet",
    "init.after_manifest": "the graph exists; the call has not returned",
    "branch.before_create": "the branch name is valid and unused; nothing exists",
    "branch.after_manifest_fork": "the manifest's fork exists; the branch is not registered",
    "branch.after_create": "the branch is registered and visible",
    "branch.before_delete": "a branch is about to be deleted; everything exists",
    "branch.after_ref_delete": "the branch is no longer visible; its manifest and forks remain",
    "branch.after_delete": "the branch is deleted and its lock is released",
    "branch.before_replace": "a rebased branch is ready; the name still references the old one",
    "branch.after_replace": "the name references the rebased branch; the old one still exists",
    "branch.before_rename": "a branch is about to be renamed; the new name is unused",
    "branch.after_rename_mark": "the old reference contains the new name, which does not exist yet",
    "branch.after_rename_create": "the new name is valid; the old reference still exists",
    "branch.after_rename": "the branch has only its new name",
}


@dataclass(frozen=True)
class Action(ABC):
    """What to do at a point: each time, only the `nth` time, or each `every`-th time."""

    _: KW_ONLY
    nth: int | None = None
    every: int | None = None

    def __post_init__(self) -> None:
        if self.nth is not None and self.every is not None:
            raise InvalidArgumentError("A fault takes `nth` or `every`, not both.")
        if any(count is not None and count < 1 for count in (self.nth, self.every)):
            raise InvalidArgumentError("`nth` and `every` of a fault count from 1.")

    def is_due(self, hits: int) -> bool:
        """Whether the action happens at hit number `hits`, counted from 1."""
        if self.nth is not None:
            return hits == self.nth
        return hits % (self.every or 1) == 0

    @abstractmethod
    def perform(self, point: str) -> None:
        """Do it."""


@dataclass(frozen=True)
class Raise(Action):
    """Raise the given error; a class is called with a message that names the point."""

    error: BaseException | type[BaseException]

    def perform(self, point: str) -> None:
        if isinstance(self.error, BaseException):
            raise self.error
        raise self.error(f"Injected at fault point {point!r}.")


@dataclass(frozen=True)
class Kill(Action):
    """End this process with SIGKILL: no handler, no `finally`, no flush."""

    def perform(self, point: str) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class Delay(Action):
    """Sleep."""

    delay_ms: float

    def perform(self, point: str) -> None:
        time.sleep(self.delay_ms / 1000)


@dataclass(frozen=True)
class Pause(Action):
    """Wait until an event is set or a file appears, at most `limit_s` seconds."""

    release: threading.Event | Path
    limit_s: float = field(default=300.0, kw_only=True)

    def perform(self, point: str) -> None:
        if isinstance(self.release, threading.Event):
            released = self.release.wait(self.limit_s)
        else:
            released = _wait_for_file(self.release, self.limit_s)
        if not released:
            raise TimeoutError(f"Fault point {point!r} was not released in {self.limit_s:g} s.")


def _wait_for_file(release: Path, limit_s: float) -> bool:
    release.with_name(release.name + ".reached").touch()
    deadline = time.monotonic() + limit_s
    while not release.exists():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


class Armed:
    """One armed point: how often it was hit, and an event that says the first action began."""

    def __init__(self, point: str, action: Action) -> None:
        self.point = point
        self.action = action
        self.hits = 0
        self.reached = threading.Event()


_lock = threading.Lock()
_armed: dict[str, list[Armed]] = {}
_watching = False  # True while anything is armed or names must be checked; read without the lock
_checking = False  # True for the life of the process once the variable is set


def hit(point: str) -> None:
    """Mark an instant. Does nothing unless a point is armed or names are being checked."""
    if _watching:
        _reach(point)


def _reach(point: str) -> None:
    _require_known(point)
    due: list[Armed] = []
    with _lock:
        for armed_point in _armed.get(point, ()):
            armed_point.hits += 1
            if armed_point.action.is_due(armed_point.hits):
                due.append(armed_point)
    # Outside the lock: a paused point must not stop other threads from passing theirs.
    for armed_point in due:
        armed_point.reached.set()
        armed_point.action.perform(point)


def _require_known(point: str) -> None:
    if point not in POINTS:
        near = difflib.get_close_matches(point, POINTS, n=1)
        hint = f"Did you mean {near[0]!r}?" if near else "Declare it in faults.POINTS."
        raise InvalidArgumentError(f"There is no fault point {point!r}.", hint=hint)


def arm(point: str, action: Action) -> Armed:
    """Arm a point until `disarm`. Tests should prefer `armed`, which cleans up."""
    global _watching
    _require_known(point)
    entry = Armed(point, action)
    with _lock:
        _armed.setdefault(point, []).append(entry)
        _watching = True
    return entry


def disarm(entry: Armed) -> None:
    """Take one armed point back."""
    global _watching
    with _lock:
        entries = _armed.get(entry.point, [])
        if entry in entries:
            entries.remove(entry)
        if not entries:
            _armed.pop(entry.point, None)
        _watching = _checking or bool(_armed)


@contextmanager
def armed(point: str, action: Action) -> Iterator[Armed]:
    """Arm a point for the length of a block."""
    entry = arm(point, action)
    try:
        yield entry
    finally:
        disarm(entry)


def parse(text: str) -> list[tuple[str, Action]]:
    """Read the syntax of the variable; the module docstring describes it."""
    entries = [part.strip() for part in text.split(";") if part.strip()]
    return [_parse_entry(entry) for entry in entries]


_ENTRY = re.compile(
    r"(?P<point>[^=]+)=(?P<kind>[a-z]+)(?::(?P<argument>.*?))?"
    r"(?:@(?:every:(?P<every>\d+)|(?P<nth>\d+)))?"
)


def _parse_entry(entry: str) -> tuple[str, Action]:
    match = _ENTRY.fullmatch(entry)
    if match is None:
        raise _malformed(entry, "it must read point=action")
    point = match["point"].strip()
    _require_known(point)
    nth = int(match["nth"]) if match["nth"] else None
    every = int(match["every"]) if match["every"] else None
    argument = match["argument"] or ""
    match match["kind"]:
        case "kill" if not argument:
            return point, Kill(nth=nth, every=every)
        case "raise":
            return point, Raise(_error_class(entry, argument), nth=nth, every=every)
        case "delay":
            return point, Delay(_milliseconds(entry, argument), nth=nth, every=every)
        case "pause" if argument:
            return point, Pause(Path(argument), nth=nth, every=every)
        case _:
            known = "kill, raise:<error>, delay:<ms> or pause:<file>"
            raise _malformed(entry, f"the action must be {known}")


def _error_class(entry: str, name: str) -> type[BaseException]:
    found = getattr(errors, name, None) or getattr(builtins, name, None)
    if not (isinstance(found, type) and issubclass(found, BaseException)):
        raise _malformed(entry, f"there is no error class {name!r}")
    try:
        found("probe")
    except TypeError:
        raise _malformed(entry, f"{name} needs more than a message; arm it in process") from None
    return found


def _milliseconds(entry: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise _malformed(entry, "delay takes a number of milliseconds") from None


def _malformed(entry: str, why: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{VARIABLE} has a malformed entry {entry!r}: {why}.",
        hint="The docstring of omnigraph.faults gives the syntax.",
    )


def arm_from_environment() -> list[Armed]:
    """Arm what the variable says. Runs once, on import; setting it also turns name checks on."""
    global _watching, _checking
    text = os.environ.get(VARIABLE)
    if text is None:
        return []
    planned = parse(text)
    _checking = _watching = True
    return [arm(point, action) for point, action in planned]


arm_from_environment()
