"""Groups, aggregates and distinct rows.

Guarantees: weights count as repeats; nulls take part in no aggregate but form a group of their own
as a key; without keys there is exactly one group; what is collected comes in the order of the rows.
Sums of floats may differ in their last digits from one run to the next, since the order in which
parts are added up is Spark's.
Deliberately absent: the order of groups; a sort follows where it can be seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.engines.spark.queries.columnnames import Held, Layout
from omnigraph.engines.spark.queries.flow import Flow, computed, repeated
from omnigraph.engines.spark.queries.run import Run
from omnigraph.engines.spark.sparktypes import spark_type
from omnigraph.ir.expr import Aggregate as AggregateExpr
from omnigraph.ir.expr import AggregateFn, Entity
from omnigraph.model.types import FLOAT_KINDS
from omnigraph.plan.operators import Aggregate

if TYPE_CHECKING:
    from pyspark.sql import Column


def aggregate(operator: Aggregate, flow: Flow, run: Run) -> Flow:
    """One row per group: its keys and its aggregates."""
    calls = [call for _, call in operator.aggregates]
    if any(call.fn is AggregateFn.COLLECT for call in calls):
        flow = repeated(flow, run)
    values = [key for key in operator.keys if not isinstance(key.expr, Entity)]
    args = [c.arg for c in calls if c.arg is not None and not isinstance(c.arg, Entity)]
    flow, names = computed(flow, [*(key.expr for key in values), *args], run)
    layout = Layout()
    for key in operator.keys:
        if isinstance(key.expr, Entity):
            layout = layout.bind(key.name, flow.layout.entities[key.expr.var])
    for key, name in zip(values, names, strict=False):
        layout = layout.bind_value(key.name, Held(name, key.expr.type))
    # A node's properties follow from the node, so they may as well be keys.
    keys = list(dict.fromkeys(layout.columns()))
    flow, place = _places(flow, keys, calls, run)
    given = iter(names[len(values) :])
    made: list[Column] = []
    for name, call in operator.aggregates:
        column = run.fresh()
        arg = next(given) if call.arg is not None and not isinstance(call.arg, Entity) else None
        made.append(_aggregated(call, arg, flow, place).cast(spark_type(call.type)).alias(column))
        layout = layout.bind_value(name, Held(column, call.type))
    if not made:
        return Flow(flow.frame.dropDuplicates(keys), layout).pruned(run)
    grouped = flow.frame.groupBy(*keys) if keys else flow.frame.groupBy()
    return Flow(grouped.agg(*made), layout)


def _places(
    flow: Flow, keys: list[str], calls: list[AggregateExpr], run: Run
) -> tuple[Flow, str | None]:
    """Each row's place in its group, where something is collected in order."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    if not flow.order or not any(call.fn is AggregateFn.COLLECT for call in calls):
        return flow, None
    place = run.fresh()
    inside = Window.partitionBy(*keys).orderBy(*(key.spark() for key in flow.order))
    return flow.on(flow.frame.withColumn(place, f.row_number().over(inside))), place


def _aggregated(call: AggregateExpr, arg: str | None, flow: Flow, place: str | None) -> Column:
    from pyspark.sql import functions as f

    weight = None if flow.layout.weight is None or call.distinct else f.col(flow.layout.weight)
    if call.fn is AggregateFn.COUNT:
        return _count(call, arg, flow, weight)
    assert arg is not None
    assert call.arg is not None
    values = f.col(arg)
    if call.arg.type.kind in FLOAT_KINDS:
        values = values + f.lit(0.0).cast(spark_type(call.arg.type))  # -0.0 is 0.0
    match call.fn:
        case AggregateFn.SUM:
            return _sum(_summed(call, values), weight, call.distinct)
        case AggregateFn.AVG:
            return _average(_summed(call, values), weight, call.distinct)
        case AggregateFn.COLLECT:
            return _collected(values, place, call.distinct)
        case _:
            return _extreme(call, values)


def _count(call: AggregateExpr, arg: str | None, flow: Flow, weight: Column | None) -> Column:
    from pyspark.sql import functions as f

    if call.arg is None:
        return f.count(f.lit(1)) if weight is None else f.coalesce(f.sum(weight), f.lit(0))
    if isinstance(call.arg, Entity):
        bound = flow.layout.entities[call.arg.var]
        columns = [f.col(name) for name in bound.identity]
        present = f.col(bound.id_column).isNotNull()
    else:
        assert arg is not None
        value = f.col(arg)
        if call.arg.type.kind in FLOAT_KINDS:
            value = value + f.lit(0.0).cast(spark_type(call.arg.type))
        columns, present = [value], f.col(arg).isNotNull()
    if call.distinct:
        return f.count_distinct(*columns)
    if weight is None:
        return f.count(f.when(present, f.lit(1)))
    return f.coalesce(f.sum(f.when(present, weight)), f.lit(0))


def _summed(call: AggregateExpr, values: Column) -> tuple[Column, str]:
    """Numbers and the type in which they are added up: integers exactly, rounded at the end."""
    assert call.arg is not None
    if call.arg.type.kind in FLOAT_KINDS:
        return values, "double"
    return values, "decimal(38,0)"


def _sum(numbers: tuple[Column, str], weight: Column | None, distinct: bool) -> Column:
    from pyspark.sql import functions as f

    values, type_ = numbers
    if not distinct:
        added = values.cast("decimal(20,0)" if type_ != "double" else type_)
        return f.sum(added if weight is None else added * weight).cast("double")
    # Distinguished by their own type, added in the wide type.
    once = f.transform(f.array_sort(f.collect_set(values)), lambda v: v.cast(type_))
    total = f.aggregate(once, f.lit(0).cast(type_), lambda sum_, v: (sum_ + v).cast(type_))
    return f.when(f.size(f.collect_set(values)) > 0, total.cast("double"))


def _average(numbers: tuple[Column, str], weight: Column | None, distinct: bool) -> Column:
    from pyspark.sql import functions as f

    values, _ = numbers
    if distinct:
        rows = f.size(f.collect_set(values)).cast("double")
    elif weight is None:
        rows = f.count(values).cast("double")
    else:
        rows = f.sum(f.when(values.isNotNull(), weight)).cast("double")
    return f.when(rows > 0, _sum(numbers, weight, distinct) / rows)


def _extreme(call: AggregateExpr, values: Column) -> Column:
    from pyspark.sql import functions as f

    best = f.min if call.fn is AggregateFn.MIN else f.max
    assert call.arg is not None
    if call.arg.type.kind not in FLOAT_KINDS:
        return best(values)
    # What is no number counts only where there is nothing else.
    return f.coalesce(best(f.when(~f.isnan(values), values)), best(values))


def _collected(values: Column, place: str | None, distinct: bool) -> Column:
    from pyspark.sql import functions as f

    if place is None:
        found = f.collect_list(values)
    else:
        pair = f.struct(f.col(place).alias("at"), values.alias("value"))
        pairs = f.collect_list(f.when(values.isNotNull(), pair))
        found = f.transform(f.array_sort(pairs), lambda each: each["value"])
    return f.array_distinct(found) if distinct else found


def distinct(flow: Flow, run: Run) -> Flow:
    """Each combination of values once, where the first of them stands."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    names = (*flow.layout.entities, *flow.layout.values)
    columns = list(dict.fromkeys(c for name in names for c in flow.layout.identity(name)))
    if not columns:
        return flow.on(flow.frame.limit(1))
    if not flow.order:
        return flow.on(flow.frame.dropDuplicates(columns))
    place = run.fresh()
    inside = Window.partitionBy(*columns).orderBy(*(key.spark() for key in flow.order))
    numbered = flow.frame.withColumn(place, f.row_number().over(inside))
    return flow.on(numbered.where(f.col(place) == 1)).pruned(run)
