"""Limits and cancellation of one query.

Every operator calls `check` between chunks of work. Python hears Ctrl-C between two calls of native
code, and some of those are long; so a query that may take long runs in a thread of its own
(`listening`), and a single long kernel through `wait`, while the caller's thread keeps listening.

Guarantees: `LimitExceededError` before memory is taken, not after, also when less is free than the
query may use; Ctrl-C and cancellation are seen within about 50 ms, and what still runs then stops
at its next check. A listener of `omnigraph.progress` hears how many rows were read or walked over,
in the thread that asked.
Deliberately absent: accounting of shared caches; those have a budget of their own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from omnigraph import headroom, progress
from omnigraph.engines.base import Cancellation, Limits
from omnigraph.errors import CancelledError, LimitExceededError
from omnigraph.threadpools import ThreadPool

T = TypeVar("T")

# Work below this many elements ends before anybody could tell.
LONG_WORK = 4_000_000
_TICK_SECONDS = 0.02
# Steps below this size do not ask how much memory is free.
_LARGE_STEP = 4 << 20
# So often a running query looks whether memory has become short.
_LOOK_SECONDS = 0.1

_WORKERS = "omnigraph-query"

_workers = ThreadPool(_WORKERS, threads=4)


class Bounds:
    """The limits of one running query and what it has used of them."""

    def __init__(self, limits: Limits, cancellation: Cancellation | None = None) -> None:
        self._limits = limits
        self._cancellation = cancellation
        self._started = self._looked = time.monotonic()
        self._stopped = False
        self.scanned = 0

    def check(self) -> None:
        """Raise if the query has been cancelled or has run out of time."""
        if self._stopped:
            raise CancelledError("The query was interrupted.")
        if self._cancellation is not None:
            self._cancellation.check()
        now, seconds = time.monotonic(), self._limits.seconds
        if seconds is not None and now - self._started > seconds:
            raise _exceeded("time", "seconds", seconds, now - self._started)
        if now - self._looked > _LOOK_SECONDS and self._limits.memory_bytes is not None:
            self._looked = now
            headroom.require(0, "query")

    def scan(self, rows: int) -> None:
        """Count rows that are read or walked over."""
        self.scanned += rows
        most = self._limits.rows_scanned
        if most is not None and self.scanned > most:
            raise _exceeded("rows scanned", "rows_scanned", most, self.scanned)
        self._report()
        self.check()

    def allocate(self, size_bytes: int) -> None:
        """Ask before taking memory for one step."""
        most = self._limits.memory_bytes
        if most is not None and size_bytes > most:
            raise _exceeded("memory", "memory_bytes", most, size_bytes)
        if most is not None and size_bytes > _LARGE_STEP:
            headroom.require(size_bytes, "query")

    def exclude(self, since: float) -> None:
        """The time since then (`time.monotonic`) was not time of the query."""
        self._started += time.monotonic() - since

    def returned(self, rows: int) -> None:
        most = self._limits.rows_returned
        if most is not None and rows > most:
            raise _exceeded("rows returned", "rows_returned", most, rows)

    def listening(self, work: Callable[[], T]) -> T:
        """Run a whole query while the main thread listens for Ctrl-C; elsewhere, just run it."""
        if threading.current_thread() is not threading.main_thread():
            return work()
        future: Future[T] = Future()
        name = f"{_WORKERS}-main"
        thread = threading.Thread(target=_settle, args=(future, work), name=name, daemon=True)
        return self._result(future, thread.start)

    def wait(self, work: Callable[[], T], elements: int) -> T:
        """Run a kernel over this many elements, listening meanwhile if it may take long."""
        self.check()
        if elements < LONG_WORK or threading.current_thread().name.startswith(_WORKERS):
            return work()
        return self._result(_workers.submit(work))

    def _result(self, future: Future[T], start: Callable[[], None] = lambda: None) -> T:
        done = threading.Event()
        future.add_done_callback(lambda _: done.set())
        try:
            start()  # Ctrl-C may already come here
            while not done.wait(_TICK_SECONDS):
                self._report()  # the thread that works has no listener
                self.check()
        except BaseException:
            self._stopped = True  # whatever is still running ends at its next check
            raise
        return future.result()

    def _report(self) -> None:
        progress.report("match", rows=self.scanned)

    def beside(self, work: Callable[[], T]) -> Future[T]:
        """Start work in another thread, while this one does something else."""
        self.check()
        return _workers.submit(work)


def _settle(future: Future[T], work: Callable[[], T]) -> None:
    try:
        future.set_result(work())
    except BaseException as error:  # noqa: BLE001 - it belongs to the thread that waits
        future.set_exception(error)


def _exceeded(what: str, resource: str, limit: float, actual: float) -> LimitExceededError:
    return LimitExceededError(
        f"The query exceeded its limit on {what}: {limit:g}.",
        resource=resource,
        limit=float(limit),
        actual=float(actual),
        hint="Narrow the match, add a limit, or raise the limits of the query.",
    )
