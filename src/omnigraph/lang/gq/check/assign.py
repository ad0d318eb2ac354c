"""Check that a value fits a property, in property maps and in assignments.

Guarantees: a constant comes back in the property's own type where that loses nothing.
Deliberately absent: required properties and keys, which are the statement's business.
"""

from __future__ import annotations

from typing import Final, Literal

from omnigraph.ir import expr as ir
from omnigraph.lang.diagnostics import offer
from omnigraph.lang.gq import ast
from omnigraph.lang.gq.check import rules
from omnigraph.lang.gq.check.scope import show_type
from omnigraph.lang.gq.check.values import Values
from omnigraph.model.types import Kind, ValueType

Purpose = Literal["matched with", "set to"]


def check_value(
    values: Values, field: ast.Field, wanted: ValueType, purpose: Purpose
) -> ir.Expr | None:
    """The value of a field as the property takes it, or nothing if it does not fit."""
    value = values.lower(field.value)
    if value is None:
        return None
    if isinstance(value, ir.Literal):
        return _constant(values, field, value, wanted, purpose)
    if not _assignable(value.type, wanted):
        return _misfit(values, "T7", field, value, wanted, purpose)
    return value


def _misfit(
    values: Values, code: str, field: ast.Field, value: ir.Expr, wanted: ValueType, purpose: Purpose
) -> ir.Expr | None:
    given = show_type(value.type)
    message = f"`{field.name.text}` takes {wanted.spelling()} and cannot be {purpose} {given}"
    return values.error(code, message, field.value.span, _hint(value.type, wanted, purpose))


def _constant(
    values: Values, field: ast.Field, value: ir.Literal, wanted: ValueType, purpose: Purpose
) -> ir.Expr | None:
    name = field.name.text
    if value.value is None and purpose == "matched with":
        message = f"`{name}` cannot be matched with null"
        return values.error("T3", message, field.value.span, "use a filter with `is null`")
    if value.value is not None and not _assignable(_natural(value, wanted), wanted):
        return _misfit(values, "T3", field, value, wanted, purpose)
    try:
        return ir.Literal(rules.fit(value.value, wanted), wanted.as_nullable(value.value is None))
    except ValueError as error:
        if purpose == "matched with" and wanted.is_numeric:
            return value  # nothing in the column equals it, which is the right answer
        hint = _misfit_hint(value.value, wanted)
        return values.error("T3", f"`{name}` does not fit: {error}", field.value.span, hint)


def _misfit_hint(value: object, wanted: ValueType) -> str | None:
    if value is None:
        return "give a value, or make the property optional in the schema"
    return offer(str(value), wanted.enum) if wanted.enum else None


def _natural(value: ir.Literal, wanted: ValueType) -> ValueType:
    """The type of a constant, seen from its place: an empty list fits every list, and a list of
    numbers counts as a vector of its length."""
    listed = value.type.kind is Kind.LIST
    if listed and not value.value and wanted.kind is Kind.LIST:
        return wanted
    if listed and wanted.kind is Kind.VECTOR and rules.item_type(value.type).is_numeric:
        return ValueType(Kind.VECTOR, dim=len(value.value))
    return value.type


def _assignable(given: ValueType, wanted: ValueType) -> bool:
    if wanted.kind is Kind.BLOB and given.kind is Kind.STRING:
        return True  # the address of the blob's bytes
    return rules.compatible(given, wanted)


_EXAMPLES: Final = {
    Kind.STRING: 'write texts in quotes: `"text"`',
    Kind.DATE: 'write a day as `date("2026-02-14")`',
    Kind.DATETIME: 'write an instant as `datetime("2026-02-14T10:00:00Z")`, or `now()`',
    Kind.BOOL: "write `true` or `false`",
    Kind.LIST: "write a list of its items: `[a, b]`",
    Kind.VECTOR: "write as many numbers as the vector has: `[0.1, 0.2, 0.3]`",
}


def _hint(given: ValueType, wanted: ValueType, purpose: Purpose) -> str | None:
    if purpose == "matched with" and given.kind is Kind.LIST:
        return "a list property is matched by one of its items"
    if wanted.is_numeric:
        return "write numbers without quotes"
    return _EXAMPLES.get(wanted.kind)
