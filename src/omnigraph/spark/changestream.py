"""The change feed of a branch as a stream: one row for each entity that a commit changed.

Of one type, with its columns (those of a delete are the row as it was):

    _op, _commit, _sequence, then the columns of the type

Of all types, which is what another graph is kept equal by:

    _op, _commit, _sequence, _kind, _type, id, _row (the new row as an envelope; null of a delete)

An offset is the number of a commit on its branch.

Guarantees: exact offsets: the rows between two of them are the same however often they are read, so
a sink that remembers batches gets every change once; whole commits only, at most `maxCommits` in a
batch.
Deliberately absent: order inside a batch. `_sequence` says which change of an entity is the last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)

from omnigraph.engines.spark.sparktypes import arrow_type, column_types, spark_schema
from omnigraph.history.ancestry import Place
from omnigraph.history.images import TableDiff
from omnigraph.intake.outputs import to_lines
from omnigraph.model.catalog import ID_COLUMN
from omnigraph.model.change import Change, ChangeFilter, ChangeOp
from omnigraph.model.location import Location
from omnigraph.model.principal import Principal
from omnigraph.model.types import I64, STRING, ValueType
from omnigraph.operations.lifecycle import attach
from omnigraph.operations.requests import FindOffset, ReadTableChanges, ReadTypeChanges, Request
from omnigraph.operations.verbs import run
from omnigraph.rows.checks import TableType
from omnigraph.rows.columns import combined

R = TypeVar("R")
OP, SEQUENCE, TYPE, ROW = "_op", "_sequence", "_type", "_row"
OWN: dict[str, ValueType] = {OP: STRING, "_commit": STRING, SEQUENCE: I64}
_WHOLE: dict[str, ValueType] = {
    **OWN,
    "_kind": STRING,
    TYPE: STRING,
    ID_COLUMN: STRING,
    ROW: STRING,
}
MOST_COMMITS = 256
_BATCH_ROWS = 10_000
_COMMITS_AT_ONCE = 16


def change_schema(table: TableType | None) -> str:
    """The columns of a stream; without a type: of all types."""
    if table is None:
        return ", ".join(
            f"{name} {'bigint' if type_ is I64 else 'string'}" for name, type_ in _WHOLE.items()
        )
    return f"_op string, _commit string, _sequence bigint, {spark_schema(table)}"


class ChangeStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads what commits changed. `table` None: of all types."""

    def __init__(
        self,
        location: Location,
        branch: str,
        table: TableType | None,
        start: str,
        columns: Sequence[str],
        most_commits: int = MOST_COMMITS,
        principal: Principal | None = None,
    ) -> None:
        self._location = location
        self._branch = branch
        self._table = table
        self._start = start
        self._columns = list(columns)
        self._most_commits = most_commits
        self._last: int | None = None
        self._principal = principal

    def _run(self, request: Request[R]) -> R:
        return run(attach(self._location, self._principal), request)

    def _offset(self, start: str) -> int:
        return self._run(FindOffset(start, self._branch))

    def initialOffset(self) -> dict[str, int]:
        return {"sequence": self._offset(self._start)}

    def prepareForTriggerAvailableNow(self) -> None:
        self._last = self._offset("now")

    def getDefaultReadLimit(self) -> ReadLimit:
        # Spark knows no commits; of its units files come closest.
        return ReadMaxFiles(self._most_commits)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        head = self._offset("now") if self._last is None else self._last
        if not isinstance(limit, ReadAllAvailable):
            head = min(head, start["sequence"] + self._most_commits)
        return {"sequence": max(head, start["sequence"])}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        first, last = start["sequence"] + 1, end["sequence"]
        return [
            InputPartition((low, min(low + _COMMITS_AT_ONCE - 1, last)))
            for low in range(first, last + 1, _COMMITS_AT_ONCE)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        low, high = partition.value
        if self._table is None:
            for place, tables in self._run(ReadTableChanges(low, high, self._branch)):
                for found in tables:
                    yield from self._envelopes(place, found)
        else:
            yield from self._rows(low, high, self._table)

    def commit(self, end: dict[str, int]) -> None:
        """Nothing to do: the graph keeps nothing about its readers."""

    # All types.

    def _envelopes(self, place: Place, found: TableDiff) -> Iterator[pa.RecordBatch]:
        """One piece of what a commit changed in one table."""
        after, table = found.after, found.types.newer
        old = found.before.column(ID_COLUMN)
        gone = old.filter(pc.invert(pc.is_in(old, value_set=after.column(ID_COLUMN))))
        if len(gone):
            yield self._whole(place, found, gone, None, None)
        if after.num_rows:
            assert table is not None  # a type that is no more has no rows
            lines = pa.array(to_lines(table, after).decode().split("\n")[:-1], pa.string())
            known = pc.is_in(after.column(ID_COLUMN), value_set=old)
            yield self._whole(place, found, after.column(ID_COLUMN), known, lines)

    def _whole(
        self, place: Place, found: TableDiff, ids: Any, known: Any, lines: pa.Array | None
    ) -> pa.RecordBatch:
        count, shown = len(ids), found.types.shown
        ops = pa.repeat(str(ChangeOp.DELETE), count)
        if known is not None:
            ops = pc.if_else(known, str(ChangeOp.UPDATE), str(ChangeOp.INSERT))
        values = {
            OP: ops,
            "_commit": pa.repeat(place.commit.id, count),
            SEQUENCE: pa.repeat(place.commit.sequence, count),
            "_kind": pa.repeat(str(shown.kind), count),
            TYPE: pa.repeat(shown.name, count),
            ID_COLUMN: ids,
            ROW: pa.nulls(count, pa.string()) if lines is None else lines,
        }
        fields = [pa.field(name, arrow_type(_WHOLE[name])) for name in self._columns]
        arrays = [combined(values[field.name]).cast(field.type) for field in fields]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    # One type.

    def _rows(self, low: int, high: int, table: TableType) -> Iterator[pa.RecordBatch]:
        wanted = ChangeFilter(types=frozenset({table.name}))
        held: list[dict[str, Any]] = []
        for place, changes in self._run(ReadTypeChanges(low, high, self._branch, wanted)):
            for change in changes:
                held.append(_row(change, place.commit.id, place.commit.sequence))
                if len(held) >= _BATCH_ROWS:
                    yield self._batch(held, table)
                    held = []
        if held:
            yield self._batch(held, table)

    def _batch(self, rows: list[dict[str, Any]], table: TableType) -> pa.RecordBatch:
        types = {**OWN, **column_types(table)}
        fields = [pa.field(name, arrow_type(types[name])) for name in self._columns]
        arrays = [pa.array([row.get(f.name) for row in rows], f.type) for f in fields]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _row(change: Change, commit_id: str, sequence: int) -> dict[str, Any]:
    image = change.before if change.op is ChangeOp.DELETE else change.after
    own = {OP: str(change.op), "_commit": commit_id, SEQUENCE: sequence}
    return {**(image or {}), "id": change.id, **own}
