"""Running set checks over what a load has staged: tasks for executors, findings for the driver.

    breaches = Inspector(runner, batch).inspect()

Which checks there are is `rows.setchecks`' word; how each is spread over tasks is ours.

Guarantees: all checks run in one Spark job, after one for repeated ids; the driver holds places and
counts, never rows; places are turned into records and lines by reading their parts again, which
costs only a load that fails.
Deliberately absent: deciding what happens to rows that break a rule (`load`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.bulk.runner import Runner
from omnigraph.bulk.stagedkeys import (
    MOST_ENDS,
    MOST_KEYS,
    CommittedKeys,
    KeyRange,
    SampleTask,
    StagedKeys,
)
from omnigraph.bulk.verdicts import (
    AttachedTask,
    CountTask,
    EndpointTask,
    RepeatTask,
    TakenTask,
    Task,
    UniqueTask,
    Verdict,
    run_task,
)
from omnigraph.errors import Violation
from omnigraph.model.catalog import ID_COLUMN, SRC_COLUMN
from omnigraph.model.location import Location
from omnigraph.model.snapshot import Snapshot
from omnigraph.rows import breaches
from omnigraph.rows.checks import TableType, logical_schema
from omnigraph.rows.deltas import TableDelta
from omnigraph.rows.findings import MOST, Numbers
from omnigraph.rows.setchecks import (
    Attached,
    Count,
    Endpoint,
    FreeId,
    SetCheck,
    Unique,
    set_checks,
)
from omnigraph.storage.distributed import list_files

# Says what is wrong, once it is known which record a place is.
Describe = Callable[[Callable[[int], int]], Violation]


@dataclass(frozen=True)
class Breach:
    """A staged row (or, without a place, the graph) that breaks a rule."""

    table: TableType
    place: int | None
    describe: Describe
    others: tuple[int, ...] = ()  # places that the description speaks of


@dataclass
class Breaches:
    """What was found: the first breaches, counts by rule, ids that exist, rows to leave out."""

    found: list[Breach] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    taken: dict[int, tuple[TableType, int, list[str]]] = field(default_factory=dict)
    # Rows to leave out if refused rows are set aside, and rows that a later one replaces.
    crowded: list[tuple[TableType, Numbers, Breach]] = field(default_factory=list)

    def add(self, total: int, found: Sequence[Breach]) -> None:
        self.found += found
        for breach in found[:1]:
            rule = breach.describe(lambda place: 0).rule
            self.counts[rule] = self.counts.get(rule, 0) + total


@dataclass(frozen=True)
class Batch:
    """All that a load has staged, over the snapshot that it was staged on."""

    snapshot: Snapshot
    location: Location
    staged: Mapping[int, StagedKeys]
    mode: str
    replaced: frozenset[int] = frozenset()  # tables all of whose committed rows go

    def committed(self, table_id: int) -> CommittedKeys | None:
        """The rows of a table as they are now, if there are any."""
        version = self.snapshot.table(table_id)
        if version is None or version.rows == 0:
            return None
        return CommittedKeys(self.location, version, tuple(list_files(self.location, version)))

    def remaining(self, table_id: int) -> CommittedKeys | None:
        """The same, unless the load replaces them all."""
        return None if table_id in self.replaced else self.committed(table_id)

    def checks(self) -> tuple[SetCheck, ...]:
        """What `plan` wants checked. It asks only whether there are rows, so one stands for all."""
        delta = {}
        for table_id in sorted({*self.staged, *self.replaced}):
            table = self.snapshot.catalog.table(table_id)
            assert table is not None
            keys = self.staged.get(table_id)
            schema = logical_schema(table)
            rows = pa.table([pa.nulls(1 if keys else 0, f.type) for f in schema], schema=schema)
            delta[table_id] = TableDelta(
                table,
                rows,
                replaces=table_id in self.replaced,
                strict=self.mode == "append",
                fresh=keys is not None and keys.fresh,
            )
        return set_checks(self.snapshot.catalog, delta)

    def reads(self) -> frozenset[int]:
        """Tables whose content the verdict rests on."""
        found = set()
        for check in self.checks():
            match check:
                case Endpoint() | Count():
                    found |= {check.edge.id, check.node.id}
                case Attached():
                    found |= {check.edge.id, check.node.id}
                case _:
                    found.add(check.table.id)
        return frozenset(found)


class Inspector:
    """Runs the checks of one batch."""

    def __init__(self, runner: Runner, batch: Batch, most: int = MOST) -> None:
        self._runner = runner
        self._batch = batch
        self._most = most
        self._width = runner.width

    # Repeated ids come first: the other checks rely on there being none.

    def repeated(self, *, last_wins: bool) -> tuple[Breaches, dict[int, Numbers]]:
        """Ids that occur twice, as breaches or as places that give way."""
        tasks: list[Task] = []
        owners: list[StagedKeys] = []
        for keys in self._batch.staged.values():
            if keys.fresh:
                continue
            for range_ in self._ranges(keys, None, (ID_COLUMN,)):
                tasks.append(RepeatTask(keys, range_, last_wins, self._most))
                owners.append(keys)
        found = Breaches()
        dropped: dict[int, Numbers] = {}
        for keys, verdict in zip(owners, self._run(tasks, "find repeated ids"), strict=True):
            found.add(verdict.total, list(_repeats(keys.target.table, verdict)))
            table_id = keys.target.table.id
            if len(verdict.dropped):
                held = dropped.get(table_id, np.empty(0, np.int64))
                dropped[table_id] = np.concatenate([held, verdict.dropped])
        return found, dropped

    def inspect(self) -> Breaches:
        """Everything else."""
        planned = [(check, task) for check in self._batch.checks() for task in self._plan(check)]
        verdicts = self._run([task for _, task in planned], "check keys, ends and numbers")
        found = Breaches()
        for (check, _), verdict in zip(planned, verdicts, strict=True):
            self._judge(check, verdict, found)
        return found

    def count_existing(self, table_id: int) -> int:
        """How many staged ids are those of committed rows."""
        keys, committed = self._batch.staged.get(table_id), self._batch.committed(table_id)
        if keys is None or committed is None or keys.fresh:
            return 0
        tasks = [TakenTask(keys, share, 0) for share in committed.shared_out(self._width)]
        return sum(verdict.total for verdict in self._run(tasks, "count existing ids"))

    def _run(self, tasks: Sequence[Task], what: str) -> list[Verdict]:
        return self._runner.run(run_task, tasks, what)

    def _ranges(
        self, staged: StagedKeys | None, committed: CommittedKeys | None, columns: tuple[str, ...]
    ) -> Sequence[KeyRange]:
        """One range while the keys fit into a task."""
        rows = (staged.rows if staged else 0) + (committed.rows if committed else 0)
        if rows <= MOST_KEYS:
            return (KeyRange(),)
        task = SampleTask(staged, committed, columns, rows)
        return self._runner.run(SampleTask.run, [task], "sample keys")[0]

    # Which tasks a check needs.

    def _plan(self, check: SetCheck) -> Iterator[Task]:
        match check:
            case FreeId():
                yield from self._plan_free(check)
            case Unique():
                yield from self._plan_unique(check)
            case Endpoint():
                yield from self._plan_endpoint(check)
            case Attached():
                yield from self._plan_attached(check)
            case Count():
                yield from self._plan_count(check)

    def _plan_free(self, check: FreeId) -> Iterator[Task]:
        committed = self._batch.committed(check.table.id)
        for share in committed.shared_out(self._width) if committed else ():
            yield TakenTask(self._batch.staged[check.table.id], share, self._most)

    def _plan_unique(self, check: Unique) -> Iterator[Task]:
        keys = self._batch.staged[check.table.id]
        committed = self._batch.remaining(check.table.id)
        for range_ in self._ranges(keys, committed, check.columns):
            yield UniqueTask(keys, committed, check.columns, range_, self._most)

    def _plan_endpoint(self, check: Endpoint) -> Iterator[Task]:
        nodes = self._batch.staged.get(check.node.id)
        committed = self._batch.remaining(check.node.id)
        for share in self._batch.staged[check.edge.id].shared_out(self._width, MOST_ENDS):
            yield EndpointTask(share, check.column, nodes, committed, self._most)

    def _plan_attached(self, check: Attached) -> Iterator[Task]:
        edges = self._batch.remaining(check.edge.id)
        nodes = self._batch.staged.get(check.node.id)
        for share in edges.shared_out(self._width) if edges else ():
            yield AttachedTask(share, check.column, nodes, self._most)

    def _plan_count(self, check: Count) -> Iterator[Task]:
        keys = self._batch.staged.get(check.edge.id)
        committed = self._batch.committed(check.edge.id)
        replaced = check.node.id in self._batch.replaced
        for range_ in self._ranges(keys, committed, (SRC_COLUMN,)):
            yield CountTask(
                keys,
                committed,
                check.edge.id in self._batch.replaced,
                check.edge.cardinality,
                self._batch.staged.get(check.node.id),
                replaced,
                range_,
                self._most,
            )

    # What a verdict means.

    def _judge(self, check: SetCheck, verdict: Verdict, found: Breaches) -> None:
        if not verdict.total:
            return
        match check:
            case FreeId():
                _judge_taken(check, verdict, found)
            case Unique():
                found.add(verdict.total, list(_not_unique(check, verdict)))
            case Endpoint():
                found.add(verdict.total, list(_no_node(check, verdict)))
            case Attached():
                found.add(verdict.total, list(_left(check, verdict)))
            case Count():
                _judge_counts(check, verdict, found)


def _fixed(violation: Violation) -> Describe:
    return lambda record_of: violation


def _repeats(table: TableType, verdict: Verdict) -> Iterator[Breach]:
    for place, id_, first in zip(verdict.places, verdict.values, verdict.others, strict=True):

        def describe(record_of: Any, id_: str = id_, first: int = first) -> Violation:
            return breaches.repeated_id(table, id_, record_of(first))

        yield Breach(table, int(place), describe, (first,))


def _judge_taken(check: FreeId, verdict: Verdict, found: Breaches) -> None:
    table, total, ids = found.taken.get(check.table.id, (check.table, 0, []))
    some = [*ids, *verdict.values][:MOST]
    found.taken[check.table.id] = (table, total + verdict.total, some)
    for place, id_ in zip(verdict.places, verdict.values, strict=True):
        violation = Violation("key", f"the id {id_!r} exists already", table.name, ID_COLUMN, id_)
        found.crowded.append(
            (table, np.array([place]), Breach(table, int(place), _fixed(violation)))
        )


def _not_unique(check: Unique, verdict: Verdict) -> Iterator[Breach]:
    for place, values, other in zip(verdict.places, verdict.values, verdict.others, strict=True):
        if isinstance(other, str):
            violation = breaches.not_unique(check, values, f"{check.table.name} {other!r}")
            yield Breach(check.table, int(place), _fixed(violation))
            continue

        def describe(record_of: Any, values: Any = values, other: int = other) -> Violation:
            return breaches.not_unique(check, values, f"record {record_of(other)}")

        yield Breach(check.table, int(place), describe, (other,))


def _no_node(check: Endpoint, verdict: Verdict) -> Iterator[Breach]:
    for place, id_ in zip(verdict.places, verdict.values, strict=True):
        yield Breach(check.edge, int(place), _fixed(breaches.no_such_node(check, id_)))


def _left(check: Attached, verdict: Verdict) -> Iterator[Breach]:
    for node_id, edge_id in zip(verdict.values, verdict.others, strict=True):
        yield Breach(check.edge, None, _fixed(breaches.left_pointing(check, edge_id, node_id)))


def _judge_counts(check: Count, verdict: Verdict, found: Breaches) -> None:
    told = []
    for place, source, count in zip(verdict.places, verdict.values, verdict.others, strict=True):
        violation = breaches.miscounted(check, source, int(count))
        told.append(Breach(check.edge, None if place < 0 else int(place), _fixed(violation)))
    found.add(verdict.total, told)
    if told and len(verdict.dropped):
        found.crowded.append((check.edge, verdict.dropped, told[0]))
