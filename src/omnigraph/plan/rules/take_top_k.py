"""Sort and limit in one step, so that only the rows that are returned get sorted."""

from __future__ import annotations

from omnigraph.plan.estimate import Context
from omnigraph.plan.operators import Limit, Operator, Sort, TopK
from omnigraph.plan.trees import transform


def take_top_k(root: Operator, context: Context) -> Operator:
    return transform(root, _merge)


def _merge(operator: Operator) -> Operator:
    if not isinstance(operator, Limit) or not isinstance(operator.input, Sort):
        return operator
    if operator.limit is None:
        return operator
    below = operator.input
    return TopK(below.input, below.keys, below.ties, operator.offset, operator.limit, operator.rows)
