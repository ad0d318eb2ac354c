"""Running a plan: every operator as steps on DataFrames.

Guarantees: nothing runs until rows are asked for, save for walks of several hops and for rankings,
which need to know what they have found so far.
Deliberately absent: choices. The plan has made them; how Spark finds neighbours is not one of them,
so the plan's hints at indexes and adjacency are not looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from omnigraph.engines.spark.queries import (
    aggregation,
    expansion,
    joins,
    matchsearch,
    reduction,
    scans,
    sortorder,
)
from omnigraph.engines.spark.queries.flow import Flow, filtered, projected
from omnigraph.engines.spark.queries.run import Run
from omnigraph.plan import operators as op
from omnigraph.plan.operators import Operator


class Execution:
    """One plan on its way through one run."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._arguments: list[Flow] = []

    def flow_of(self, operator: Operator) -> Flow:
        """The rows of an operator."""
        return _RUNNERS[type(operator)](self, operator)

    def _unit(self, operator: op.Unit) -> Flow:
        return joins.unit(self._run)

    def _argument(self, operator: op.Argument) -> Flow:
        return self._arguments[-1]

    def _scan(self, operator: op.Scan) -> Flow:
        return scans.scan(operator.node, self._run)

    def _expand(self, operator: op.Expand) -> Flow:
        return expansion.expand(operator, self.flow_of(operator.input), self._run)

    def _reduce(self, operator: op.Reduce) -> Flow:
        return reduction.reduced(self.flow_of(operator.input), operator.branch, self._run)

    def _filter(self, operator: op.Filter) -> Flow:
        flow = matchsearch.looked_up(self.flow_of(operator.input), operator.predicates, self._run)
        return filtered(flow, operator.predicates, self._run)

    def _join(self, operator: op.Join) -> Flow:
        left, right = self.flow_of(operator.left), self.flow_of(operator.right)
        return joins.join(operator, left, right, self._run)

    def _exists(self, operator: op.Exists) -> Flow:
        outer, inner = self.flow_of(operator.input), self._inner_plan(operator.plan)
        return joins.exists(operator, outer, inner, self._run)

    def _optional(self, operator: op.Optional) -> Flow:
        outer, inner = self.flow_of(operator.input), self._inner_plan(operator.plan)
        return joins.optional(operator, outer, inner, self._run)

    def _inner_plan(self, plan: Operator) -> Callable[[Flow], Flow]:
        def inner(outer: Flow) -> Flow:
            self._arguments.append(outer)
            try:
                return self.flow_of(plan)
            finally:
                self._arguments.pop()

        return inner

    def _search(self, operator: op.Search) -> Flow:
        return matchsearch.search(operator, self.flow_of(operator.input), self._run)

    def _aggregate(self, operator: op.Aggregate) -> Flow:
        return aggregation.aggregate(operator, self.flow_of(operator.input), self._run)

    def _project(self, operator: op.Project) -> Flow:
        return projected(self.flow_of(operator.input), operator.columns, self._run)

    def _distinct(self, operator: op.Distinct) -> Flow:
        return aggregation.distinct(self.flow_of(operator.input), self._run)

    def _sort(self, operator: op.Sort) -> Flow:
        flow = self.flow_of(operator.input)
        return sortorder.sort(flow, operator.keys, operator.ties, self._run)

    def _top_k(self, operator: op.TopK) -> Flow:
        flow = sortorder.sort(self.flow_of(operator.input), operator.keys, operator.ties, self._run)
        return sortorder.cut(flow, operator.offset, operator.limit, self._run)

    def _limit(self, operator: op.Limit) -> Flow:
        flow = self.flow_of(operator.input)
        return sortorder.cut(flow, operator.offset, operator.limit, self._run)


_RUNNERS: dict[type[Any], Callable[[Execution, Any], Flow]] = {
    op.Unit: Execution._unit,
    op.Argument: Execution._argument,
    op.Scan: Execution._scan,
    op.Expand: Execution._expand,
    op.Reduce: Execution._reduce,
    op.Filter: Execution._filter,
    op.Join: Execution._join,
    op.Exists: Execution._exists,
    op.Optional: Execution._optional,
    op.Search: Execution._search,
    op.Aggregate: Execution._aggregate,
    op.Project: Execution._project,
    op.Distinct: Execution._distinct,
    op.Sort: Execution._sort,
    op.TopK: Execution._top_k,
    op.Limit: Execution._limit,
}
