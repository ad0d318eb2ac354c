"""Walking over expressions: every kind is covered, nothing is changed in place."""

from __future__ import annotations

import dataclasses
from typing import Any, get_args

from omnigraph.ir import expr as ir
from omnigraph.ir.fold import _CHILDREN, children, contains, parts, replace_parts
from omnigraph.ir.irtext import _RENDER
from omnigraph.model.types import I64, STRING

X = ir.Property("p", "x", I64)
ONE = ir.Literal(1, I64)
SUM = ir.Arithmetic(ir.ArithmeticOp.ADD, X, ONE, I64)
TEST = ir.And((ir.Compare(ir.CompareOp.GT, SUM, ONE), ir.IsNull(X)))


def holds_expressions(field: dataclasses.Field[Any]) -> bool:
    names = ("Expr", "Property", "VectorScore", "TextScore", "Fuse")
    return any(name in str(field.type) for name in names)


def test_every_kind_of_expression_is_known() -> None:
    for kind in get_args(ir.Expr):
        held = tuple(f.name for f in dataclasses.fields(kind) if holds_expressions(f))
        assert _CHILDREN.get(kind, ()) == held
        assert kind in _RENDER


def test_parts_come_in_order() -> None:
    assert list(children(TEST)) == list(TEST.items)
    assert list(parts(SUM)) == [SUM, X, ONE]
    assert list(parts(TEST, into=lambda e: not isinstance(e, ir.Compare))) == [TEST, *TEST.items, X]


def test_contains() -> None:
    assert contains(TEST, ir.Arithmetic)
    assert contains(TEST, (ir.Aggregate, ir.IsNull))
    assert not contains(TEST, ir.Aggregate)


def test_replacing_starts_at_the_top_and_leaves_the_rest() -> None:
    two = ir.Literal(2, I64)
    changed = replace_parts(TEST, lambda e: two if e == SUM else None)
    assert changed == ir.And((ir.Compare(ir.CompareOp.GT, two, ONE), ir.IsNull(X)))
    assert replace_parts(TEST, lambda e: None) == TEST
    match = ir.TextMatch(ir.TextMode.SEARCH, ir.Property("d", "t", STRING), ONE)
    assert replace_parts(match, lambda e: two if e == ONE else None).query == two  # type: ignore[union-attr]
