"""The names in an expression, and folds over operator trees.

Guarantees: `transform` rebuilds only what changed and keeps everything else by identity; the order
of visits is fixed (inputs first).
Deliberately absent: any rule. These functions know shapes, not meanings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, TypeVar, get_args

from omnigraph.ir.expr import (
    Aggregate,
    And,
    Entity,
    Expr,
    Fuse,
    Property,
    RankOf,
    Score,
    TextScore,
    ValueRef,
    VectorScore,
)
from omnigraph.ir.fold import children, contains, parts
from omnigraph.plan.operators import Operator

_T = TypeVar("_T")
_OPERATORS: tuple[type[Any], ...] = get_args(Operator)
_SCORES = (VectorScore, TextScore, Fuse, RankOf)


def names_in(expr: Expr) -> frozenset[str]:
    """Every variable and value name that the expression speaks of."""
    return frozenset(_names_in(expr))


def _names_in(expr: Expr) -> Iterator[str]:
    for part in parts(expr):
        if isinstance(part, Property | Entity):
            yield part.var
        elif isinstance(part, ValueRef):
            yield part.name


def has_aggregate(expr: Expr) -> bool:
    return contains(expr, Aggregate)


def scores_in(expr: Expr) -> list[Score]:
    """The outermost score expressions, in order of appearance, without repeats."""
    if isinstance(expr, _SCORES):
        return [expr]
    return without_repeats(score for child in children(expr) for score in scores_in(child))


def without_repeats(items: Iterable[_T]) -> list[_T]:
    """By equality alone: a list literal makes an expression unhashable."""
    found: list[_T] = []
    for item in items:
        if item not in found:
            found.append(item)
    return found


def conjuncts(expr: Expr) -> Iterator[Expr]:
    """The parts of a conjunction, however it is nested."""
    if isinstance(expr, And):
        for item in expr.items:
            yield from conjuncts(item)
    else:
        yield expr


def inputs(operator: Operator) -> tuple[Operator, ...]:
    """The operators whose rows this one takes; a correlated plan comes last."""
    found: list[Operator] = []
    for name in ("input", "left", "right", "plan"):
        value = getattr(operator, name, None)
        if isinstance(value, _OPERATORS):
            found.append(value)
    return tuple(found)


def operators(root: Operator) -> Iterator[Operator]:
    """All operators, inputs first."""
    for below in inputs(root):
        yield from operators(below)
    yield root


def transform(root: Operator, change: Callable[[Operator], Operator]) -> Operator:
    """Apply `change` to every operator, inputs first."""
    updates: dict[str, Any] = {}
    for name in ("input", "left", "right", "plan"):
        value = getattr(root, name, None)
        if isinstance(value, _OPERATORS):
            fresh = transform(value, change)
            if fresh is not value:
                updates[name] = fresh
    return change(replace(root, **updates) if updates else root)
