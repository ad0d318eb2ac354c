"""Durable steps: the instants at which something that an operation does begins to last.

    with intercepted(around):
        graph.mutate(...)

`around(step, act)` is called for each of them in order, and must return `act()`, or not return at
all: a recorder writes the step down, a killer kills before or after it, a faulty disk raises. The
steps are writes and removals of control objects, and every call of Lance that moves a head, makes
or drops a line, or removes versions. Files that are merely staged are no step: nobody can see them.

`Recorder` also holds the list against reality: between two steps no file may change that anybody
could see, so a step that nobody knows of is noticed when it is first recorded.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any
from unittest.mock import patch

import lance
from lance.dataset import Branches

from omnigraph.storage import objects
from omnigraph.storage.backend import Expect
from omnigraph.storage.disk import LOCKS, TEMPORARY, DiskBackend

# What Lance writes before a commit names it, and what only locks and half-written objects use.
_UNSEEN = ("data", "_deletions", "_indices", "_transactions")
_APART = (LOCKS, TEMPORARY)


@dataclass(frozen=True)
class Step:
    """What is done, and to which object or dataset."""

    kind: str
    path: str

    def __str__(self) -> str:
        return f"{self.kind} {self.path}"


Act = Callable[[], Any]
Around = Callable[[Step, Act], Any]


@contextmanager
def intercepted(around: Around) -> Iterator[None]:
    """Let every durable step of this process pass through `around`."""
    once = _Once(around)
    with ExitStack() as stack:
        for target, name, kind, place in _LANCE:
            stack.enter_context(
                patch.object(target, name, _lance_step(target, name, once, kind, place))
            )
        for name, describe in _DISK.items():
            stack.enter_context(patch.object(DiskBackend, name, _disk_step(name, once, describe)))
        # With an observer, a prefix is removed object by object: each removal is a step.
        objects.observers.append(_look_on)
        stack.callback(objects.observers.remove, _look_on)
        yield


def _look_on(step: objects.Step) -> None:
    """The steps of objects are taken at the backend, where a fault can still be classified."""


class _Once:
    """A step within a step is a part of it."""

    def __init__(self, around: Around) -> None:
        self._around = around
        self._inside = threading.local()

    def __call__(self, step: Step, act: Act) -> Any:
        if getattr(self._inside, "now", False):
            return act()
        self._inside.now = True
        try:
            return self._around(step, act)
        finally:
            self._inside.now = False


def _lance_step(target: Any, name: str, once: _Once, kind: str, place: int) -> Any:
    inner = target.__dict__[name]
    call = inner.__func__ if isinstance(inner, staticmethod) else inner

    @wraps(call)
    def outer(*args: Any, **kwargs: Any) -> Any:
        where = args[place] if len(args) > place else kwargs.get("uri")
        address = str(getattr(where, "uri", where))
        if address.startswith("memory://"):
            return call(*args, **kwargs)
        return once(Step(kind, _short(address)), lambda: call(*args, **kwargs))

    return staticmethod(outer) if isinstance(inner, staticmethod) else outer


# Where a call of Lance takes effect, and which of its arguments says on what.
_LANCE: list[tuple[Any, str, str, int]] = [
    (lance.LanceDataset, "commit", "lance commit", 0),
    (lance.LanceDataset, "restore", "lance restore", 0),
    (lance.LanceDataset, "create_branch", "lance fork", 0),
    (lance.LanceDataset, "cleanup_old_versions", "lance cleanup", 0),
    (Branches, "delete", "lance unfork", 1),
    (lance, "write_dataset", "lance write", 1),
]


def _disk_step(name: str, once: _Once, describe: Callable[..., Step | None]) -> Any:
    inner = getattr(DiskBackend, name)

    @wraps(inner)
    def outer(self: DiskBackend, *args: Any) -> Any:
        step = describe(*args)
        return inner(self, *args) if step is None else once(step, lambda: inner(self, *args))

    return outer


def _write(path: str, data: bytes, expected: Expect | str, forced: bool = True) -> Step:
    kinds = {Expect.ANYTHING: "put", Expect.NOTHING: "create"}
    return Step(kinds.get(expected, "replace") if isinstance(expected, Expect) else "replace", path)


def _remove_many(paths: Any, prefix: str) -> Step | None:
    """What remains to be done for a prefix is the removal of empty directories."""
    return Step("delete", prefix) if paths else None


_DISK: dict[str, Callable[..., Step | None]] = {
    "write": _write,
    "remove": lambda path, forced=True: Step("delete", path),
    "remove_many": _remove_many,
    "move": lambda source, target: Step("rename", source),
}


def _short(address: str) -> str:
    """The last folders of an address: what it is, without where the test keeps it."""
    parts = address.rstrip("/").split("/")
    for mark in ("__manifest", "nodes", "edges"):
        if mark in parts:
            return "/".join(parts[parts.index(mark) :])
    return parts[-1]


@dataclass
class Recorder:
    """Writes steps down; `outside` are files that changed between them."""

    uri: str
    steps: list[Step] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    _seen: dict[str, tuple[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._seen = visible_files(self.uri)

    def __call__(self, step: Step, act: Act) -> Any:
        self.look()
        try:
            return act()
        finally:
            self.steps.append(step)
            self._seen = visible_files(self.uri)

    def look(self) -> None:
        now = visible_files(self.uri)
        changed = {path for path, _ in now.items() ^ self._seen.items()}
        self.outside += sorted(changed)
        self._seen = now


@dataclass
class Killer:
    """Ends the process with SIGKILL just before or just after the nth step, counted from 1."""

    nth: int
    when: str
    passed: int = 0

    def __call__(self, step: Step, act: Act) -> Any:
        self.passed += 1
        if self.passed == self.nth and self.when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = act()
        if self.passed == self.nth and self.when == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return result


def visible_files(uri: str) -> dict[str, tuple[int, int]]:
    """Every file by which somebody could see a difference, with its size and time."""
    found: dict[str, tuple[int, int]] = {}
    root = Path(uri)
    for folder, folders, names in os.walk(root):
        relative = os.path.relpath(folder, root)
        folders[:] = [f for f in folders if f not in _UNSEEN and f not in _APART]
        for name in names:
            status = os.stat(f"{folder}/{name}")
            found[f"{relative}/{name}"] = (status.st_size, status.st_mtime_ns)
    return found
