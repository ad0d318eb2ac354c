"""Coercion of constants to the type of the compared column.

A comparison whose constant fits the type of the column keeps its operator and takes a value of that
type, so that an index on the column answers it. One that does not fit is turned into the
nearest question that does (`x < 3.5` on whole numbers is `x <= 3`), or into a plain yes or no for
every value that is not null (`x = 3000000000` on I32 is never true).

Guarantees: the answer is that of comparing exact numbers and instants. A decimal against an F32
column is read at the column's precision, as the value itself was when it was written.
Deliberately absent: columns against columns; those are widened where they are compared.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from omnigraph.ir.expr import CompareOp
from omnigraph.model.types import FLOAT_KINDS, INTEGER_KINDS, Kind

_BOUNDS: dict[Kind, tuple[int, int]] = {
    Kind.I32: (-(2**31), 2**31 - 1),
    Kind.I64: (-(2**63), 2**63 - 1),
    Kind.U32: (0, 2**32 - 1),
    Kind.U64: (0, 2**64 - 1),
}


@dataclass(frozen=True, slots=True)
class Fitted:
    """A comparison in the column's type: `column op value`."""

    op: CompareOp
    value: Any


# A comparison as a question to the column, or its answer for every value that is not null.
Question = Fitted | bool


def fit(op: CompareOp, kind: Kind, value: Any) -> Question:
    """Restate `column op value` for a column of this kind. `value` is not None."""
    if kind in INTEGER_KINDS and _is_number(value):
        return _to_integer(op, kind, value)
    if kind in FLOAT_KINDS and _is_number(value):
        return _to_float(op, kind, value)
    if kind is Kind.DATE and isinstance(value, datetime):
        return _to_date(op, value)
    if kind is Kind.DATETIME and isinstance(value, date):
        return _to_datetime(op, value)
    return Fitted(op, value)


def fit_options(kind: Kind, values: Iterable[Any]) -> list[Any]:
    """The options of `in` that a column of this kind can equal, in its own type."""
    found = (fit(CompareOp.EQ, kind, value) for value in values if value is not None)
    return [question.value for question in found if isinstance(question, Fitted)]


def mirrored(op: CompareOp) -> CompareOp:
    """The operator with its sides exchanged."""
    other = {
        CompareOp.LT: CompareOp.GT,
        CompareOp.LE: CompareOp.GE,
        CompareOp.GT: CompareOp.LT,
        CompareOp.GE: CompareOp.LE,
    }
    return other.get(op, op)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _to_integer(op: CompareOp, kind: Kind, value: int | float) -> Question:
    if isinstance(value, float):
        if math.isnan(value):
            return op is CompareOp.NE
        if math.isinf(value):
            return _beyond(op, above=value > 0)
        below = math.floor(value)
        if below != value:
            question = _between(op, below)
            if isinstance(question, bool):
                return question
            op, value = question.op, question.value
        else:
            value = below
    low, high = _BOUNDS[kind]
    if value > high:
        return _beyond(op, above=True)
    return _beyond(op, above=False) if value < low else Fitted(op, int(value))


def _to_float(op: CompareOp, kind: Kind, value: int | float) -> Question:
    if isinstance(value, float):
        if kind is Kind.F64 or math.isnan(value) or math.isinf(value):
            return Fitted(op, value) if not math.isnan(value) else op is CompareOp.NE
        near = _as_f32(value)
        return Fitted(op, near) if near is not None else _beyond(op, above=value > 0)
    near = _as_f32(value) if kind is Kind.F32 else _as_f64(value)
    if near is None:
        return _beyond(op, above=value > 0)
    if near == value:
        return Fitted(op, near)
    # Python compares int with float exactly: `near` is a neighbour, on a known side.
    if near < value:
        return _between(op, near)
    return _between(op, near, below=False)


def _to_date(op: CompareOp, value: datetime) -> Question:
    moment = _utc(value)
    midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    return Fitted(op, moment.date()) if moment == midnight else _between(op, moment.date())


def _to_datetime(op: CompareOp, value: date) -> Question:
    if not isinstance(value, datetime):
        return Fitted(op, datetime(value.year, value.month, value.day, tzinfo=UTC))
    moment = _utc(value)
    beyond = timedelta(microseconds=moment.microsecond % 1000)
    return _between(op, moment - beyond) if beyond else Fitted(op, moment)


def _between(op: CompareOp, neighbour: Any, *, below: bool = True) -> Question:
    """The constant lies strictly between two values of the type; `neighbour` is one of them."""
    match op:
        case CompareOp.EQ:
            return False
        case CompareOp.NE:
            return True
        case CompareOp.LT | CompareOp.LE:
            return Fitted(CompareOp.LE if below else CompareOp.LT, neighbour)
        case _:
            return Fitted(CompareOp.GT if below else CompareOp.GE, neighbour)


def _beyond(op: CompareOp, *, above: bool) -> bool:
    """The constant lies beyond every value of the type."""
    if op in (CompareOp.EQ, CompareOp.NE):
        return op is CompareOp.NE
    return above is (op in (CompareOp.LT, CompareOp.LE))


def _as_f32(value: int | float) -> float | None:
    try:
        (near,) = struct.unpack("<f", struct.pack("<f", value))
    except OverflowError:
        return None
    return float(near)


def _as_f64(value: int) -> float | None:
    try:
        return float(value)
    except OverflowError:
        return None


def _utc(value: datetime) -> datetime:
    """A time without a zone is taken as UTC, as the loader does."""
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
