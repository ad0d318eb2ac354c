"""Progress of work on Spark whose jobs and tasks are not known in advance: queries, algorithms.

    with observed(spark, "run the query") as tally:
        for batch in ...:
            tally.add(batch.num_rows)

Spark makes one stage after another out of such work. About once a second it is asked which ones
run, and how many of their tasks are done; it is reported as `run the query, stage 3`, by the number
that Spark itself gives to the stage.

Guarantees: the work begins with an event and ends with one, whose rows are exact; whoever listens
by `hearing`, or in general by `omnigraph.progress`, hears them; a listener that raises stops to be
told, and the work goes on: the thread that does it is the one to stop.
Deliberately absent: how much is left in all, which Spark itself does not know.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeAlias

from omnigraph import progress
from omnigraph.engines.spark.jobevents import ProgressEvent, asked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Listener: TypeAlias = Callable[[ProgressEvent], None]

EVERY_S = 1.0

_listener: ContextVar[Listener | None] = ContextVar("omnigraph_spark_progress", default=None)


@contextmanager
def hearing(listener: Listener | None) -> Iterator[None]:
    """Hear the events of what is done on Spark in the block."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


class Rows:
    """The rows that have come out so far; None: none were to come."""

    def __init__(self) -> None:
        self.number: int | None = None

    def add(self, rows: int) -> None:
        self.number = (self.number or 0) + rows


@contextmanager
def observed(spark: SparkSession, what: str) -> Iterator[Rows]:
    """Tell of the jobs that run in the block."""
    rows, tell = Rows(), _told_to()
    if tell is None:
        yield rows
        return
    survey = _Survey(tell, what, rows)
    survey.tell(0, 0)
    with survey.in_session(spark):
        yield rows
    survey.tell(survey.done, survey.done, finished=True)


def _told_to() -> Listener | None:
    listener, general = _listener.get(), progress.listener()
    if listener is not None or general is None:
        return listener

    def tell(event: ProgressEvent) -> None:
        general(progress.Progress(event.stage, event.tasks_done, event.tasks or None, event.rows))

    return tell


class _Survey:
    """One piece of work that is watched."""

    def __init__(self, tell: Listener, what: str, rows: Rows) -> None:
        self._tell = tell
        self._what = what
        self._rows = rows
        self._began = time.monotonic()
        self._over = threading.Event()
        self._seen: dict[int, int] = {}  # tasks of stages, also of those that are over

    @property
    def done(self) -> int:
        """The tasks of all stages that were seen; at the end they are done."""
        return sum(self._seen.values())

    def tell(self, done: int, tasks: int, *, finished: bool = False) -> None:
        at = f", stage {max(self._seen)}" if self._seen and not finished else ""
        elapsed = time.monotonic() - self._began
        self._tell(
            ProgressEvent(
                f"{self._what}{at}",
                done,
                tasks,
                elapsed,
                0.0 if finished else None,
                self._rows.number,
                finished=finished,
            )
        )

    def in_session(self, spark: SparkSession) -> AbstractContextManager[None]:
        """Look about once a second, in whichever way the session can be asked."""
        return asked(spark, self._poll, self._on_progress, self._over)

    def _poll(self, spark: SparkSession) -> None:
        tracker = spark.sparkContext.statusTracker()
        while not self._over.wait(EVERY_S):
            ids = tracker.getActiveStageIds()
            found = [(stage, tracker.getStageInfo(stage)) for stage in ids]
            stages = [(n, i.numCompletedTasks, i.numTasks) for n, i in found if i is not None]
            if not self._take(stages):
                return

    def _on_progress(self, stages: Any, done: bool, **_: Any) -> None:
        """What a Connect endpoint sends by itself."""
        if stages and not done:
            self._take([(s.stage_id, s.num_completed_tasks, s.num_tasks) for s in stages])

    def _take(self, stages: Iterable[tuple[int, int, int]]) -> bool:
        running = [(done, tasks) for _, done, tasks in stages if done < tasks]
        self._seen.update({number: tasks for number, _, tasks in stages})
        try:
            self.tell(sum(done for done, _ in running), sum(tasks for _, tasks in running))
        except BaseException:  # noqa: BLE001  # it was meant for the thread that does the work
            return False
        return True
