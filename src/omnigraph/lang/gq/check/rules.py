"""Which types go together: the rules of the type checker that need no names.

Guarantees: pure functions over value types and constants.
Deliberately absent: findings. Callers know the place and the words.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import Any

from omnigraph.lang.regex import pattern_error
from omnigraph.model.types import FLOAT_KINDS, INTEGER_KINDS, Kind, ValueType

INTEGER_RANGES: dict[Kind, tuple[int, int]] = {
    Kind.I32: (-(2**31), 2**31 - 1),
    Kind.I64: (-(2**63), 2**63 - 1),
    Kind.U32: (0, 2**32 - 1),
    Kind.U64: (0, 2**64 - 1),
}


def compatible(one: ValueType, other: ValueType) -> bool:
    """Whether values of the two types can be compared with, or assigned to, each other."""
    if one.kind is Kind.LIST or other.kind is Kind.LIST:
        return one.kind is other.kind and _same_family(one.item, other.item)
    if one.kind is Kind.VECTOR or other.kind is Kind.VECTOR:
        return one.kind is other.kind and one.dim == other.dim
    return _same_family(one.kind, other.kind)


def _same_family(one: Kind | None, other: Kind | None) -> bool:
    if one is other:
        return True
    numbers = INTEGER_KINDS | FLOAT_KINDS
    return one in numbers and other in numbers


def item_type(listed: ValueType) -> ValueType:
    """The type of a list's items."""
    return ValueType(listed.item or Kind.STRING, listed.nullable, enum=listed.enum)


def shared(types: list[ValueType]) -> ValueType | None:
    """The one type that several definitions of a property share, or nothing."""
    first = types[0]
    for other in types[1:]:
        if (first.kind, first.item, first.dim) != (other.kind, other.item, other.dim):
            return None
    nullable = any(t.nullable for t in types)
    values: tuple[str, ...] = ()
    if all(t.enum for t in types):
        values = tuple(sorted({value for t in types for value in t.enum}))
    return ValueType(first.kind, nullable, item=first.item, dim=first.dim, enum=values)


def common(types: list[ValueType]) -> ValueType | None:
    """The type of a value that may come from any of several places, or nothing."""
    first = types[0]
    if not all(compatible(first, other) for other in types[1:]):
        return None
    nullable = all(t.nullable for t in types)
    kinds = {t.kind for t in types}
    if len(kinds) > 1:
        kind = _widest(kinds)
        return None if kind is None else ValueType(kind, nullable)
    return ValueType(first.kind, nullable, item=first.item, dim=first.dim)


def _widest(kinds: set[Kind]) -> Kind | None:
    """The kind that holds all numbers of these kinds; none for U64 together with signed ones."""
    if kinds & FLOAT_KINDS:
        return Kind.F64
    if Kind.U64 in kinds:
        return Kind.U64 if kinds <= {Kind.U32, Kind.U64} else None
    return Kind.I64


def arithmetic(op: str, left: ValueType, right: ValueType) -> ValueType | None:
    """The type of `left op right`; division is exact, and by zero it is null.

    Integers give U64 where an operand is U64, and I64 otherwise. A remainder is no larger than its
    left operand and has its sign, so that one decides."""
    if not (left.is_numeric and right.is_numeric):
        return None
    floats = left.kind in FLOAT_KINDS or right.kind in FLOAT_KINDS
    decisive = {left.kind} if op == "%" else {left.kind, right.kind}
    whole = Kind.U64 if Kind.U64 in decisive else Kind.I64
    kind = Kind.F64 if floats or op == "/" else whole
    return ValueType(kind, left.nullable or right.nullable or op in ("/", "%"))


def fit(value: Any, wanted: ValueType) -> Any:
    """A constant as the property's type holds it; raises ValueError where it does not fit."""
    if value is None:
        if not wanted.nullable:
            raise ValueError("the property cannot be null")
        return None
    if wanted.kind is Kind.LIST:
        return [fit(each, item_type(wanted).as_nullable()) for each in value]
    if wanted.kind is Kind.VECTOR:
        return [float(each) for each in value]
    if wanted.enum and value not in wanted.enum:
        raise ValueError(f"the values are {', '.join(wanted.enum)}, got `{value}`")
    if wanted.kind in INTEGER_RANGES:
        return _fit_integer(value, wanted.kind)
    return float(value) if wanted.kind in FLOAT_KINDS else value


def _fit_integer(value: int | float, kind: Kind) -> int:
    if value != int(value):
        raise ValueError(f"{value} is not a whole number")
    low, high = INTEGER_RANGES[kind]
    if not low <= value <= high:
        raise ValueError(f"{kind} goes from {low} to {high}, got {value}")
    return int(value)


def parse_date(text: str) -> date:
    """A day as ISO 8601 writes it: `2026-02-14`."""
    return date.fromisoformat(text)


def parse_datetime(text: str) -> datetime:
    """An instant as ISO 8601 writes it, in UTC unless it says otherwise, to the millisecond."""
    return normalize_datetime(datetime.fromisoformat(text))


def normalize_datetime(moment: datetime) -> datetime:
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    in_utc = aware.astimezone(UTC)
    return in_utc.replace(microsecond=in_utc.microsecond // 1000 * 1000)


# What RE2 does not have; it reports the place, and this says what is meant.
_ABSENT = re.compile(r"(?<!\\)(?:\\\\)*(?:\(\?(?:[=!>]|<[=!]|P=|\()|\\[1-9])")


def regex_problem(pattern: str) -> str | None:
    """Why a pattern cannot be used, or nothing."""
    problem = pattern_error(pattern)
    if problem is not None and _ABSENT.search(pattern):
        return "look-around and back-references are not available"
    return problem
