"""Progress events of long work, for a listener.

    with progress.listening(print):
        graph.ingest("people.jsonl")

Work reports at its own pace, from the thread that called it; who does not listen pays for one
lookup. A listener may stop the work by raising: reports are made only where stopping is harmless,
never while a commit is being made visible.

    with progress.tallying("compare", total):
        ...                                      # who reads rows calls `progress.count(rows)`

Work that is long inside of other libraries, or in several threads, goes through `aside`: a thread
of its own does it, and the one that called tells its reports on.

Guarantees: a listener hears its own context alone, so that threads and tasks do not mix.
Deliberately absent: drawing, and time. A listener has its own clock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from typing import Protocol, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Progress:
    """One moment. `done` of `total` parts of the stage; `rows` and `bytes` are of the stage too."""

    stage: str
    done: int = 0
    total: int | None = None
    rows: int | None = None
    bytes: int | None = None


Listener = Callable[[Progress], None]

_listener: ContextVar[Listener | None] = ContextVar("omnigraph_progress", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Hear the reports of what is done in the block."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def report(
    stage: str,
    done: int = 0,
    total: int | None = None,
    *,
    rows: int | None = None,
    bytes: int | None = None,
) -> None:
    """Tell how far a stage has come."""
    listener = _listener.get()
    if listener is not None:
        listener(Progress(stage, done, total, rows, bytes))


def each(stage: str, items: Iterable[T], total: int | None = None) -> Iterator[T]:
    """The items, with a report before each of them and one at the end."""
    if total is None and isinstance(items, Sized):
        total = len(items)
    done = 0
    for item in items:
        report(stage, done, total)
        yield item
        done += 1
    report(stage, done, total)


def is_heard() -> bool:
    """Whether anybody listens; who would count only for them need not."""
    return _listener.get() is not None


def listener() -> Listener | None:
    """Who listens here, for a thread that is to tell them."""
    return _listener.get()


class Tally:
    """The rows of one stage, counted by whichever threads work on it."""

    def __init__(self, stage: str, total: int | None = None) -> None:
        self._stage = stage
        self._total = total
        self._rows = 0
        self._guard = threading.Lock()
        self._listener = _listener.get()

    def add(self, rows: int) -> None:
        with self._guard:
            self._rows += rows
            now = Progress(self._stage, self._rows if self._total else 0, self._total, self._rows)
        if self._listener is not None:
            self._listener(now)


_tally: ContextVar[Tally | None] = ContextVar("omnigraph_tally", default=None)


@contextmanager
def tallying(stage: str, total: int | None = None) -> Iterator[None]:
    """Report the rows that are counted in the block as those of a stage."""
    tally = Tally(stage, total)
    token = _tally.set(tally)
    try:
        tally.add(0)
        yield
    finally:
        _tally.reset(token)


def is_tallied() -> bool:
    """Whether rows are counted here."""
    return _tally.get() is not None


def count(rows: int) -> None:
    """Some more rows of the stage that is tallied, if one is."""
    tally = _tally.get()
    if tally is not None:
        tally.add(rows)


class _Batch(Protocol):
    @property
    def num_rows(self) -> int: ...


B = TypeVar("B", bound=_Batch)


def counted(batches: Iterable[B]) -> Iterator[B]:
    """The batches, each counted as it is taken, by whichever thread takes it."""
    tally = _tally.get()

    def taken() -> Iterator[B]:
        for batch in batches:
            yield batch
            if tally is not None:
                tally.add(batch.num_rows)

    return taken()


def inherited(work: Callable[[], T]) -> Callable[[], T]:
    """The work, for another thread, which reports and counts to whom this one does."""
    context = copy_context()
    return lambda: context.run(work)


TICK_S = 0.1


class _StoppedError(BaseException):
    """Ends work whose caller has stopped waiting. Not an error, so it is not handled as one."""


def aside(work: Callable[[], T]) -> T:
    """Do work in a thread of its own, and tell its reports on from this one, which can so be
    stopped whatever the work is at. Stopped work ends at its next report."""
    listener = _listener.get()
    if listener is None:
        return work()
    newest: dict[str, Progress] = {}  # by stage: none is left out, however short it was
    stopped = threading.Event()
    future: Future[T] = Future()
    done = threading.Event()

    def hear(event: Progress) -> None:
        if stopped.is_set():
            raise _StoppedError
        newest[event.stage] = event

    def heard() -> T:
        with listening(hear):
            return work()

    thread = threading.Thread(
        target=_settle, args=(future, inherited(heard), done), name="omnigraph-aside", daemon=True
    )
    try:
        thread.start()
        while not done.wait(TICK_S):
            _tell(listener, newest)
        _tell(listener, newest)
    except BaseException:
        stopped.set()
        raise
    return future.result()


def _tell(listener: Listener, newest: dict[str, Progress]) -> None:
    for stage in list(newest):
        listener(newest.pop(stage))


def _settle(future: Future[T], work: Callable[[], T], done: threading.Event) -> None:
    try:
        future.set_result(work())
    except BaseException as error:  # noqa: BLE001  # it belongs to the thread that waits
        future.set_exception(error)
    finally:
        done.set()
