"""Check the values that a caller gives for a query's parameters, and bring them into shape.

Values come from Python, from JSON or from a command line, so some spellings are accepted beside
the type itself: ISO 8601 text for dates and times, or the days and milliseconds since 1970-01-01,
whole numbers for floats, and decimal text for integers, because JSON readers lose digits of large
ones.

Guarantees: a value that comes back is of its declared type; every mistake is named at once, in
one `InvalidArgumentError` whose `details["problems"]` say which parameter and why.
Deliberately absent: defaults other than null for an optional parameter.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from typing import Any

from omnigraph.errors import InvalidArgumentError
from omnigraph.ir.expr import Param
from omnigraph.ir.query import Query
from omnigraph.lang.diagnostics import suggest
from omnigraph.lang.gq.check import rules
from omnigraph.model import temporal
from omnigraph.model.types import FLOAT_KINDS, INTEGER_KINDS, Kind, ValueType

_DECIMAL = re.compile(r"-?[0-9]{1,20}\Z")


class _Mismatch(Exception):  # noqa: N818 - control flow, never seen by a caller
    """A value is not of its type: why, in a word for programs and in a sentence for people."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def bind_params(query: Query, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """The values of all parameters of a query, each in its declared type."""
    bound: dict[str, Any] = {}
    problems: list[dict[str, str]] = []
    for param in query.params:
        try:
            bound[param.name] = _bind(param, given)
        except _Mismatch as mismatch:
            problems.append(_problem(param.name, mismatch.reason, str(mismatch)))
    known = [param.name for param in query.params]
    for name in given:
        if name not in known:
            problems.append(_problem(name, "unknown", _unknown(query, name, known)))
    if problems:
        raise _failure(query, problems)
    return bound


def _problem(name: str, reason: str, message: str) -> dict[str, str]:
    return {"param": name, "reason": reason, "message": message}


def _unknown(query: Query, name: str, known: list[str]) -> str:
    hint = suggest(name, known)
    return f"query `{query.name}` has no such parameter" + (f"; {hint}" if hint else "")


def _failure(query: Query, problems: list[dict[str, str]]) -> InvalidArgumentError:
    listed = "; ".join(f"`${each['param']}`: {each['message']}" for each in problems)
    signature = ", ".join(f"${param.name}: {param.type}" for param in query.params)
    return InvalidArgumentError(
        f"the parameters of query `{query.name}` do not fit: {listed}",
        hint=f"The query takes ({signature}).",
        query=query.name,
        problems=problems,
    )


def _bind(param: Param, given: Mapping[str, Any]) -> Any:
    if param.name not in given:
        if param.type.nullable:
            return None
        raise _Mismatch("missing", f"a {param.type.spelling()} is required")
    value = given[param.name]
    if value is None:
        if param.type.nullable:
            return None
        raise _Mismatch("null", "null is not allowed; only optional parameters take it")
    return coerce(value, param.type)


def coerce(value: Any, wanted: ValueType) -> Any:
    """A value that is not null in its declared type; raises `_Mismatch` where it does not fit."""
    kind = wanted.kind
    if kind is Kind.LIST:
        item = rules.item_type(wanted.as_nullable(False))
        return [coerce(each, item) for each in _items(value, wanted)]
    if kind is Kind.VECTOR:
        return _vector(value, wanted)
    if kind in INTEGER_KINDS:
        return _integer(value, kind)
    if kind in FLOAT_KINDS:
        return _float(value, wanted)
    if kind is Kind.DATE:
        return _day(value, wanted)
    if kind is Kind.DATETIME:
        return _instant(value, wanted)
    return _plain(value, wanted)


def _wrong(value: Any, wanted: ValueType) -> _Mismatch:
    shown = repr(value)
    shown = shown if len(shown) <= 40 else shown[:37] + "…"
    return _Mismatch("wrong_type", f"expected {wanted.spelling()}, got {shown}")


def _is_whole_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _plain(value: Any, wanted: ValueType) -> Any:
    allowed: dict[Kind, tuple[type, ...]] = {
        Kind.STRING: (str,),
        Kind.BOOL: (bool,),
        Kind.BLOB: (str, bytes),
    }
    if not isinstance(value, allowed[wanted.kind]):
        raise _wrong(value, wanted)
    if isinstance(value, str) and not _is_whole_text(value):
        raise _Mismatch("wrong_type", "the text holds half a character (a lone surrogate)")
    if wanted.enum and value not in wanted.enum:
        raise _Mismatch("not_in_enum", f"expected one of {', '.join(wanted.enum)}, got {value!r}")
    return value


def _integer(value: Any, kind: Kind) -> int:
    if isinstance(value, str) and _DECIMAL.match(value):
        number = int(value)
    elif isinstance(value, bool | str | float):
        raise _wrong(value, ValueType(kind))
    else:
        try:
            number = operator.index(value)
        except TypeError:
            raise _wrong(value, ValueType(kind)) from None
    low, high = rules.INTEGER_RANGES[kind]
    if not low <= number <= high:
        raise _Mismatch("out_of_range", f"{kind} goes from {low} to {high}, got {number}")
    return number


def _float(value: Any, wanted: ValueType) -> float:
    if isinstance(value, bool | str | bytes) or not hasattr(value, "__float__"):
        raise _wrong(value, wanted)
    try:
        number = float(value)
    except (OverflowError, TypeError, ValueError):
        raise _wrong(value, wanted) from None
    if not math.isfinite(number):
        raise _Mismatch("out_of_range", f"expected a finite number, got {number}")
    return number


def _items(value: Any, wanted: ValueType) -> list[Any]:
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise _wrong(value, wanted)
    items = list(value)
    if any(each is None for each in items):
        raise _Mismatch("null", "a list cannot hold null")
    return items


def _vector(value: Any, wanted: ValueType) -> list[float]:
    items = _items(value, wanted)
    if len(items) != wanted.dim:
        raise _Mismatch("wrong_length", f"expected {wanted.dim} numbers, got {len(items)}")
    return [_float(each, wanted) for each in items]


def _day(value: Any, wanted: ValueType) -> date:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    try:
        if _is_number(value):
            return temporal.day(operator.index(value))
        if isinstance(value, str):
            return rules.parse_date(value)
    except ValueError as error:
        raise _outside(value, wanted, error) from None
    raise _wrong(value, wanted)


def _is_number(value: Any) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, bool)


def _outside(value: Any, wanted: ValueType, error: Exception) -> _Mismatch:
    """Numbers have a range; a text is wrong as a whole."""
    return _Mismatch("out_of_range", str(error)) if _is_number(value) else _wrong(value, wanted)


def _instant(value: Any, wanted: ValueType) -> datetime:
    try:
        if _is_number(value):
            return temporal.moment(operator.index(value))
        if isinstance(value, datetime):
            return rules.normalize_datetime(value)
        if isinstance(value, str):
            return rules.parse_datetime(value)
    except (ValueError, OverflowError) as error:
        raise _outside(value, wanted, error) from None
    raise _wrong(value, wanted)
