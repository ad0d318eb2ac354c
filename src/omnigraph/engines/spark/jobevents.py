"""Progress events of a Spark job.

    watch = Watch(lambda event: print(event))

Guarantees: each stage begins with an event and ends with one, whose rows and bytes are exact; in
between there is about one a second, from Spark's own count of finished tasks, and what those tasks
reported of rows and bytes. A watcher that is slow does not slow the job.
Deliberately absent: printing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EVERY_S = 1.0


@dataclass(frozen=True, slots=True)
class ProgressEvent:
    """A progress event. `rows` and `bytes` are those of the stage so far, `bytes_total` is the size
    of its input; None: unknown."""

    stage: str
    tasks_done: int
    tasks: int
    elapsed_s: float
    eta_s: float | None = None
    rows: int | None = None
    bytes: int | None = None
    bytes_total: int | None = None
    finished: bool = False

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class Tally:
    """Rows and bytes that finished tasks reported. `reported` asks them while the job runs;
    without it this is not possible, and bytes are estimated in proportion to tasks."""

    bytes_total: int | None = None
    reported: Callable[[], tuple[int, int]] | None = None
    rows: int | None = field(default=None, init=False)
    bytes: int | None = field(default=None, init=False)

    def settle(self, rows: int | None, bytes_: int | None) -> None:
        """What it came to in the end."""
        self.rows, self.bytes = rows, bytes_


class Watch:
    """Forwards events to the listener."""

    def __init__(self, listener: Callable[[ProgressEvent], None] | None = None) -> None:
        self._listener = listener

    @property
    def listens(self) -> bool:
        return self._listener is not None

    def tell(self, event: ProgressEvent) -> None:
        if self._listener is not None:
            self._listener(event)

    @contextmanager
    def step(self, stage: str) -> Iterator[None]:
        """Report something that is done here, in one piece."""
        began = time.monotonic()
        self.tell(ProgressEvent(stage, 0, 1, 0.0))
        yield
        self.tell(ProgressEvent(stage, 1, 1, time.monotonic() - began, 0.0, finished=True))

    @contextmanager
    def following(
        self, spark: SparkSession, stage: str, tasks: int, tally: Tally | None = None
    ) -> Iterator[None]:
        """Report a job while it runs in the block."""
        if self._listener is None:
            yield
            return
        job = _Job(self.tell, stage, tasks, tally or Tally())
        job.tell(0)
        with job.in_session(spark):
            yield
        job.finish()


class _Job:
    """One job that is followed."""

    def __init__(
        self, tell: Callable[[ProgressEvent], None], stage: str, tasks: int, tally: Tally
    ) -> None:
        self._tell = tell
        self._stage = stage
        self._tasks = tasks
        self._tally = tally
        self._began = time.monotonic()
        self._over = threading.Event()

    def tell(self, done: int) -> None:
        elapsed = time.monotonic() - self._began
        rows, size = self._so_far(done)
        eta = _time_to_go(elapsed, done, self._tasks, size, self._tally.bytes_total)
        self._tell(
            ProgressEvent(
                self._stage, done, self._tasks, elapsed, eta, rows, size, self._tally.bytes_total
            )
        )

    def finish(self) -> None:
        elapsed, tally = time.monotonic() - self._began, self._tally
        self._tell(
            ProgressEvent(
                self._stage,
                self._tasks,
                self._tasks,
                elapsed,
                0.0,
                tally.rows,
                tally.bytes,
                tally.bytes_total,
                finished=True,
            )
        )

    def _so_far(self, done: int) -> tuple[int | None, int | None]:
        if self._tally.reported is not None:
            return self._tally.reported()
        total = self._tally.bytes_total
        return None, None if total is None else total * done // max(1, self._tasks)

    def in_session(self, spark: SparkSession) -> AbstractContextManager[None]:
        """Tell about once a second, as the session can be asked."""
        return asked(spark, self._poll, self._on_progress, self._over)

    def _poll(self, spark: SparkSession) -> None:
        while not self._over.wait(_EVERY_S):
            tracker = spark.sparkContext.statusTracker()
            found = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            self.tell(sum(info.numCompletedTasks for info in found if info is not None))

    def _on_progress(self, stages: Any, done: bool, **_: Any) -> None:
        """What a Connect endpoint sends by itself."""
        if stages and not done:
            self.tell(min(self._tasks, sum(stage.num_completed_tasks for stage in stages)))


@contextmanager
def asked(
    spark: SparkSession,
    poll: Callable[[SparkSession], None],
    handler: Callable[..., None],
    over: threading.Event,
) -> Iterator[None]:
    """Have a session watched: by `poll` in a thread, until it is `over`; a Connect endpoint calls
    `handler` by itself."""
    if hasattr(spark, "_jsparkSession"):
        thread = threading.Thread(target=poll, args=(spark,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(_EVERY_S)
    else:
        told: Any = handler
        spark.registerProgressHandler(told)
        try:
            yield
        finally:
            spark.removeProgressHandler(told)


def _time_to_go(
    elapsed: float, done: int, tasks: int, size: int | None, total: int | None
) -> float | None:
    if size and total:
        return elapsed * max(0, total - size) / size
    return elapsed * (tasks - done) / done if done else None
