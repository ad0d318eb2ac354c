"""Predicates for storage: Arrow expressions over physical columns.

    found = push(predicates, view, run)
    found.filter     hands storage what it can decide
    found.rest       must still be tested on the rows that come back

Guarantees: structured, never text; constants in the column's own type, so that an index on the
column is used; storage never drops a row that the predicates would keep. What is handed over has
a bounded size: Arrow writes each operand of a nested expression twice, so that the size doubles
with every level. Equal tests of one column become one list, and what exceeds `_MOST_SIZE` is tested
on rows.
Deliberately absent: functions of columns, tests that storage words differently, and questions to
unsigned columns, which Lance takes as text only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import and_, or_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engines.embedded.catalog_view import TypeView
from omnigraph.engines.embedded.frameexpr import constant, is_constant
from omnigraph.engines.embedded.run import Run
from omnigraph.engines.expressions.comparisons import is_exact
from omnigraph.ir.expr import (
    And,
    Compare,
    CompareOp,
    Expr,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    Property,
    StringOp,
    StringTest,
)
from omnigraph.model.types import Kind, ValueType
from omnigraph.rows.coercion import fit, fit_options, mirrored

# The largest expression that storage is asked, in leaves as Arrow writes them out: a balanced
# conjunction of 32 comparisons.
_MOST_SIZE = 1024
_LIST = ValueType(Kind.LIST)
_LAST_CHARACTER = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)


@dataclass(frozen=True, slots=True)
class Pushed:
    filter: Any | None
    rest: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class _Part:
    """An Arrow expression; `exact` when it keeps no row too many. `size` is its written size."""

    expression: Any
    exact: bool = True
    size: int = 1


def push(predicates: Sequence[Expr], view: TypeView, run: Run) -> Pushed:
    """Split predicates on one table into what storage decides and what is left to test."""
    found = [_part(predicate, view, run) for predicate in predicates]
    taken = _affordable(found)
    rest = tuple(
        predicate
        for predicate, part in zip(predicates, taken, strict=True)
        if part is None or not part.exact
    )
    parts = [part for part in taken if part is not None]
    return Pushed(_joined(and_, parts).expression if parts else None, rest)


def _affordable(parts: Sequence[_Part | None]) -> list[_Part | None]:
    """The first parts that together stay within the size that storage is asked; None for others."""
    taken: list[_Part | None] = []
    count, widest = 0, 1
    for part in parts:
        if part is not None and _joined_size(count + 1, max(widest, part.size)) <= _MOST_SIZE:
            count, widest = count + 1, max(widest, part.size)
            taken.append(part)
        else:
            taken.append(None)
    return taken


def _joined_size(count: int, widest: int) -> int:
    """At most how large so many parts are in a balanced tree, whose levels double them each."""
    return count * widest << (count - 1).bit_length()


def _joined(op: Callable[[Any, Any], Any], parts: Sequence[_Part]) -> _Part:
    """The parts joined in a balanced tree."""
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    left, right = _joined(op, parts[:middle]), _joined(op, parts[middle:])
    expression = op(left.expression, right.expression)
    return _Part(expression, left.exact and right.exact, 2 * (left.size + right.size))


def _part(expr: Expr, view: TypeView, run: Run) -> _Part | None:
    match expr:
        case And():
            return _all(expr, view, run)
        case Or():
            return _any(expr, view, run)
        case Not():
            inner = _part(expr.item, view, run)
            if inner is None or not inner.exact or 2 * inner.size > _MOST_SIZE:
                return None
            return _Part(~inner.expression, size=2 * inner.size)
        case Compare():
            return _comparison(expr, view, run)
        case In():
            return _membership(expr, view, run)
        case IsNull(item=Property() as item):
            field = _field(item, view)
            if field is None:
                return None
            return _Part(field.is_valid() if expr.negated else field.is_null())
        case StringTest():
            return _string_test(expr, view, run)
        case _:
            return None


def _all(expr: And, view: TypeView, run: Run) -> _Part | None:
    taken = _affordable([_part(item, view, run) for item in expr.items])
    known = [part for part in taken if part is not None]
    if not known:
        return None
    joined = _joined(and_, known)
    return joined if len(known) == len(taken) else replace(joined, exact=False)


def _any(expr: Or, view: TypeView, run: Run) -> _Part | None:
    taken = _affordable([_part(item, view, run) for item in _collected(expr, run)])
    known = [part for part in taken if part is not None]
    return _joined(or_, known) if known and len(known) == len(taken) else None


def _collected(expr: Or, run: Run) -> list[Expr]:
    """The items of a disjunction, in which equal tests of one property have become one list."""
    options: dict[Property, list[Any]] = {}
    rest: list[Expr] = []
    for item in expr.items:
        match item:
            case Compare(op=CompareOp.EQ, left=Property() as here, right=there):
                values = [constant(there, run)] if _takes_list(here, there) else None
            case In(item=Property() as here, options=there):
                values = (constant(there, run) or [None]) if _takes_list(here, there) else None
            case _:
                values = None
        if values is None:
            rest.append(item)
        else:
            options.setdefault(here, []).extend(values)
    lists = [In(here, Literal(values, _LIST)) for here, values in options.items()]
    return [*lists, *rest]


def _takes_list(here: Property, there: Expr) -> bool:
    return is_exact(here.type.kind) and is_constant(there)


def _field(expr: Property, view: TypeView) -> Any | None:
    """The column of a property, if the files hold it in the property's own type."""
    physical = view.physical(expr.name)
    table = view.resident.table
    if physical is None or table is None or not view.resident.has(physical[0]):
        return None
    if table.schema.field(physical[0]).type != physical[1]:
        return None
    # Lance's way from Arrow expressions to its own knows no unsigned numbers.
    return None if pa.types.is_unsigned_integer(physical[1]) else pc.field(physical[0])


def _comparison(expr: Compare, view: TypeView, run: Run) -> _Part | None:
    op, here, there = expr.op, expr.left, expr.right
    if not isinstance(here, Property):
        op, here, there = mirrored(op), there, here
    if not isinstance(here, Property) or not is_constant(there):
        return None
    field, value = _field(here, view), constant(there, run)
    if field is None or value is None:
        return None
    question = fit(op, here.type.kind, value)
    if isinstance(question, bool):
        # True for all that have a value; never true is still a question that storage can take.
        return _Part(field.is_valid()) if question else None
    wanted = pa.scalar(question.value, here.type.to_arrow())
    if is_exact(here.type.kind):
        return _Part(_compared(question.op, field, wanted))
    return _float_comparison(question.op, field, float(question.value), here.type.to_arrow())


def _float_comparison(op: CompareOp, field: Any, value: float, type_: Any) -> _Part | None:
    """A question that keeps at least the right rows, although storage tells -0.0 from 0.0."""
    low, high = (-0.0, 0.0) if value == 0.0 else (value, value)
    match op:
        case CompareOp.EQ:
            between = (field >= pa.scalar(low, type_)) & (field <= pa.scalar(high, type_))
            return _Part(between, exact=False)
        case CompareOp.NE:
            return None
        case CompareOp.LT | CompareOp.LE:
            return _Part(field <= pa.scalar(high, type_), exact=False)
        case _:
            return _Part(field >= pa.scalar(low, type_), exact=False)


def _compared(op: CompareOp, field: Any, value: Any) -> Any:
    match op:
        case CompareOp.EQ:
            return field == value
        case CompareOp.NE:
            return field != value
        case CompareOp.LT:
            return field < value
        case CompareOp.LE:
            return field <= value
        case CompareOp.GT:
            return field > value
        case CompareOp.GE:
            return field >= value


def _membership(expr: In, view: TypeView, run: Run) -> _Part | None:
    item = expr.item
    if not isinstance(item, Property) or not is_constant(expr.options):
        return None
    field, options = _field(item, view), constant(expr.options, run)
    if field is None or options is None or not is_exact(item.type.kind):
        return None
    if any(option is None for option in options):
        return None
    fitting = fit_options(item.type.kind, options)
    if not fitting:
        return None
    return _Part(field.isin(pa.array(fitting, item.type.to_arrow())))


def _string_test(expr: StringTest, view: TypeView, run: Run) -> _Part | None:
    if expr.ignore_case or not isinstance(expr.left, Property) or not is_constant(expr.right):
        return None
    field, wanted = _field(expr.left, view), constant(expr.right, run)
    if field is None or not wanted:
        return None
    match expr.op:
        case StringOp.STARTS_WITH:
            # As a range: an ordered index answers it, and no character is a wildcard.
            after = _after_prefix(wanted)
            start = field >= pa.scalar(wanted)
            return _Part(start if after is None else start & (field < pa.scalar(after)))
        case StringOp.CONTAINS:
            return _Part(pc.match_substring(field, wanted))
        case _:
            return None


def _after_prefix(prefix: str) -> str | None:
    """The smallest text that sorts after every text with this prefix."""
    for place in range(len(prefix) - 1, -1, -1):
        following = ord(prefix[place]) + 1
        if following in _SURROGATES:
            following = _SURROGATES.stop
        if following <= _LAST_CHARACTER:
            return prefix[:place] + chr(following)
    return None
