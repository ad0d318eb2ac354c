"""A process for each system that is measured, and how it is told what to do.

    with Worker("kuzu", folder) as worker:
        worker.call("load", data)
        worker.times("ask", question, seconds=0.1)

Guarantees: times are taken inside the process, around the call alone; an error in there is raised
here, with its words; the process ends with the block.
"""

from __future__ import annotations

import gc
import multiprocessing
import time
from collections.abc import Callable
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

SUBJECTS = {
    "omnigraph": ("benchmarks.subjects.omni", "OmniGraph"),
    "kuzu": ("benchmarks.subjects.cypher", "Kuzu"),
    "ladybug": ("benchmarks.subjects.cypher", "Ladybug"),
    "duckdb": ("benchmarks.subjects.sql", "DuckDB"),
    "library": ("benchmarks.subjects.libraries", "Library"),
    "versions": ("benchmarks.subjects.versions", "Versions"),
    "doltlite": ("benchmarks.subjects.doltlite", "DoltLite"),
    "inserter": ("benchmarks.subjects.inserters", "Inserter"),
    "kuzu inserter": ("benchmarks.subjects.inserters", "Kuzu"),
    "ladybug inserter": ("benchmarks.subjects.inserters", "Ladybug"),
    "duckdb inserter": ("benchmarks.subjects.inserters", "DuckDB"),
    "lancedb": ("benchmarks.subjects.libraries", "LanceDB"),
}


class AbsentError(Exception):
    """A system that is not installed, or that does not work here."""


class Worker:
    """One system in a process of its own."""

    def __init__(self, subject: str, folder: Path) -> None:
        context = multiprocessing.get_context("spawn")
        self.subject = subject
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(subject, folder, theirs), daemon=True)
        self._process.start()
        theirs.close()
        try:
            self.version: str
            self.opening: float  # seconds to import the package and open the database
            self.version, self.opening = self._answer()
        except RuntimeError as error:
            self.close()
            raise AbsentError(f"{subject}: {error}") from error

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._pipe.close()
        self._process.join(10)
        if self._process.is_alive():
            self._process.terminate()
            self._process.join()

    def call(self, method: str, *arguments: Any) -> Any:
        self._pipe.send(("call", method, arguments))
        return self._answer()

    def begin(self, method: str, *arguments: Any) -> None:
        """Call without waiting; `end` waits."""
        self._pipe.send(("call", method, arguments))

    def end(self) -> Any:
        return self._answer()

    def time(self, method: str, *arguments: Any) -> float:
        """Seconds of one call."""
        self._pipe.send(("time", method, arguments))
        found: float = self._answer()
        return found

    def times(self, method: str, *arguments: Any, seconds: float, most: int = 50) -> list[float]:
        """Seconds of each of several calls: at least one, then as many as fit."""
        self._pipe.send(("times", method, (seconds, most, arguments)))
        found: list[float] = self._answer()
        return found

    def memory(self, *, reset: bool = False) -> int:
        """The most bytes that the process has held, since the last reset."""
        self._pipe.send(("memory", "", (reset,)))
        found: int = self._answer()
        return found

    def huge_pages(self) -> int:
        """Bytes that the process holds in huge pages, of which it may use little."""
        self._pipe.send(("huge", "", ()))
        found: int = self._answer()
        return found

    def _answer(self) -> Any:
        try:
            fine, value = self._pipe.recv()
        except EOFError:
            raise RuntimeError("the process died") from None
        if not fine:
            raise RuntimeError(value)
        return value


def _serve(name: str, folder: Path, pipe: Connection) -> None:
    try:
        begun = time.perf_counter()
        module, kind = SUBJECTS[name]
        subject = getattr(import_module(module), kind)(folder)
        pipe.send((True, (subject.version(), time.perf_counter() - begun)))
    except Exception as error:  # noqa: BLE001 - whatever a system says when it does not work
        pipe.send((False, f"{type(error).__name__}: {error}"))
        return
    while True:
        try:
            verb, method, arguments = pipe.recv()
        except EOFError:
            return
        try:
            value = _VERBS[verb](getattr(subject, method, None), arguments)
            pipe.send((True, value))
        except Exception as error:  # noqa: BLE001 - it belongs to the process that asked
            pipe.send((False, f"{type(error).__name__}: {error}"))


def _call(method: Any, arguments: Any) -> Any:
    return method(*arguments)


def _time(method: Any, arguments: Any) -> float:
    begun = time.perf_counter()
    method(*arguments)
    return time.perf_counter() - begun


def _times(method: Any, arguments: Any) -> list[float]:
    seconds, most, inner = arguments
    gc.collect()
    found: list[float] = []
    while len(found) < most and sum(found) < seconds:
        found.append(_time(method, inner))
    return found


def _memory(_: Any, arguments: Any) -> int:
    (reset,) = arguments
    status = Path("/proc/self/status").read_text()
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def _huge(_: Any, arguments: Any) -> int:
    rollup = Path("/proc/self/smaps_rollup").read_text()
    line = next(line for line in rollup.splitlines() if line.startswith("AnonHugePages:"))
    return int(line.split()[1]) * 1024


_VERBS: dict[str, Callable[[Any, Any], Any]] = {
    "call": _call,
    "time": _time,
    "times": _times,
    "memory": _memory,
    "huge": _huge,
}
