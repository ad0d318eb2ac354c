"""Rows of a plan as a DataFrame, and steps that concern one row at a time.

A flow has no order that one could see; it knows the columns by which it is ordered, and whoever
cuts, collects or returns rows sorts by them.

Guarantees: immutable. Expressions are computed by Spark where it means the same (`native`), and
otherwise by our own evaluator inside tasks, all of one step together.
Deliberately absent: steps that look at several rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.engines.expressions.evaluate import column as evaluated
from omnigraph.engines.expressions.evaluate import holds
from omnigraph.engines.spark.queries.batches import BatchRows
from omnigraph.engines.spark.queries.columnnames import Held, Layout
from omnigraph.engines.spark.queries.native import Native
from omnigraph.engines.spark.queries.run import Run
from omnigraph.engines.spark.sparktypes import arrow_type, spark_type, to_spark_type
from omnigraph.ir.expr import Entity, Expr
from omnigraph.ir.query import Projection

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class Key:
    """A column to sort by: nulls first ascending, last descending."""

    column: str
    descending: bool = False

    def spark(self) -> Column:
        from pyspark.sql import functions as f

        named = f.col(self.column)
        return named.desc_nulls_last() if self.descending else named.asc_nulls_first()


@dataclass(frozen=True)
class Flow:
    """Rows, what their columns are, and their order."""

    frame: DataFrame
    layout: Layout
    order: tuple[Key, ...] = ()

    def on(self, frame: DataFrame, layout: Layout | None = None) -> Flow:
        return replace(self, frame=frame, layout=self.layout if layout is None else layout)

    def pruned(self, run: Run) -> Flow:
        """Without columns that are not used any more; at least one remains, to keep the row
        count."""
        from pyspark.sql import functions as f

        wanted = dict.fromkeys((*self.layout.columns(), *(key.column for key in self.order)))
        if not wanted:
            return self.on(self.frame.select(f.lit(True).alias(run.fresh())))
        if list(wanted) == self.frame.columns:
            return self
        return self.on(self.frame.select(*wanted))


def computed(flow: Flow, exprs: Sequence[Expr], run: Run) -> tuple[Flow, list[str]]:
    """The flow with a column for every expression, and the names of those columns."""
    native = Native(flow.layout, run.given)
    known = [native.reference(expr) for expr in exprs]
    names = [found or run.fresh() for found in known]
    fresh = [(n, e) for n, e, found in zip(names, exprs, known, strict=True) if found is None]
    by_spark = {name: native.column(expr) for name, expr in fresh}
    added = {name: c for name, c in by_spark.items() if c is not None}
    if added:
        flow = flow.on(flow.frame.withColumns(added))
    rest = [(name, expr) for name, expr in fresh if by_spark[name] is None]
    if rest:
        flow = _evaluated(flow, rest, list(added), run)
    return flow, names


def _evaluated(flow: Flow, exprs: list[tuple[str, Expr]], beside: list[str], run: Run) -> Flow:
    kept = flow.pruned(run).frame if not beside else flow.frame
    layout, given = flow.layout, run.given
    types = [arrow_type(expr.type) for _, expr in exprs]

    def evaluate(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = BatchRows(batch, layout, given)
            for (name, expr), wanted in zip(exprs, types, strict=True):
                values = to_spark_type(evaluated(expr, rows), wanted)
                batch = batch.append_column(name, values)
            yield batch

    return flow.on(through_tasks(kept, evaluate, [(n, spark_type(e.type)) for n, e in exprs]))


def filtered(flow: Flow, predicates: Sequence[Expr], run: Run) -> Flow:
    """The rows for which every predicate is true."""
    native = Native(flow.layout, run.given)
    rest: list[Expr] = []
    for predicate in predicates:
        condition = native.column(predicate)
        if condition is None:
            rest.append(predicate)
        else:
            flow = flow.on(flow.frame.where(condition))
    if not rest:
        return flow
    layout, given = flow.layout, run.given

    def test(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            kept = batch.filter(pa.array(holds(rest, BatchRows(batch, layout, given))))
            if kept.num_rows:
                yield kept

    flow = flow.pruned(run)
    return flow.on(through_tasks(flow.frame, test, []))


def through_tasks(frame: DataFrame, task: Task, added: Sequence[tuple[str, str]]) -> DataFrame:
    """A frame through a function over batches that adds columns of these types."""
    from pyspark.sql.types import StructType

    fields = list(frame.schema.fields)
    for name, type_ in added:
        more: Any = StructType.fromDDL(f"{name} {type_}")
        fields += more.fields
    return frame.mapInArrow(task, StructType(fields))


def projected(flow: Flow, columns: Sequence[Projection], run: Run) -> Flow:
    """New names for a next stage; bound nodes stay bound."""
    flow = repeated(flow, run)
    values = [item for item in columns if not isinstance(item.expr, Entity)]
    flow, names = computed(flow, [item.expr for item in values], run)
    layout = Layout()
    for item in columns:
        if isinstance(item.expr, Entity):
            layout = layout.bind(item.name, flow.layout.entities[item.expr.var])
    for item, name in zip(values, names, strict=True):
        layout = layout.bind_value(item.name, Held(name, item.expr.type))
    return flow.on(flow.frame, layout).pruned(run)


def repeated(flow: Flow, run: Run) -> Flow:
    """Weights as repeats of rows."""
    from pyspark.sql import functions as f

    weight = flow.layout.weight
    if weight is None:
        return flow
    flow = flow.on(flow.frame, replace(flow.layout, weight=None))
    repeats = f.explode(f.sequence(f.lit(1), f.col(weight)))
    return flow.on(flow.frame.where(f.col(weight) > 0).withColumn(run.fresh(), repeats)).pruned(run)


def settled(flow: Flow, run: Run) -> Flow:
    """The same rows, computed now, for what reads them more than once."""
    flow = flow.pruned(run)
    return flow.on(flow.frame.localCheckpoint(eager=True))
