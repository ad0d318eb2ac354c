"""Expressions over rows, by Arrow's kernels.

    evaluate(expr, rows)      an array with one value per row, or a scalar for all of them
    holds(predicates, rows)   marks of the rows for which all predicates are true

Guarantees: three-valued logic as in SQL; a constant is compared in the type of what it meets
(`rows.coercion`), so the answer here is the answer that an index gives.
Deliberately absent: aggregates and scores, which operators compute before; asking for a score here
finds its column.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import reduce
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from omnigraph.engines.expressions import comparisons, functions
from omnigraph.errors import InvalidArgumentError, InvariantViolationError
from omnigraph.ir import expr as ir
from omnigraph.ir.expr import Expr
from omnigraph.model.types import Kind
from omnigraph.plan.trees import names_in

Values = Any  # pa.Array or pa.Scalar


class Given(Protocol):
    """What is the same for all rows of a query."""

    @property
    def params(self) -> Mapping[str, Any]: ...

    @property
    def now(self) -> datetime: ...

    @property
    def strict(self) -> bool:
        """Whether an integer beyond its type is an error instead of null."""
        ...


class Rows(Protocol):
    """Rows, as an expression asks for them."""

    @property
    def given(self) -> Given: ...

    @property
    def count(self) -> int: ...

    def property_of(self, expr: ir.Property) -> pa.Array:
        """A property of every row's node or edge."""
        ...

    def object_of(self, expr: ir.Entity) -> pa.Array:
        """Every row's node or edge as a struct."""
        ...

    def absent(self, var: str) -> pa.Array:
        """Marks of the rows that have no such node or edge."""
        ...

    def value_of(self, name: str) -> Values:
        """A named value."""
        ...

    def score_of(self, expr: ir.Score) -> pa.Array | None:
        """A score that a search has computed."""
        ...

    def matches(self, expr: ir.TextMatch) -> pa.Array:
        """Marks of the rows whose text matches."""
        ...


def evaluate(expr: Expr, rows: Rows) -> Values:
    """The values of an expression, one per row or one for all."""
    return _EVALUATORS[type(expr)](expr, rows)


def column(expr: Expr, rows: Rows) -> pa.Array:
    """The values of an expression, one per row, in its own Arrow type."""
    values = evaluate(expr, rows)
    if isinstance(expr, ir.Entity):
        return values
    wanted = expr.type.to_arrow()
    if isinstance(values, pa.Scalar):
        return pa.repeat(functions.as_type(values, wanted), rows.count)
    return functions.as_type(values, wanted)


def holds(predicates: Sequence[Expr], rows: Rows) -> NDArray[np.bool_]:
    """Marks of the rows for which every predicate is true; null is not true."""
    marks: NDArray[np.bool_] | None = None
    for predicate in predicates:
        found = _truth(evaluate(predicate, rows), rows.count)
        marks = found if marks is None else marks & found
    return np.ones(rows.count, bool) if marks is None else marks


def constant(expr: Expr, given: Given) -> Any:
    """The Python value of an expression that speaks of no row."""
    if isinstance(expr, ir.Literal):
        return expr.value
    if isinstance(expr, ir.Param):
        return given.params[expr.name]
    if isinstance(expr, ir.Now):
        return given.now
    values = evaluate(expr, _Nameless(given))
    return values.as_py() if isinstance(values, pa.Scalar) else values[0].as_py()


def is_constant(expr: Expr) -> bool:
    return isinstance(expr, ir.Literal | ir.Param | ir.Now) or not names_in(expr)


def bounds_of(offset: Expr | None, limit: Expr | None, given: Given) -> tuple[int, int | None]:
    """How many rows to skip and to keep."""
    skipped = 0 if offset is None else _count("offset", constant(offset, given))
    return skipped, None if limit is None else _count("limit", constant(limit, given))


def _count(what: str, value: object) -> int:
    if isinstance(value, int) and value >= 0:
        return value
    raise InvalidArgumentError(
        f"The {what} of a query is {value!r}; it must be 0 or more.", argument=what
    )


class _Nameless:
    """One row that binds nothing."""

    count = 1

    def __init__(self, given: Given) -> None:
        self.given = given

    def _nothing(self, what: object) -> Any:
        raise InvariantViolationError(f"A constant contains {what}.")

    property_of = object_of = absent = value_of = score_of = matches = _nothing


def _truth(values: Values, rows: int) -> NDArray[np.bool_]:
    if isinstance(values, pa.Scalar):
        return np.full(rows, values.as_py() is True)
    known = values.fill_null(False) if values.null_count else values
    found: NDArray[np.bool_] = known.to_numpy(zero_copy_only=False)
    return found


def _literal(expr: ir.Literal, rows: Rows) -> Values:
    return pa.scalar(expr.value, _constant_type(expr))


def _param(expr: ir.Param, rows: Rows) -> Values:
    return pa.scalar(rows.given.params[expr.name], expr.type.to_arrow())


def _constant_type(expr: ir.Literal) -> Any:
    if expr.type.kind is Kind.LIST and expr.type.item is None:
        return pa.list_(pa.null())
    return expr.type.to_arrow()


def _now(expr: ir.Now, rows: Rows) -> Values:
    return pa.scalar(rows.given.now, expr.type.to_arrow())


def _property(expr: ir.Property, rows: Rows) -> Values:
    return rows.property_of(expr)


def _entity(expr: ir.Entity, rows: Rows) -> Values:
    return rows.object_of(expr)


def _value(expr: ir.ValueRef, rows: Rows) -> Values:
    return rows.value_of(expr.name)


def _score(expr: ir.Score, rows: Rows) -> Values:
    found = rows.score_of(expr)
    if found is None:
        raise InvariantViolationError("A score was requested that no search has computed.")
    return found


def _compare(expr: ir.Compare, rows: Rows) -> Values:
    left, right = expr.left, expr.right
    if is_constant(right):
        value = constant(right, rows.given)
        return comparisons.to_constant(expr.op, evaluate(left, rows), left.type, value)
    if is_constant(left):
        value = constant(left, rows.given)
        op = comparisons.mirrored(expr.op)
        return comparisons.to_constant(op, evaluate(right, rows), right.type, value)
    return comparisons.to_column(expr.op, evaluate(left, rows), evaluate(right, rows))


def _and(expr: ir.And, rows: Rows) -> Values:
    return reduce(pc.and_kleene, (evaluate(item, rows) for item in expr.items))


def _or(expr: ir.Or, rows: Rows) -> Values:
    return reduce(pc.or_kleene, (evaluate(item, rows) for item in expr.items))


def _not(expr: ir.Not, rows: Rows) -> Values:
    return pc.invert(evaluate(expr.item, rows))


def _is_null(expr: ir.IsNull, rows: Rows) -> Values:
    if isinstance(expr.item, ir.Entity):
        absent = rows.absent(expr.item.var)
        return pc.invert(absent) if expr.negated else absent
    values = evaluate(expr.item, rows)
    return pc.is_valid(values) if expr.negated else pc.is_null(values)


def _in(expr: ir.In, rows: Rows) -> Values:
    item = evaluate(expr.item, rows)
    if is_constant(expr.options):
        options = constant(expr.options, rows.given)
        return comparisons.in_constants(item, expr.item.type, options)
    options = evaluate(expr.options, rows)
    return comparisons.in_lists(options, expr.options.type, item, rows.count)


def _contains(expr: ir.ListContains, rows: Rows) -> Values:
    item = evaluate(expr.item, rows)
    lists = evaluate(expr.list, rows)
    return comparisons.in_lists(lists, expr.list.type, item, rows.count)


def _string_test(expr: ir.StringTest, rows: Rows) -> Values:
    left = evaluate(expr.left, rows)
    if is_constant(expr.right):
        wanted = constant(expr.right, rows.given)
        return functions.string_test(expr.op, left, wanted, expr.ignore_case)
    right = evaluate(expr.right, rows)
    return functions.string_test_by_row(expr.op, left, right, expr.ignore_case, rows.count)


def _arithmetic(expr: ir.Arithmetic, rows: Rows) -> Values:
    left, right = evaluate(expr.left, rows), evaluate(expr.right, rows)
    wanted = expr.type.to_arrow()
    return functions.arithmetic(expr.op, left, right, wanted, strict=rows.given.strict)


def _function(expr: ir.Function, rows: Rows) -> Values:
    args = [evaluate(arg, rows) for arg in expr.args]
    return functions.call(expr.name, args, expr.type.to_arrow(), strict=rows.given.strict)


def _text_match(expr: ir.TextMatch, rows: Rows) -> Values:
    return rows.matches(expr)


def _aggregate(expr: ir.Aggregate, rows: Rows) -> Values:
    raise InvariantViolationError("An aggregate was requested outside its group.")


_EVALUATORS: dict[type[Any], Callable[[Any, Rows], Values]] = {
    ir.Literal: _literal,
    ir.Param: _param,
    ir.Now: _now,
    ir.Property: _property,
    ir.Entity: _entity,
    ir.ValueRef: _value,
    ir.Compare: _compare,
    ir.And: _and,
    ir.Or: _or,
    ir.Not: _not,
    ir.IsNull: _is_null,
    ir.In: _in,
    ir.StringTest: _string_test,
    ir.ListContains: _contains,
    ir.Arithmetic: _arithmetic,
    ir.Function: _function,
    ir.Aggregate: _aggregate,
    ir.TextMatch: _text_match,
    ir.VectorScore: _score,
    ir.TextScore: _score,
    ir.Fuse: _score,
    ir.RankOf: _score,
}
