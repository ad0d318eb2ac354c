"""Let a search stop at the best rows when nothing but those is returned.

Holds when the rows are cut right after they were ranked by one score alone, best first.
"""

from __future__ import annotations

from dataclasses import replace

from omnigraph.ir.expr import (
    Arithmetic,
    ArithmeticOp,
    Expr,
    Fuse,
    IsNull,
    TextScore,
    VectorScore,
)
from omnigraph.ir.query import OrderKey
from omnigraph.plan.estimate import Context
from omnigraph.plan.operators import Filter, Operator, Search, TopK
from omnigraph.plan.trees import transform


def limit_search(root: Operator, context: Context) -> Operator:
    return transform(root, _limit)


def _limit(operator: Operator) -> Operator:
    if not isinstance(operator, TopK) or len(operator.keys) != 1:
        return operator
    (key,) = operator.keys
    filtered = operator.input if isinstance(operator.input, Filter) else None
    search = filtered.input if filtered is not None else operator.input
    if not isinstance(search, Search) or search.scores != (key.expr,):
        return operator
    if filtered is not None and filtered.predicates != (IsNull(key.expr, negated=True),):
        return operator
    if not _is_best_first(key):
        return operator
    cut: Operator = replace(search, keep=_kept(operator))
    return replace(operator, input=cut if filtered is None else replace(filtered, input=cut))


def _is_best_first(key: OrderKey) -> bool:
    if isinstance(key.expr, VectorScore):
        return not key.descending
    return isinstance(key.expr, TextScore | Fuse) and key.descending


def _kept(operator: TopK) -> Expr:
    if operator.offset is None:
        return operator.limit
    return Arithmetic(ArithmeticOp.ADD, operator.offset, operator.limit, operator.limit.type)
