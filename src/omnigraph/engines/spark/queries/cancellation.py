"""Stopping a query on Spark: when it is cancelled, and when its time is over.

    with stoppable(spark, options, deadline): ...

Guarantees: jobs that run in the block are interrupted within about a tenth of a second, and what
they raise then reads as what happened: cancelled, or out of time.
Deliberately absent: bounds on memory and on rows read. Executors have memory settings of their own,
and Spark is for what is too large for such bounds.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from omnigraph.engines.base import Options
from omnigraph.engines.spark.session import is_classic
from omnigraph.engines.spark.sparkerrors import translated
from omnigraph.errors import (
    CancelledError,
    EngineUnavailableError,
    LimitExceededError,
    OmniGraphError,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TICK_SECONDS = 0.1
_LARGEST = 2**63 - 1
_TAGS = {
    True: ("addJobTag", "removeJobTag", "cancelJobsWithTag"),
    False: ("addTag", "removeTag", "interruptTag"),
}


class Clock:
    """When a query began, and whether it may go on."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._began = time.monotonic()

    @property
    def is_watched(self) -> bool:
        return self._options.cancellation is not None or self._options.limits.seconds is not None

    def check(self) -> None:
        """Raise if the query has been cancelled or has run out of time."""
        if self._options.cancellation is not None:
            self._options.cancellation.check()
        seconds, used = self._options.limits.seconds, time.monotonic() - self._began
        if seconds is not None and used > seconds:
            raise LimitExceededError(
                f"The query exceeded its limit on time: {seconds:g}.",
                resource="seconds",
                limit=float(seconds),
                actual=used,
                hint="Narrow the match, add a limit, or raise the limits of the query.",
            )


@contextmanager
def stoppable(spark: SparkSession, clock: Clock) -> Iterator[None]:
    """Jobs of this block end when the clock says so."""
    clock.check()
    if not clock.is_watched:
        with _told():
            yield
        return
    tag, over = f"omnigraph-{uuid4().hex}", threading.Event()
    # Of the context, where there is one: threads that stream a result inherit only those.
    tags: Any = spark.sparkContext if is_classic(spark) else spark
    add, remove, stop = (getattr(tags, name) for name in _TAGS[is_classic(spark)])
    watcher = threading.Thread(target=_watch, args=(lambda: stop(tag), clock, over), daemon=True)
    add(tag)
    watcher.start()
    try:
        with _told():
            yield
    except OmniGraphError:
        clock.check()  # says why, if it was us who stopped the job
        raise
    finally:
        over.set()
        remove(tag)


@contextmanager
def _told() -> Iterator[None]:
    """What Spark raises, as what it means for a query."""
    try:
        with translated("answer the query"):
            yield
    except EngineUnavailableError as error:
        if "ARITHMETIC_OVERFLOW" not in str(error.details.get("log", "")):
            raise
        # Our own arithmetic runs in tasks and gives null; what Spark multiplies are weights.
        raise LimitExceededError(
            "The number of matches exceeds 64 bits.",
            resource="matches",
            limit=_LARGEST,
        ) from error


def _watch(stop: Callable[[], Any], clock: Clock, over: threading.Event) -> None:
    while not over.wait(_TICK_SECONDS):
        try:
            clock.check()
        except (CancelledError, LimitExceededError):
            stop()  # and again, if a job begins only now
