"""Remove sorts without effect: those whose rows a later step groups or matches.

A sort stays where its order is cut (`limit`), collected, or returned.
"""

from __future__ import annotations

from dataclasses import replace

from omnigraph.ir.expr import AggregateFn
from omnigraph.plan.estimate import Context
from omnigraph.plan.operators import Aggregate, Limit, Operator, Project, Sort, TopK
from omnigraph.plan.trees import inputs


def drop_sorts(root: Operator, context: Context) -> Operator:
    return _drop(root, seen=True)


def _drop(operator: Operator, seen: bool) -> Operator:
    """`seen`: the order of this operator's rows shows in the result."""
    if isinstance(operator, Sort) and not seen:
        return _drop(operator.input, seen=False)
    below = _shows(operator, seen)
    updates = {}
    for name in ("input", "left", "right", "plan"):
        value = getattr(operator, name, None)
        if value is not None and value in inputs(operator):
            fresh = _drop(value, below and name == "input")
            if fresh is not value:
                updates[name] = fresh
    return replace(operator, **updates) if updates else operator  # type: ignore[arg-type]


def _shows(operator: Operator, seen: bool) -> bool:
    match operator:
        case Limit():
            return True
        case Sort() | TopK():
            return False
        case Aggregate():
            return any(call.fn is AggregateFn.COLLECT for _, call in operator.aggregates)
        case Project():
            return seen
        case _:
            return seen
