"""The names that a stage needs after its match, and whether duplicates matter.

Guarantees: conservative. A name that might be looked at is live; repeats matter unless every use
is known to ignore them.
Deliberately absent: rewriting; see the rules that ask.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from omnigraph.ir.expr import Aggregate as AggregateExpr
from omnigraph.ir.expr import AggregateFn, Entity
from omnigraph.plan.operators import (
    Aggregate,
    Distinct,
    Exists,
    Filter,
    Match,
    Operator,
    Optional,
    Project,
    Reduce,
    Search,
)
from omnigraph.plan.trees import names_in

_BLIND = frozenset({AggregateFn.MIN, AggregateFn.MAX})


def ignores_repeats(call: AggregateExpr) -> bool:
    """Whether an aggregate gives the same over rows that occur once and rows that occur twice."""
    return call.distinct or call.fn in _BLIND


def match_below(operator: Operator) -> Match | None:
    """The match that feeds an operator through steps that only drop or extend its rows."""
    while isinstance(operator, Filter | Exists | Optional | Search | Reduce):
        operator = operator.input
    return operator if isinstance(operator, Match) else None


def live_above(operator: Aggregate | Project) -> frozenset[str]:
    """The names of its match that a stage looks at, from the match's roof to its own columns."""
    found: set[str] = set()
    if isinstance(operator, Aggregate):
        for key in operator.keys:
            found |= names_in(key.expr)
        for _, call in operator.aggregates:
            found |= names_in(call)
    else:
        for column in operator.columns:
            found |= names_in(column.expr)
    return frozenset(found) | _live_between(operator.input)


def _live_between(operator: Operator) -> frozenset[str]:
    found: set[str] = set()
    while not isinstance(operator, Match):
        match operator:
            case Filter():
                for predicate in operator.predicates:
                    found |= names_in(predicate)
            case Exists() | Optional():
                found |= set(operator.shared)
            case Search():
                for score in operator.scores:
                    found |= names_in(score)
            case Reduce():
                found.add(operator.branch.anchor)
            case _:
                break
        operator = operator.input
    return frozenset(found)


def replace_match(operator: Operator, change: Callable[[Match], Match]) -> Operator:
    """Rebuild the steps above a match around its replacement."""
    if isinstance(operator, Match):
        return change(operator)
    assert isinstance(operator, Filter | Exists | Optional | Search | Reduce | Aggregate | Project)
    return replace(operator, input=replace_match(operator.input, change))


def counts_rows(call: AggregateExpr, match: Match) -> bool:
    """`count(*)`, or the count of a node that every row of the match binds."""
    if call.fn is not AggregateFn.COUNT or call.distinct:
        return False
    certain = {node.var for node in match.nodes} - set(match.bound)
    return call.arg is None or (isinstance(call.arg, Entity) and call.arg.var in certain)


def distinct_project(operator: Operator) -> Project | None:
    if isinstance(operator, Distinct) and isinstance(operator.input, Project):
        return operator.input
    return None
