"""Total order: sort keys, then ids; and the first rows of it.

Nulls first ascending and last descending; NaN larger than any number; texts by code points, nodes
by id and then by type.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from omnigraph.engines.expressions.evaluate import bounds_of
from omnigraph.engines.spark.queries.columnnames import Bound
from omnigraph.engines.spark.queries.flow import Flow, Key, computed
from omnigraph.engines.spark.queries.run import Run
from omnigraph.ir.expr import Entity, Expr
from omnigraph.ir.query import OrderKey


def sort(flow: Flow, keys: Sequence[OrderKey], ties: Sequence[str], run: Run) -> Flow:
    """The same rows, with word of their order."""
    values = [key for key in keys if not isinstance(key.expr, Entity)]
    flow, names = computed(flow, [key.expr for key in values], run)
    by_key = dict(zip((id(key) for key in values), names, strict=True))
    order: list[Key] = []
    for key in keys:
        if isinstance(key.expr, Entity):
            flow, found = by_entity(flow, flow.layout.entities[key.expr.var], key.descending, run)
            order += found
        else:
            order.append(Key(by_key[id(key)], key.descending))
    for name in ties:
        if name in flow.layout.entities:
            flow, found = by_entity(flow, flow.layout.entities[name], False, run)
            order += found
        else:
            order.append(Key(flow.layout.values[name].column))
    return Flow(flow.frame, flow.layout, tuple(dict.fromkeys(order)))


def by_entity(flow: Flow, bound: Bound, descending: bool, run: Run) -> tuple[Flow, list[Key]]:
    """Nodes and edges by id, then by the order of their types."""
    from pyspark.sql import functions as f

    keys = [Key(bound.id_column, descending)]
    if bound.type_column is None or not bound.types:
        return flow, keys
    kind = f.col(bound.type_column)
    first = f.when(kind == bound.types[0], f.lit(0))
    places = enumerate(bound.types[1:], 1)
    place = reduce(lambda case, at: case.when(kind == at[1], f.lit(at[0])), places, first)
    name = run.fresh()
    return flow.on(flow.frame.withColumn(name, place)), [*keys, Key(name, descending)]


def cut(flow: Flow, offset: Expr | None, limit: Expr | None, run: Run) -> Flow:
    """The first rows of the order, after those that are skipped."""
    skipped, wanted = bounds_of(offset, limit, run.given)
    flow = flow.pruned(run)
    frame = in_order(flow).frame
    if skipped:
        frame = frame.offset(skipped)
    if wanted is not None:
        frame = frame.limit(wanted)
    return flow.on(frame)


def in_order(flow: Flow) -> Flow:
    """The rows where one can see their order."""
    if not flow.order:
        return flow
    return flow.on(flow.frame.orderBy(*(key.spark() for key in flow.order)))
