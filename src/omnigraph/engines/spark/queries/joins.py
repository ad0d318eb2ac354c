"""Joins of flows: by equal values, all pairs, and correlated plans inside others.

A correlated plan runs once over the distinct values of what it shares with the rows around it; what
comes back is joined to those rows by the same values.

Guarantees: null equals nothing in a join of two patterns, and equals itself where a correlated plan
finds back to its rows.
Deliberately absent: traversals; those are expansions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from omnigraph.engines.spark.queries.columnnames import Held, Layout
from omnigraph.engines.spark.queries.flow import Flow, computed
from omnigraph.engines.spark.queries.run import Run
from omnigraph.plan.operators import Exists, Join, Optional

if TYPE_CHECKING:
    from pyspark.sql import Column

Inner = Callable[[Flow], Flow]


def join(operator: Join, left: Flow, right: Flow, run: Run) -> Flow:
    """Pairs of rows with equal keys."""
    from pyspark.sql import functions as f

    left, ours = computed(left, [here for here, _ in operator.keys], run)
    right, theirs = computed(right, [there for _, there in operator.keys], run)
    if ours:
        on = [f.col(a) == f.col(b) for a, b in zip(ours, theirs, strict=True)]
        frame = left.frame.join(run.hinted(right.frame), reduce(lambda a, b: a & b, on), "inner")
    else:
        frame = left.frame.crossJoin(right.frame.hint("shuffle_replicate_nl"))
    layout = left.layout.beside(right.layout)
    weights = [w for w in (left.layout.weight, right.layout.weight) if w is not None]
    if len(weights) == 2:
        both = run.fresh()
        frame = frame.withColumn(both, f.col(weights[0]) * f.col(weights[1]))
        weights = [both]
    layout = replace(layout, weight=weights[0] if weights else None)
    return Flow(frame, layout).pruned(run)


def exists(operator: Exists, flow: Flow, inner: Inner, run: Run) -> Flow:
    """Rows for which the correlated plan finds something; or, negated, nothing."""
    found = inner(_argument(flow, operator.shared, run))
    columns = [c for name in operator.shared for c in found.layout.identity(name)]
    how = "left_anti" if operator.negated else "left_semi"
    if not columns:
        some = found.frame.limit(1)
        return flow.on(flow.frame.join(some, _always(), how))
    matched = found.frame.select(*columns)
    on = _alike(flow.layout, found.layout, operator.shared)
    return flow.on(flow.frame.join(run.hinted(matched), on, how))


def optional(operator: Optional, flow: Flow, inner: Inner, run: Run) -> Flow:
    """Rows extended by what the correlated plan finds, or by nulls."""
    found = inner(_argument(flow, operator.shared, run))
    binds = Layout(
        {n: b for n, b in found.layout.entities.items() if n in operator.binds},
        {n: v for n, v in found.layout.values.items() if n in operator.binds},
    )
    keys = [c for name in operator.shared for c in found.layout.identity(name)]
    right = found.frame.select(*dict.fromkeys((*keys, *binds.columns())))
    on = _alike(flow.layout, found.layout, operator.shared) if keys else _always()
    joined = flow.frame.join(run.hinted(right) if keys else right, on, "left")
    layout = replace(flow.layout.beside(binds), weight=flow.layout.weight)
    return flow.on(joined, layout).pruned(run)


def _argument(flow: Flow, shared: Sequence[str], run: Run) -> Flow:
    """The rows around a correlated plan: what it shares with them, each combination once."""
    from pyspark.sql import functions as f

    if not shared:
        # Whether there are rows at all shows when the result is joined to them.
        return unit(run)
    entities = {n: b for n, b in flow.layout.entities.items() if n in shared}
    values = {n: v for n, v in flow.layout.values.items() if n in shared}
    kept = Layout(entities, values)
    names = {column: run.fresh() for column in dict.fromkeys(kept.columns())}
    identity = [names[c] for name in shared for c in kept.identity(name)]
    frame = flow.frame.select(*(f.col(old).alias(new) for old, new in names.items()))
    layout = Layout(
        {n: b.renamed(names) for n, b in entities.items()},
        {n: Held(names[v.column], v.type) for n, v in values.items()},
    )
    return Flow(frame.dropDuplicates(list(dict.fromkeys(identity))), layout)


def unit(run: Run) -> Flow:
    """One row that binds nothing."""
    return Flow(run.spark.range(0, 1, 1, 1).withColumnRenamed("id", run.fresh()), Layout())


def _alike(here: Layout, there: Layout, shared: Sequence[str]) -> Column:
    from pyspark.sql import functions as f

    pairs = [
        f.col(a).eqNullSafe(f.col(b))
        for name in shared
        for a, b in zip(here.identity(name), there.identity(name), strict=True)
    ]
    return reduce(lambda a, b: a & b, pairs)


def _always() -> Column:
    from pyspark.sql import functions as f

    return f.lit(True)
