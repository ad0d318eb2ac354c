"""Queries of the IR as text, for people and for tests that compare it.

Guarantees: deterministic; two queries with the same text mean the same.
Deliberately absent: a way back. The text is read by people only.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import date, datetime
from typing import Any

from omnigraph.ir import expr as ir
from omnigraph.ir import query as irq
from omnigraph.ir.expr import Expr

_ARROWS = {irq.Direction.OUT: "-{}->", irq.Direction.IN: "<-{}-", irq.Direction.BOTH: "-{}-"}


def render(query: irq.Query) -> str:
    """A query as indented text."""
    params = ", ".join(f"${p.name}: {p.type}" for p in query.params)
    kind = "read" if isinstance(query, irq.ReadQuery) else "write"
    lines = [f"{kind} {query.name}({params})"]
    if isinstance(query, irq.ReadQuery):
        for stage in query.stages:
            lines += ["  stage", *(f"    {line}" for line in _stage(stage))]
    else:
        for statement in query.statements:
            lines += (f"  {line}" for line in _statement(statement))
    return "\n".join(lines)


def _stage(stage: irq.Stage) -> Iterator[str]:
    yield from _pattern(stage.pattern)
    yield "distinct columns" if stage.distinct else "columns"
    for projection in stage.projections:
        expr = projection.expr
        yield f"  {projection.name}: {_type(expr)} = {render_expr(expr)}"
    if stage.having is not None:
        yield f"having {render_expr(stage.having)}"
    for key in stage.order:
        yield f"order {render_expr(key.expr)} {'desc' if key.descending else 'asc'}"
    if stage.offset is not None:
        yield f"offset {render_expr(stage.offset)}"
    if stage.limit is not None:
        yield f"limit {render_expr(stage.limit)}"


def _type(expr: Expr) -> str:
    if isinstance(expr, ir.Entity):
        return "|".join(expr.types) + ("?" if expr.type.nullable else "")
    return str(expr.type)


def _pattern(pattern: irq.Pattern) -> Iterator[str]:
    for node in pattern.nodes:
        yield f"node {node.var}: {'|'.join(node.types)}"
    for traversal in pattern.traversals:
        yield _traversal(traversal)
    for predicate in pattern.predicates:
        yield f"keep {render_expr(predicate)}"
    for word, blocks in (("not", pattern.negations), ("optional", pattern.optionals)):
        for block in blocks:
            yield word
            yield from (f"  {line}" for line in _pattern(block))


def _traversal(node: irq.Traversal) -> str:
    steps = " | ".join(_step(step) for step in node.steps)
    text = f"walk {node.src} {steps} {node.dst}"
    if (node.min_hops, node.max_hops) != (1, 1):
        high = "" if node.max_hops is None else node.max_hops
        text += f" {{{node.min_hops},{high}}}"
    text += " shortest" if node.shortest else ""
    text += f" edge {node.edge_var}" if node.edge_var else ""
    return text + (f" hops {node.hops_var}" if node.hops_var else "")


def _step(step: irq.EdgeStep) -> str:
    arrow = _ARROWS[step.direction].format(step.edge)
    return arrow + "".join(f" where {render_expr(p)}" for p in step.where)


def _statement(statement: irq.Statement) -> Iterator[str]:
    match statement:
        case irq.InsertNode():
            yield f"insert node {statement.type_name}"
            yield from _assignments(statement.assignments)
        case irq.InsertEdge():
            yield f"insert edge {statement.type_name}"
            yield f"  from {render_expr(statement.src)}"
            yield f"  to {render_expr(statement.dst)}"
            yield from _assignments(statement.assignments)
        case irq.UpsertNode():
            yield f"upsert node {statement.type_name} on conflict {statement.on_conflict}"
            yield from _assignments(statement.assignments)
            yield from (f"  update{line}" for line in _assignments(statement.updates))
        case irq.Update():
            yield f"update {statement.type_name}"
            yield from _assignments(statement.assignments)
            yield f"  where {render_expr(statement.where)}"
        case irq.Delete():
            yield f"delete {statement.type_name}"
            yield f"  where {render_expr(statement.where)}"


def _assignments(assignments: tuple[irq.Assignment, ...]) -> Iterator[str]:
    for each in assignments:
        yield f"  {each.property} = {render_expr(each.value)}"


# Expressions --------------------------------------------------------------------------------


def render_expr(expr: Expr) -> str:
    """An expression on one line."""
    return _RENDER[type(expr)](expr)


def _inner(expr: Expr) -> str:
    text = render_expr(expr)
    return f"({text})" if isinstance(expr, _COMPOUND) else text


def _constant(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_constant(each) for each in value)}]"
    if isinstance(value, datetime):
        return f'datetime("{value.isoformat()}")'
    if isinstance(value, date):
        return f'date("{value.isoformat()}")'
    return json.dumps(value, ensure_ascii=False)


def _literal(expr: ir.Literal) -> str:
    text = _constant(expr.value)
    # The natural type of a constant goes without saying.
    natural = {str: "String", bool: "Bool", int: "I64", float: "F64"}.get(type(expr.value))
    kind = expr.type.spelling()
    quiet = natural == kind or isinstance(expr.value, list | date) or expr.value is None
    return text if quiet else f"{text}:{kind}"


def _calls(name: str, *args: Expr | None) -> str:
    return f"{name}({', '.join(render_expr(arg) for arg in args if arg is not None)})"


def _aggregate(expr: ir.Aggregate) -> str:
    inner = "*" if expr.arg is None else render_expr(expr.arg)
    return f"{expr.fn}({'distinct ' if expr.distinct else ''}{inner})"


def _string_test(expr: ir.StringTest) -> str:
    op = f"{expr.op} ignoring case" if expr.ignore_case else str(expr.op)
    return f"{_inner(expr.left)} {op} {_inner(expr.right)}"


_COMPOUND = (
    ir.Compare,
    ir.And,
    ir.Or,
    ir.Not,
    ir.IsNull,
    ir.In,
    ir.StringTest,
    ir.ListContains,
    ir.Arithmetic,
)
_RENDER: dict[type[Any], Callable[[Any], str]] = {
    ir.Literal: _literal,
    ir.Param: lambda e: f"${e.name}",
    ir.Now: lambda e: "now()",
    ir.Property: lambda e: f"{e.var}.{e.name}",
    ir.Entity: lambda e: e.var,
    ir.ValueRef: lambda e: f"@{e.name}",
    ir.Compare: lambda e: f"{_inner(e.left)} {e.op} {_inner(e.right)}",
    ir.And: lambda e: " and ".join(_inner(each) for each in e.items),
    ir.Or: lambda e: " or ".join(_inner(each) for each in e.items),
    ir.Not: lambda e: f"not {_inner(e.item)}",
    ir.IsNull: lambda e: f"{_inner(e.item)} is {'not ' if e.negated else ''}null",
    ir.In: lambda e: f"{_inner(e.item)} in {_inner(e.options)}",
    ir.StringTest: _string_test,
    ir.ListContains: lambda e: f"{_inner(e.list)} has {_inner(e.item)}",
    ir.Arithmetic: lambda e: f"{_inner(e.left)} {e.op} {_inner(e.right)}",
    ir.Function: lambda e: _calls(e.name, *e.args),
    ir.Aggregate: _aggregate,
    ir.TextMatch: lambda e: _calls(e.mode, e.property, e.query, e.max_edits) + "?",
    ir.VectorScore: lambda e: _calls("nearest", e.property, e.query),
    ir.TextScore: lambda e: _calls(e.mode, e.property, e.query, e.max_edits),
    ir.Fuse: lambda e: _calls("rrf", *e.rankings, e.k),
    ir.RankOf: lambda e: _calls("rank", e.of),
}
