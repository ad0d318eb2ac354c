"""Branches: rows kept or weighed by how many matches hang on a node, without listing them.

Exact whole numbers; a count beyond 64 bits fails instead of wrapping around.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from omnigraph.engines.spark.queries.columnnames import Bound, Layout
from omnigraph.engines.spark.queries.expansion import arrive, neighbours, same
from omnigraph.engines.spark.queries.flow import Flow
from omnigraph.engines.spark.queries.run import Run
from omnigraph.plan.operators import Branch, Reduction

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NEAR = "#near"


def reduced(flow: Flow, branch: Branch, run: Run) -> Flow:
    """Keep or weigh the rows of a flow by a branch."""
    from pyspark.sql import functions as f

    anchor = flow.layout.entities[branch.anchor]
    matches = _matches(branch, anchor, run)
    near = matches.layout.entities[_NEAR]
    on = reduce(lambda a, b: a & b, same(anchor, near))
    if branch.how is not Reduction.COUNT:
        how = "left_semi" if branch.how is Reduction.EXISTS else "left_anti"
        return flow.on(flow.frame.join(run.hinted(matches.frame), on, how))
    counts, number = _counted(matches, near, run)
    joined = flow.frame.join(run.hinted(counts), on, "inner")
    if flow.layout.weight is None:
        return flow.on(joined, replace(flow.layout, weight=number)).pruned(run)
    weight = run.fresh()
    joined = joined.withColumn(weight, f.col(flow.layout.weight) * f.col(number))
    return flow.on(joined, replace(flow.layout, weight=weight)).pruned(run)


def _matches(branch: Branch, anchor: Bound, run: Run) -> Flow:
    """One row per match of a branch, its anchor's node bound as `_NEAR`; perhaps weighed."""
    pairs = neighbours(
        branch.traversal,
        branch.reverse,
        anchor.types,
        branch.node.types,
        run,
        branch.edge_predicates,
    )
    flow = Flow(pairs.frame, Layout({_NEAR: pairs.near}))
    flow = arrive(flow, pairs.far, branch.node, run)
    for child in branch.children:
        flow = reduced(flow, child, run)
    return flow


def _counted(matches: Flow, near: Bound, run: Run) -> tuple[DataFrame, str]:
    from pyspark.sql import functions as f

    number = run.fresh()
    weight = matches.layout.weight
    count = f.count(f.lit(1)) if weight is None else f.sum(f.col(weight))
    return matches.frame.groupBy(*near.identity).agg(count.alias(number)), number
