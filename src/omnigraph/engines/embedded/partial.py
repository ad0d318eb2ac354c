"""Groups over rows that come in parts, without ever holding all of the rows.

Counts, sums, averages and extremes of parts are merged; where an aggregate must see each value
once, the parts are cut down to distinct rows of what it needs; only `collect` keeps what it
collects.

Guarantees: the same groups as over all rows at once, in the order of their first row.
Deliberately absent: how one part is grouped (`aggregation`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from omnigraph.engines.embedded.aggregation import (
    Part,
    aggregate,
    average_of,
    distinct,
    extreme_of,
    groups_of,
)
from omnigraph.engines.embedded.frame import Frame, stack
from omnigraph.engines.embedded.projection import project, repeated
from omnigraph.engines.embedded.reduction import sums_by_row
from omnigraph.engines.embedded.rownumbers import Array
from omnigraph.engines.embedded.run import Run
from omnigraph.ir.expr import Aggregate as AggregateExpr
from omnigraph.ir.expr import AggregateFn, Entity, Expr, ValueRef
from omnigraph.ir.query import Projection
from omnigraph.model.types import I64, Kind
from omnigraph.plan.liveness import ignores_repeats
from omnigraph.plan.operators import Aggregate

# Distinct rows of several parts are made distinct again when they have grown to this many.
_TIDY_ROWS = 4_000_000


def aggregate_parts(operator: Aggregate, parts: Iterator[Frame], run: Run) -> Frame:
    """One row per group of all parts together."""
    first = next(parts)
    second = next(parts, None)
    if second is None:
        return aggregate(operator, first, run)
    every = _chain(first, second, parts)
    if all(_merges(call) for _, call in operator.aggregates):
        return _merged(operator, every, run)
    return _over_needed(operator, every, run)


def distinct_parts(parts: Iterator[Frame], run: Run) -> Frame:
    """Each combination of values of all parts once."""
    kept: list[Frame] = []
    for part in parts:
        kept.append(distinct(part, run))
        if len(kept) > 1 and sum(f.rows for f in kept) > _TIDY_ROWS:
            kept = [distinct(stack(kept), run)]
    return kept[0] if len(kept) == 1 else distinct(stack(kept), run)


def _chain(first: Frame, second: Frame, rest: Iterator[Frame]) -> Iterator[Frame]:
    yield first
    yield second
    yield from rest


# Merging


def _merges(call: AggregateExpr) -> bool:
    if call.distinct or call.fn is AggregateFn.COLLECT:
        return False
    # Sums of 64-bit integers are exact only if they are added up before they are rounded.
    adds = call.fn in (AggregateFn.SUM, AggregateFn.AVG)
    return not (adds and call.arg is not None and call.arg.type.kind in (Kind.I64, Kind.U64))


def _merged(operator: Aggregate, parts: Iterator[Frame], run: Run) -> Frame:
    steps = tuple(step for name, call in operator.aggregates for step in _steps(name, call))
    inner = replace(operator, aggregates=steps)
    whole = stack([aggregate(inner, part, run) for part in parts])
    keys = tuple(Projection(k.name, _again(k.name, k.expr)) for k in operator.keys)
    groups = groups_of(keys, whole, run)
    found = whole.take(groups.first) if keys else whole.cut(0, 1)
    values = {k.name: found.values[k.name] for k in keys if not isinstance(k.expr, Entity)}
    for name, call in operator.aggregates:
        values[name] = _folded(name, call, whole, groups.of, groups.count)
    entities = {k.name: found.entities[k.name] for k in keys if isinstance(k.expr, Entity)}
    return Frame(groups.count, entities, values)


def _again(name: str, expr: Expr) -> Expr:
    """A key of a part, which is a column by now."""
    if isinstance(expr, Entity):
        return Entity(name, expr.types, expr.type)
    return ValueRef(name, expr.type)


def _steps(name: str, call: AggregateExpr) -> Iterator[tuple[str, AggregateExpr]]:
    """What each part must tell so that the aggregate of all can be had."""
    if call.fn is AggregateFn.AVG:
        yield name, replace(call, fn=AggregateFn.SUM)
        yield f"{name} rows", AggregateExpr(AggregateFn.COUNT, call.arg, False, I64)
    else:
        yield name, call


def _folded(name: str, call: AggregateExpr, whole: Frame, of: Array, count: int) -> pa.Array:
    if call.fn is AggregateFn.COUNT:
        return pa.array(sums_by_row(of, whole.values[name].to_numpy(), count))
    values = whole.values[name]
    rows = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
    part = Part(values.take(pa.array(rows)), of[rows], None, count)
    if call.fn is AggregateFn.AVG:
        counts = sums_by_row(of, whole.values[f"{name} rows"].to_numpy(), count)
        return average_of(part, counts)
    if call.fn is AggregateFn.SUM:
        return part.sums()
    return extreme_of(part, call.fn).cast(call.type.to_arrow())


# Keeping what is needed


def _over_needed(operator: Aggregate, parts: Iterator[Frame], run: Run) -> Frame:
    """Reduce every part to the columns that keys and aggregates look at; group at the end."""
    columns = [*operator.keys]
    calls: list[tuple[str, AggregateExpr]] = []
    for name, call in operator.aggregates:
        if call.arg is None:
            calls.append((name, call))
        else:
            columns.append(Projection(f"{name} of", call.arg))
            calls.append((name, replace(call, arg=_again(f"{name} of", call.arg))))
    blind = all(ignores_repeats(call) for _, call in operator.aggregates)
    reduced = (_reduced(tuple(columns), part, blind, run) for part in parts)
    whole = distinct_parts(reduced, run) if blind else stack(list(reduced))
    keys = tuple(Projection(k.name, _again(k.name, k.expr)) for k in operator.keys)
    return aggregate(replace(operator, keys=keys, aggregates=tuple(calls)), whole, run)


def _reduced(columns: tuple[Projection, ...], part: Frame, blind: bool, run: Run) -> Frame:
    if blind:
        return project(columns, Frame(part.rows, part.entities, part.values, part.scores), run)
    return project(columns, repeated(part), run)
