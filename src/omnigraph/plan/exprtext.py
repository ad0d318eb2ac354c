"""Expressions and pattern parts as short text, close to how a query spells them.

Guarantees: total over `Expr`, one line, no object addresses; equal expressions render equally.
Deliberately absent: parsing back. This is for people, plans and logs.
"""

from __future__ import annotations

from typing import Any

from omnigraph.ir.expr import (
    Aggregate,
    And,
    Arithmetic,
    Compare,
    Entity,
    Expr,
    Function,
    Fuse,
    In,
    IsNull,
    ListContains,
    Literal,
    Not,
    Now,
    Or,
    Param,
    Property,
    RankOf,
    StringTest,
    TextMatch,
    TextScore,
    ValueRef,
    VectorScore,
)
from omnigraph.ir.query import Direction, EdgeStep, OrderKey, Projection, Traversal

_LONGEST_LITERAL = 48


def render(expr: Expr) -> str:
    """One expression."""
    return _leaf(expr) or _connective(expr) or _call(expr)


def _leaf(expr: Expr) -> str:
    match expr:
        case Literal():
            return _literal(expr.value)
        case Param():
            return f"${expr.name}"
        case Now():
            return "now()"
        case Property():
            return f"${expr.var}.{expr.name}"
        case Entity():
            return f"${expr.var}"
        case ValueRef():
            return expr.name
        case _:
            return ""


def _connective(expr: Expr) -> str:
    match expr:
        case Compare() | Arithmetic():
            return f"{_inner(expr.left)} {expr.op} {_inner(expr.right)}"
        case And():
            return " and ".join(_inner(item) for item in expr.items) or "true"
        case Or():
            return " or ".join(_inner(item) for item in expr.items) or "false"
        case Not():
            return f"not {_inner(expr.item)}"
        case IsNull():
            return f"{_inner(expr.item)} is {'not null' if expr.negated else 'null'}"
        case In():
            return f"{_inner(expr.item)} in {_inner(expr.options)}"
        case StringTest():
            fold = " ignoring case" if expr.ignore_case else ""
            return f"{_inner(expr.left)} {expr.op} {_inner(expr.right)}{fold}"
        case ListContains():
            return f"{_inner(expr.list)} contains {_inner(expr.item)}"
        case _:
            return ""


def _call(expr: Expr) -> str:
    match expr:
        case Function():
            return f"{expr.name}({', '.join(render(arg) for arg in expr.args)})"
        case Aggregate():
            inner = "*" if expr.arg is None else render(expr.arg)
            return f"{expr.fn}({'distinct ' if expr.distinct else ''}{inner})"
        case TextMatch() | TextScore():
            edits = "" if expr.max_edits is None else f", {render(expr.max_edits)}"
            return f"{expr.mode}({render(expr.property)}, {render(expr.query)}{edits})"
        case VectorScore():
            return f"nearest({render(expr.property)}, {render(expr.query)})"
        case Fuse():
            parts = [render(ranking) for ranking in expr.rankings]
            return f"rrf({', '.join(parts)}, {render(expr.k)})"
        case RankOf():
            return f"rank({render(expr.of)})"
        case _:
            raise AssertionError(f"no such expression: {type(expr).__name__}")


def _inner(expr: Expr) -> str:
    text = render(expr)
    nested = isinstance(expr, Compare | Arithmetic | And | Or | StringTest | In)
    return f"({text})" if nested else text


def _literal(value: Any) -> str:
    if isinstance(value, list | tuple):
        text = f"[{', '.join(_literal(item) for item in value)}]"
    elif isinstance(value, str):
        text = f'"{value}"'
    elif value is None or isinstance(value, bool):
        text = {None: "null", True: "true", False: "false"}[value]
    else:
        text = str(value)
    return text if len(text) <= _LONGEST_LITERAL else f"{text[: _LONGEST_LITERAL - 1]}…"


def render_projection(projection: Projection) -> str:
    text = render(projection.expr)
    plain = text in (projection.name, f"${projection.name}")
    return text if plain else f"{text} as {projection.name}"


def render_order(key: OrderKey) -> str:
    return f"{render(key.expr)} {'desc' if key.descending else 'asc'}"


def render_traversal(traversal: Traversal, reverse: bool = False) -> str:
    """`$a -knows{1,3}-> $b`, as it is walked."""
    near, far = traversal.src, traversal.dst
    if reverse:
        near, far = far, near
    steps = "|".join(_step(step, reverse) for step in traversal.steps)
    label = f"${traversal.edge_var}:{steps}" if traversal.edge_var else steps
    hops = f" hops as {traversal.hops_var}" if traversal.hops_var else ""
    return f"${near} {label}{_bounds(traversal)} ${far}{hops}"


def _step(step: EdgeStep, reverse: bool) -> str:
    edge = step.edge
    if step.where:
        edge += f"[{' and '.join(render(p) for p in step.where)}]"
    if step.direction is Direction.BOTH:
        return f"<{edge}>"
    forward = (step.direction is Direction.OUT) is not reverse
    return f"-{edge}->" if forward else f"<-{edge}-"


def _bounds(traversal: Traversal) -> str:
    if traversal.min_hops == 1 and traversal.max_hops == 1:
        return ""
    most = "" if traversal.max_hops is None else str(traversal.max_hops)
    return f"{{{traversal.min_hops},{most}}}"
