"""A list of values through a function on executors: one task and one answer for each.

    sizes = SparkRunner(spark).run(measure, files, "measure the files")

Guarantees: answers come in the order of the values; Spark repeats a task that failed and may run
one twice, but exactly one answer of each is used, and that is checked; a task that raised an error
of ours fails the job at once with that error, storage failures aside: those are worth another try.
Deliberately absent: rows. Answers are small; rows stay where they were written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.bulk.runner import Answer, Item, Measure
from omnigraph.engines.spark.driverenv import carried, lent
from omnigraph.engines.spark.jobevents import Tally, Watch
from omnigraph.engines.spark.session import is_classic, parallelism
from omnigraph.engines.spark.sparkerrors import translated
from omnigraph.engines.spark.workergc import spare_collector
from omnigraph.errors import InvariantViolationError, OmniGraphError, StorageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The place of an item, the attempt that answered, and the answer in a form that travels.
_Reply = tuple[int, int, bytes]
_Task = Callable[[int, Any], _Reply]

_ANSWERS = "place long, attempt int, answer binary"


class SparkRunner:
    """Each item in a task of its own, on executors."""

    def __init__(self, spark: SparkSession, watch: Watch | None = None) -> None:
        self._spark = spark
        self._watch = watch or Watch()
        self.width = parallelism(spark)

    def run(
        self,
        function: Callable[[Item], Answer],
        items: Sequence[Item],
        what: str,
        measure: Measure | None = None,
    ) -> list[Answer]:
        if not items:
            return []
        counters = self._counters(measure)
        tally = _tally(items, measure, counters)
        task = _task(function, measure, counters)
        with translated(what), self._watch.following(self._spark, what, len(items), tally):
            answers = _unpack(self._collect(task, items), len(items), what)
            if measure is not None:
                pairs = [measure.of(*each) for each in zip(items, answers, strict=True)]
                tally.settle(sum(rows for rows, _ in pairs), sum(size for _, size in pairs))
        return answers

    def _collect(self, task: _Task, items: Sequence[Any]) -> list[_Reply]:
        """Without SQL where there is a choice: planning and compiling a query takes a new session
        longer than a small load. Items travel together, since they share most of what they are
        made of; one by one they would come to the square of it."""
        spark = self._spark
        if is_classic(spark):
            places = spark.sparkContext.parallelize(range(len(items)), len(items))
            return places.map(lambda place: task(place, items[place])).collect()
        ids = spark.range(0, len(items), 1, len(items))
        return [tuple(row) for row in ids.mapInArrow(_in_arrow(task, items), _ANSWERS).collect()]

    def _counters(self, measure: Measure | None) -> tuple[Any, Any] | None:
        """Numbers that tasks add to when they end; a Connect endpoint has none."""
        if measure is None or not self._watch.listens or not is_classic(self._spark):
            return None
        context = self._spark.sparkContext
        return context.accumulator(0), context.accumulator(0)


def _tally(
    items: Sequence[Any], measure: Measure | None, counters: tuple[Any, Any] | None
) -> Tally:
    if measure is None:
        return Tally()
    total = None if measure.of_answers else sum(measure.bytes(item) for item in items)
    if counters is None:
        return Tally(total)
    rows, size = counters
    return Tally(total, lambda: (int(rows.value), int(size.value)))


def _task(
    function: Callable[[Item], Answer],
    measure: Measure | None,
    counters: tuple[Any, Any] | None,
) -> _Task:
    variables = carried()

    def task(place: int, item: Item) -> _Reply:
        spare_collector()
        with lent(variables):
            answer = answer_of(function, item)
        if measure is not None and counters is not None:
            for counter, number in zip(counters, measure.of(item, answer), strict=True):
                counter.add(number)
        return place, attempt_number(), _packed(answer)

    return task


def _in_arrow(
    task: _Task, items: Sequence[Any]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for place in batch.column(0).to_pylist():
                yield _answer(*task(place, items[place]))

    return run


def answer_of(function: Callable[[Item], Answer], item: Item) -> object:
    """What a task has to say: an answer, or an error of ours."""
    try:
        return function(item)
    except StorageError:
        raise
    except OmniGraphError as error:
        return error


def _packed(answer: object) -> bytes:
    from pyspark import cloudpickle

    packed: bytes = cloudpickle.dumps(answer)  # type: ignore[no-untyped-call]
    return packed


def attempt_number() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else int(context.attemptNumber())


def _answer(place: int, attempt: int, packed: bytes) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [
            pa.array([place], pa.int64()),
            pa.array([attempt], pa.int32()),
            pa.array([packed], pa.binary()),
        ],
        names=["place", "attempt", "answer"],
    )


def _unpack(replies: Sequence[_Reply], expected: int, what: str) -> list[Any]:
    import pickle

    places = sorted(place for place, _, _ in replies)
    if places != list(range(expected)):
        raise InvariantViolationError(
            f"The Spark job to {what} sent {len(replies)} answers for {expected} tasks.",
            hint="Nothing was committed. Run it again, and report this.",
        )
    answers = {place: pickle.loads(bytes(packed)) for place, _, packed in replies}
    for place in range(expected):
        if isinstance(answers[place], OmniGraphError):
            raise answers[place]
    return [answers[place] for place in range(expected)]
