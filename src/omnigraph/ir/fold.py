"""Walk over expressions and rebuild them.

What it does: `parts` lists an expression and everything inside it, `contains` looks for a kind of
node, `replace_parts` puts other expressions in the place of some.
Every kind of expression is covered, children in the order of their fields; nothing is changed in
place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from omnigraph.ir import expr as ir
from omnigraph.ir.expr import Expr

# Fields that hold an expression, nothing, or a tuple of expressions.
_CHILDREN: dict[type[Any], tuple[str, ...]] = {
    ir.Compare: ("left", "right"),
    ir.And: ("items",),
    ir.Or: ("items",),
    ir.Not: ("item",),
    ir.IsNull: ("item",),
    ir.In: ("item", "options"),
    ir.StringTest: ("left", "right"),
    ir.ListContains: ("list", "item"),
    ir.Arithmetic: ("left", "right"),
    ir.Function: ("args",),
    ir.Aggregate: ("arg",),
    ir.TextMatch: ("property", "query", "max_edits"),
    ir.VectorScore: ("property", "query"),
    ir.TextScore: ("property", "query", "max_edits"),
    ir.Fuse: ("rankings", "k"),
    ir.RankOf: ("of",),
}


def children(expr: Expr) -> Iterator[Expr]:
    """The expressions directly inside an expression."""
    for field in _CHILDREN.get(type(expr), ()):
        value = getattr(expr, field)
        if isinstance(value, tuple):
            yield from value
        elif value is not None:
            yield value


def parts(expr: Expr, into: Callable[[Expr], bool] | None = None) -> Iterator[Expr]:
    """An expression and all that it holds; `into` may keep the walk out of some of them."""
    yield expr
    if into is None or into(expr):
        for child in children(expr):
            yield from parts(child, into)


def contains(expr: Expr, kinds: type[Any] | tuple[type[Any], ...]) -> bool:
    """Whether an expression is, or holds, one of these kinds."""
    return any(isinstance(part, kinds) for part in parts(expr))


def replace_parts(expr: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """The expression with every part for which `change` has an answer replaced, from the top."""
    changed = change(expr)
    if changed is not None:
        return changed
    fields: dict[str, Any] = {}
    for field in _CHILDREN.get(type(expr), ()):
        value = getattr(expr, field)
        if isinstance(value, tuple):
            fields[field] = tuple(replace_parts(each, change) for each in value)
        elif value is not None:
            fields[field] = replace_parts(value, change)
    return replace(expr, **fields) if fields else expr
