"""Read the literal of `@default(…)` as a value of the property's type.

Guarantees: a default that is accepted could also have been loaded as data: it has the type, lies
in the enum and is finite. Dates are kept in one spelling.
Deliberately absent: defaults for lists, vectors and blobs.
"""

from __future__ import annotations

from omnigraph.lang.diagnostics import Report, suggest
from omnigraph.lang.pg import ast
from omnigraph.model.catalog import Constant
from omnigraph.model.types import FLOAT_KINDS, INTEGER_KINDS, Kind, ValueType

_INTEGER_BOUNDS = {
    Kind.I32: (-(2**31), 2**31 - 1),
    Kind.I64: (-(2**63), 2**63 - 1),
    Kind.U32: (0, 2**32 - 1),
    Kind.U64: (0, 2**64 - 1),
}
_MAX_F32 = 3.4028234663852886e38
_UNFIT = frozenset({Kind.LIST, Kind.VECTOR, Kind.BLOB})


def read_default(type_: ValueType, argument: ast.Argument, report: Report) -> Constant:
    """The default as a constant; nothing (and a finding) when it does not fit."""
    if type_.kind in _UNFIT:
        message = f"a property of type `{type_}` cannot have a default"
        report.add("S407", message, argument.span)
        return None
    value = argument.value.text if isinstance(argument.value, ast.Word) else argument.value
    constant = None if isinstance(value, ast.Bounds) else convert(type_, value)
    if constant is None:
        hint = suggest(value, type_.enum) if isinstance(value, str) and type_.enum else None
        message = f"the default does not fit the type `{type_.as_nullable(False)}`"
        report.add("S406", message, argument.span, hint=hint or _expected(type_))
    return constant


def convert(type_: ValueType, value: str | int | float | bool) -> Constant:
    """A literal as a constant of a scalar type, or nothing when it does not fit."""
    kind = type_.kind
    if kind is Kind.BOOL:
        return value if isinstance(value, bool) else None
    if isinstance(value, bool):
        return None
    if kind in INTEGER_KINDS:
        low, high = _INTEGER_BOUNDS[kind]
        return value if isinstance(value, int) and low <= value <= high else None
    if kind in FLOAT_KINDS:
        return None if isinstance(value, str) else _float(kind, value)
    if not isinstance(value, str):
        return None
    if kind is Kind.DATE:
        return _date(value)
    if kind is Kind.DATETIME:
        return _datetime(value)
    return value if not type_.enum or value in type_.enum else None


def normal_bound(type_: ValueType, bound: int | float | None) -> int | float | None:
    """A bound of a range as a number of the property's own kind, where that is exact."""
    if bound is None or not type_.is_numeric:
        return bound
    if type_.kind in FLOAT_KINDS:
        number = _float(Kind.F64, bound)
        return bound if number is None else number
    return int(bound) if isinstance(bound, float) and bound.is_integer() else bound


def _float(kind: Kind, value: int | float) -> float | None:
    try:
        number = float(value)
    except OverflowError:
        return None
    number += 0.0  # one zero, not two
    return None if kind is Kind.F32 and abs(number) > _MAX_F32 else number


def _date(text: str) -> str | None:
    from datetime import date

    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        return None


def _datetime(text: str) -> str | None:
    from datetime import UTC, datetime

    try:
        moment = datetime.fromisoformat(text)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _expected(type_: ValueType) -> str | None:
    examples = {
        Kind.BOOL: "write `true` or `false`",
        Kind.DATE: 'write a date, as in `@default("2026-01-31")`',
        Kind.DATETIME: 'write a time, as in `@default("2026-01-31T12:00:00Z")`',
        Kind.STRING: 'write a text in quotes, as in `@default("none")`',
    }
    if type_.enum:
        return f"write one of {', '.join(type_.enum[:10])}"
    if type_.kind in INTEGER_KINDS:
        low, high = _INTEGER_BOUNDS[type_.kind]
        return f"write a whole number from {low} to {high}"
    return examples.get(type_.kind, "write a number")
