"""Record the calls of functions of omnigraph, with the stack of callers at each call."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

PACKAGE = "omnigraph."


@dataclass(frozen=True)
class Function:
    """A function by its module below `omnigraph` and its qualified name."""

    module: str
    name: str

    @property
    def room(self) -> str:
        return self.module.partition(".")[0]

    def __str__(self) -> str:
        return f"{self.module}:{self.name}"


@dataclass(frozen=True)
class Call:
    """One call: the callers that belong to omnigraph, outermost first, and the function itself."""

    stack: tuple[Function, ...]

    @property
    def function(self) -> Function:
        return self.stack[-1]


@dataclass
class Record:
    """Calls in the order in which they began, of all threads that were started meanwhile."""

    calls: list[Call] = field(default_factory=list)

    def rooms(self) -> set[str]:
        return {call.function.room for call in self.calls}


@contextmanager
def recorded_calls() -> Iterator[Record]:
    """Record every call in this thread and in threads started inside the block."""
    record = Record()
    before, before_threads = sys.getprofile(), threading.getprofile()
    profile = _profiler(record)
    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        yield record
    finally:
        sys.setprofile(before)
        threading.setprofile(before_threads)


def _profiler(record: Record) -> Callable[[FrameType, str, Any], None]:
    def profile(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and _function(frame) is not None:
            record.calls.append(Call(_stack(frame)))

    return profile


def _stack(frame: FrameType) -> tuple[Function, ...]:
    found: list[Function] = []
    caller: FrameType | None = frame
    while caller is not None:
        function = _function(caller)
        if function is not None:
            found.append(function)
        caller = caller.f_back
    return tuple(reversed(found))


def _function(frame: FrameType) -> Function | None:
    """The function of a frame; none for other packages, module bodies and comprehensions."""
    module = str(frame.f_globals.get("__name__", ""))
    name = frame.f_code.co_qualname.replace(".<locals>", "")
    if not module.startswith(PACKAGE) or name.startswith("<"):
        return None
    return Function(module.removeprefix(PACKAGE), name)
