"""Expressions that Spark computes as we do, as columns of Spark.

Guarantees: what is translated means exactly what `engines.expressions` means by it. Both have
three-valued logic, compare texts by code points and whole numbers exactly. Floats are left out,
since Spark takes NaN for equal to itself; so is everything that computes.
Deliberately absent: completeness. What is not here runs in tasks.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from omnigraph.engines.expressions.evaluate import constant, is_constant
from omnigraph.engines.spark.queries.batches import Constants
from omnigraph.engines.spark.queries.columnnames import Layout
from omnigraph.ir import expr as ir
from omnigraph.ir.expr import CompareOp, Expr
from omnigraph.model.catalog import ID_COLUMN
from omnigraph.model.types import INTEGER_KINDS, Kind
from omnigraph.rows.coercion import Fitted, fit, fit_options, mirrored

if TYPE_CHECKING:
    from pyspark.sql import Column

_ALIKE = INTEGER_KINDS | {Kind.STRING, Kind.BOOL, Kind.DATE, Kind.DATETIME}
_COMPARE: dict[CompareOp, Callable[[Any, Any], Any]] = {
    CompareOp.EQ: lambda a, b: a == b,
    CompareOp.NE: lambda a, b: a != b,
    CompareOp.LT: lambda a, b: a < b,
    CompareOp.LE: lambda a, b: a <= b,
    CompareOp.GT: lambda a, b: a > b,
    CompareOp.GE: lambda a, b: a >= b,
}


class Native:
    """Translates expressions over one layout."""

    def __init__(self, layout: Layout, given: Constants) -> None:
        self._layout = layout
        self._given = given

    def reference(self, expr: Expr) -> str | None:
        """The column that holds an expression already."""
        match expr:
            case ir.Property():
                bound = self._layout.entities[expr.var]
                if expr.name == ID_COLUMN:
                    return bound.id_column
                held = bound.properties.get((expr.name, None))
                return held.column if held is not None and _same(held.type, expr.type) else None
            case ir.ValueRef():
                held = self._layout.values[expr.name]
                return held.column if _same(held.type, expr.type) else None
            case ir.VectorScore() | ir.TextScore() | ir.Fuse() | ir.RankOf():
                return self._layout.score(expr)
            case ir.TextMatch():
                return self._layout.match(expr)
            case _:
                return None

    def column(self, expr: Expr) -> Column | None:
        """A column of Spark that computes an expression, if there is one."""
        from pyspark.sql import functions as f

        known = self.reference(expr)
        if known is not None:
            return f.col(known)
        match expr:
            case ir.And() | ir.Or():
                return self._joined(expr)
            case ir.Not():
                item = self.column(expr.item)
                return None if item is None else ~item
            case ir.IsNull():
                return self._is_null(expr)
            case ir.Compare():
                return self._compare(expr)
            case ir.In():
                return self._in(expr)
            case _:
                return None

    def _joined(self, expr: ir.And | ir.Or) -> Column | None:
        found = None
        for item in expr.items:
            column = self.column(item)
            if column is None:
                return None
            if found is None:
                found = column
            else:
                found = found & column if isinstance(expr, ir.And) else found | column
        return found

    def _is_null(self, expr: ir.IsNull) -> Column | None:
        from pyspark.sql import functions as f

        if isinstance(expr.item, ir.Entity):
            item: Column | None = f.col(self._layout.entities[expr.item.var].id_column)
        else:
            item = self.column(expr.item)
        if item is None:
            return None
        return item.isNotNull() if expr.negated else item.isNull()

    def _compare(self, expr: ir.Compare) -> Column | None:
        left, right, op = expr.left, expr.right, expr.op
        if is_constant(left):
            left, right, op = right, left, mirrored(op)
        if is_constant(left) or left.type.kind not in _ALIKE:
            return None
        here = self.column(left)
        if here is None:
            return None
        if is_constant(right):
            return _to_constant(op, here, left.type.kind, constant(right, self._given))
        there = self.column(right)
        if there is None or left.type.kind is not right.type.kind:
            return None
        found: Column = _COMPARE[op](here, there)
        return found

    def _in(self, expr: ir.In) -> Column | None:
        if expr.item.type.kind not in _ALIKE or not is_constant(expr.options):
            return None
        item, options = self.column(expr.item), constant(expr.options, self._given)
        if item is None or options is None or any(option is None for option in options):
            return None
        kind = expr.item.type.kind
        return _one_of(item, [_spelled(kind, value) for value in fit_options(kind, options)])


def _one_of(item: Column, values: list[Any]) -> Column:
    from pyspark.sql import functions as f

    if not values:
        return f.when(item.isNotNull(), f.lit(False))
    return item.isin(values)


def _to_constant(op: CompareOp, here: Column, kind: Kind, value: Any) -> Column:
    from pyspark.sql import functions as f

    if value is None:
        return f.lit(None).cast("boolean")
    question = fit(op, kind, value)
    if isinstance(question, Fitted):
        found: Column = _COMPARE[question.op](here, f.lit(_spelled(kind, question.value)))
        return found
    return f.when(here.isNotNull(), f.lit(question))


def _spelled(kind: Kind, value: Any) -> Any:
    """A constant as Spark takes it; its longs end before ours do."""
    return Decimal(value) if kind is Kind.U64 else value


def _same(held: Any, wanted: Any) -> bool:
    return (held.kind, held.item, held.dim) == (wanted.kind, wanted.item, wanted.dim)
