"""Rows of node and edge types, read on executors, with conditions tested where they are read.

Guarantees: only used columns are read, and only those that are looked at later leave the task; a
type of a snapshot without rows gives none.
Deliberately absent: indexes. A query on Spark reads tables; what wants a few rows by an index is
quicker in the embedded engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.bulk.stagedkeys import shares
from omnigraph.engines.expressions.evaluate import holds
from omnigraph.engines.expressions.functions import as_type
from omnigraph.engines.expressions.keyids import key_ids
from omnigraph.engines.snapshotreader import visible_ids
from omnigraph.engines.spark.queries.batches import BatchRows, Constants
from omnigraph.engines.spark.queries.columnnames import Bound, Field, Held, Layout
from omnigraph.engines.spark.queries.flow import Flow, filtered
from omnigraph.engines.spark.queries.run import TINY_ROWS, Run
from omnigraph.engines.spark.queries.wanted import late_predicates
from omnigraph.engines.spark.session import parallelism
from omnigraph.engines.spark.sparktypes import arrow_type, spark_type, to_spark_type
from omnigraph.engines.spark.workergc import spare_collector
from omnigraph.ir.expr import Expr, Property
from omnigraph.ir.fold import parts
from omnigraph.model.catalog import DST_COLUMN, ID_COLUMN, SRC_COLUMN, EdgeType, NodeType
from omnigraph.model.snapshot import TableVersion
from omnigraph.model.types import STRING, ValueType
from omnigraph.plan.operators import NodeVar
from omnigraph.storage.distributed import list_files, scan_files
from omnigraph.storage.table import open_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TableType = NodeType | EdgeType
# A column of a flow, the property it holds (None: nothing, all null) and its type.
ReadColumn = tuple[str, str | None, ValueType]
_PLAIN = frozenset({ID_COLUMN, SRC_COLUMN, DST_COLUMN})
# A table of so few rows is read here; handing it to a task would take longer, and Spark then knows
# how small it is.
_FEW_ROWS = 1_000


@dataclass(frozen=True)
class Reading:
    """How a task reads one table. `wanted` are the columns to hand on: name in the flow, property,
    type; a property that the table lacks is null."""

    table: TableType
    var: str
    wanted: tuple[ReadColumn, ...]
    predicates: tuple[Expr, ...]
    present: frozenset[str]  # physical columns of the version

    def needed(self) -> dict[str, str]:
        """Properties to read, with their physical columns."""
        names = [ID_COLUMN, *(name for _, name, _ in self.wanted if name is not None)]
        for predicate in self.predicates:
            names += [part.name for part in parts(predicate) if isinstance(part, Property)]
        found = {name: _physical(self.table, name) for name in dict.fromkeys(names)}
        return {name: c for name, c in found.items() if c is not None and c in self.present}

    def shape(self, rows: pa.RecordBatch, given: Constants) -> pa.RecordBatch:
        """The rows for which the conditions hold, in the columns of the flow."""
        needed = self.needed()
        if self.predicates:
            types = {name: property_type(self.table, name) or STRING for name in needed}
            held: dict[Field, Held] = {(n, None): Held(needed[n], types[n]) for n in needed}
            layout = Layout({self.var: Bound((self.table.name,), ID_COLUMN, None, held)})
            rows = rows.filter(pa.array(holds(self.predicates, BatchRows(rows, layout, given))))
        arrays = [self._column(rows, needed, name, type_) for _, name, type_ in self.wanted]
        return pa.RecordBatch.from_arrays(arrays, names=[name for name, _, _ in self.wanted])

    def _column(
        self, rows: pa.RecordBatch, needed: dict[str, str], name: str | None, type_: ValueType
    ) -> pa.Array:
        if name is None or name not in needed:
            return pa.nulls(rows.num_rows, arrow_type(type_))
        values = as_type(rows.column(needed[name]), type_.to_arrow())
        return to_spark_type(values, arrow_type(type_))


def _physical(table: TableType, name: str) -> str | None:
    if name in _PLAIN:
        return name
    found = table.get(name)
    return None if found is None else found.column


def property_type(table: TableType, name: str) -> ValueType | None:
    if name in _PLAIN:
        return STRING
    found = table.get(name)
    return None if found is None else found.type


def scan(node: NodeVar, run: Run) -> Flow:
    """The nodes of a variable that satisfy what is said of it alone."""
    late = late_predicates(node.predicates)
    early = tuple(p for p in node.predicates if p not in late)
    tables = [run.node(name) for name in node.types]
    key = None if node.key is None else key_ids(node.key, run.given)
    flow = read(tables, node.var, run.wanted(node.var), early, run, key=key)
    if late:
        from omnigraph.engines.spark.queries.matchsearch import looked_up

        flow = filtered(looked_up(flow, late, run), late, run)
    return flow


def read(
    tables: Sequence[TableType],
    var: str,
    fields: Sequence[Field],
    predicates: tuple[Expr, ...],
    run: Run,
    key: list[str] | None = None,
) -> Flow:
    """Rows of one or several types under one variable."""
    from pyspark.sql import functions as f

    bound = bound_to(tables, fields, run)
    frames: list[DataFrame] = []
    for table in tables:
        frame = table_frame(table, var, columns_of(table, bound), predicates, run, key)
        kind = bound.type_column
        frames.append(frame if kind is None else frame.withColumn(kind, f.lit(table.name)))
    return Flow(united(frames, [bound], run), Layout({var: bound}))


def bound_to(tables: Sequence[TableType], fields: Sequence[Field], run: Run) -> Bound:
    """New columns for a variable of these types."""
    held = {field: Held(run.fresh(), _type_of(tables, field)) for field in fields}
    kind = run.fresh() if len(tables) != 1 else None
    return Bound(tuple(t.name for t in tables), run.fresh(), kind, held)


def columns_of(table: TableType, bound: Bound) -> tuple[ReadColumn, ...]:
    """What to read of a table for a variable: its id, and the properties that it has."""
    wanted: list[ReadColumn] = [(bound.id_column, ID_COLUMN, STRING)]
    for (name, only), held in bound.properties.items():
        here = only is None or only == table.name
        fits = here and _alike(property_type(table, name), held.type)
        wanted.append((held.column, name if fits else None, held.type))
    return tuple(wanted)


def _type_of(tables: Sequence[TableType], field: Field) -> ValueType:
    name, only = field
    found = (property_type(t, name) for t in tables if only is None or t.name == only)
    return next((type_ for type_ in found if type_ is not None), STRING)


def united(frames: list[DataFrame], bounds: Sequence[Bound], run: Run) -> DataFrame:
    """Frames with the columns of these variables, one below the other."""
    if not frames:
        columns = [f"{name} string" for bound in bounds for name in bound.identity]
        held = [h for bound in bounds for h in bound.properties.values()]
        columns += [f"{h.column} {spark_type(h.type)}" for h in held]
        return run.spark.createDataFrame([], ", ".join(columns)).coalesce(1)
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.unionByName(frame)
    return whole.coalesce(1) if run.is_tiny and len(frames) > 1 else whole


def _alike(found: ValueType | None, wanted: ValueType) -> bool:
    return found is not None and found.to_arrow() == wanted.to_arrow()


def table_frame(
    table: TableType,
    var: str,
    wanted: tuple[ReadColumn, ...],
    predicates: tuple[Expr, ...],
    run: Run,
    key: list[str] | None = None,
) -> DataFrame:
    """Columns of one table, by the names of the flow."""
    schema = ", ".join(f"{name} {spark_type(type_)}" for name, _, type_ in wanted)
    version = run.snapshot.table(table.id)
    if version is None or version.rows == 0 or key == []:
        return run.spark.createDataFrame([], schema).coalesce(1)
    present = frozenset(open_table(run.location, version).schema.names)
    reading = Reading(table, var, wanted, predicates, present)
    columns = list(dict.fromkeys(reading.needed().values()))
    location, given = run.location, run.given
    chosen = None if key is None else pa.array(key, pa.string())
    ids = visible_ids(run.snapshot, table)

    def rows_of(files: Sequence[int]) -> Iterator[pa.RecordBatch]:
        which: Any = None if chosen is None else pc.field(ID_COLUMN).isin(chosen)
        for rows in scan_files(location, version, files, columns, filter=which, ids=ids):
            shaped = reading.shape(rows, given)
            if shaped.num_rows:
                yield shaped

    return by_files(rows_of, version, schema, run)


def by_files(
    rows_of: Callable[[Sequence[int]], Iterator[pa.RecordBatch]],
    version: TableVersion,
    schema: str,
    run: Run,
) -> DataFrame:
    """What a function makes of the files of a table: in tasks, or here where rows are few."""
    files = list_files(run.location, version)
    if version.rows <= _FEW_ROWS:
        batches = list(rows_of([number for number, _ in files]))
        if not batches:
            return run.spark.createDataFrame([], schema).coalesce(1)
        return run.spark.createDataFrame(pa.Table.from_batches(batches), schema).coalesce(1)
    most = 1 if version.rows <= TINY_ROWS else parallelism(run.spark)
    groups = [
        [number for number, _ in group] for group in shares(files, lambda file: file[1], most)
    ]

    def read_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spare_collector()
        for batch in batches:
            for place in batch.column(0).to_pylist():
                yield from rows_of(groups[place])

    return run.spark.range(0, len(groups), 1, len(groups)).mapInArrow(read_rows, schema)
