"""Multiply instead of listing: variables that are only counted become weights.

`a → b → c` has Σ in(b) · out(b) matches; no path is ever made. What is left of the pattern carries
a weight, and the aggregates above it count and sum by weight.
"""

from __future__ import annotations

from dataclasses import replace

from omnigraph.ir.expr import Aggregate as AggregateExpr
from omnigraph.ir.expr import AggregateFn
from omnigraph.plan.estimate import Context
from omnigraph.plan.leaves import peel
from omnigraph.plan.liveness import counts_rows, live_above, match_below, replace_match
from omnigraph.plan.operators import Aggregate, Match, Operator, Reduction
from omnigraph.plan.trees import transform


def factorize_counts(root: Operator, context: Context) -> Operator:
    def factorize(operator: Operator) -> Operator:
        if not isinstance(operator, Aggregate):
            return operator
        match = match_below(operator.input)
        if match is None or any(c.fn is AggregateFn.COLLECT for _, c in operator.aggregates):
            return operator
        plain = replace(
            operator,
            aggregates=tuple((name, _as_row_count(c, match)) for name, c in operator.aggregates),
        )
        live = live_above(plain)
        return replace_match(plain, lambda found: peel(found, live, Reduction.COUNT, context))

    return transform(root, factorize)


def _as_row_count(call: AggregateExpr, match: Match) -> AggregateExpr:
    return replace(call, arg=None) if counts_rows(call, match) else call
