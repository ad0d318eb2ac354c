"""How far long work has come, told to whoever listens.

    with progress.listening(print):
        graph.ingest("people.jsonl")

Work reports at its own pace, from the thread that called it; who does not listen pays for one
lookup. A listener may stop the work by raising: reports are made only where stopping is harmless,
never while a commit is being made visible.

Guarantees: a listener hears its own context alone, so that threads and tasks do not mix.
Deliberately absent: drawing, and time. A listener has its own clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

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
