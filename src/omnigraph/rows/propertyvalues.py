"""One value of an input, read as the type of a property.

    read_value(scalar(Kind.DATE), "2024-02-30")      # ValueError: there is no such date

This is the reference for what an input may hold: the fast ways over whole columns accept nothing
that it refuses and give the same values.

Guarantees: integers are exact; numbers are finite; dates and times are ISO 8601, or whole numbers:
days and milliseconds since 1970-01-01; they are in the calendar (`model.temporal`), a time without
a zone is UTC and is cut to milliseconds; blobs are bytes, `base64:…` or an address where the bytes
lie; texts are valid Unicode. A value of another type is never converted: 3.0 is no integer and "3"
no number.
Deliberately absent: null, which only the property as a whole can allow, and constraints.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

from omnigraph.model.references import as_given, given_reference
from omnigraph.model.temporal import RANGE, day, moment
from omnigraph.model.types import INTEGER_KINDS, Kind, ValueType

INTEGER_BOUNDS: dict[Kind, tuple[int, int]] = {
    Kind.I32: (-(2**31), 2**31 - 1),
    Kind.I64: (-(2**63), 2**63 - 1),
    Kind.U32: (0, 2**32 - 1),
    Kind.U64: (0, 2**64 - 1),
}
F32_MAX = 3.4028234663852886e38
# From here on a double rounds to infinity when it is narrowed.
F32_OVERFLOW = 3.4028235677973366e38
BASE64_PREFIX = "base64:"

_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_DATETIME = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?)?"
    r"(?:(Z)|([+-])(\d\d):?(\d\d))?",
    re.ASCII,
)
# How ISO 8601 writes years beyond four digits, and `temporal` dates that no graph should hold.
_FAR = re.compile(r"[+-]\d{4,}-\d\d-\d\d(T.*)?", re.ASCII)


def read_value(type_: ValueType, value: Any) -> Any:
    """`value` in the Python type that Arrow takes for this type; `ValueError` says why not."""
    if type_.kind is Kind.LIST:
        assert type_.item is not None
        return [_read_item(type_.item, item) for item in _list(value, type_)]
    if type_.kind is Kind.VECTOR:
        return _vector(type_, value)
    return _read_scalar(type_.kind, value)


def _read_item(kind: Kind, value: Any) -> Any:
    if value is None:
        raise ValueError("a list cannot hold null")
    return _read_scalar(kind, value)


def _read_scalar(kind: Kind, value: Any) -> Any:
    if kind in INTEGER_KINDS:
        return _integer(kind, value)
    return _READERS[kind](value)


def _wrong(expected: object, value: Any) -> ValueError:
    return ValueError(f"expected {expected}, found {_named(value)}")


def _named(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return f"the boolean {str(value).lower()}"
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, str):
        return "a text"
    if isinstance(value, dict):
        return "an object"
    return "a list" if isinstance(value, list | tuple) else f"a {type(value).__name__}"


def _integer(kind: Kind, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _wrong(kind, value)
    low, high = INTEGER_BOUNDS[kind]
    if not low <= value <= high:
        raise ValueError(f"{value} does not fit {kind}, which goes from {low} to {high}")
    return value


def _float(kind: Kind, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong(kind, value)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number) or (kind is Kind.F32 and abs(number) >= F32_OVERFLOW):
        raise ValueError(f"expected a finite {kind}")
    return number


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise _wrong(Kind.STRING, value)
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("half of a surrogate pair is no text") from None
    return value


def _bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _wrong(Kind.BOOL, value)
    return value


def _date(value: Any) -> date:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return day(value)
    if not isinstance(value, str):
        raise _wrong(Kind.DATE, value)
    if not _DATE.fullmatch(value):
        _refuse_far(value)
        raise ValueError("expected a date such as 2024-01-31")
    return _calendar(value)


def _refuse_far(text: str) -> None:
    if _FAR.fullmatch(text):
        raise ValueError(f"{text[:40]} is outside {RANGE}")


def _calendar(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ValueError(f"there is no such date; dates go from {RANGE}") from None


def _datetime(value: Any) -> datetime:
    if isinstance(value, datetime):
        return _to_milliseconds(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return moment(value)
    if isinstance(value, str):
        return _to_milliseconds(_parse_datetime(value))
    raise _wrong(Kind.DATETIME, value)


def _to_milliseconds(time: datetime) -> datetime:
    try:
        time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"the time in UTC is outside {RANGE}") from None
    return time.replace(microsecond=time.microsecond // 1000 * 1000)


def _parse_datetime(text: str) -> datetime:
    found = _DATETIME.fullmatch(text)
    if found is None:
        _refuse_far(text)
        raise ValueError("expected a time such as 2024-01-31T12:00:00Z")
    day, hour, minute, second, fraction, _, sign, zone_hour, zone_minute = found.groups()
    start = _calendar(day)
    zone = UTC
    try:
        if sign:
            offset = timedelta(hours=int(zone_hour), minutes=int(zone_minute))
            zone = timezone(-offset if sign == "-" else offset)
        micro = int((fraction or "0").ljust(6, "0")[:6])
        clock = (int(hour or 0), int(minute or 0), int(second or 0), micro)
        return datetime(start.year, start.month, start.day, *clock, tzinfo=zone)
    except ValueError:
        raise ValueError(f"there is no such time; times go from {RANGE}") from None


def _blob(value: Any) -> bytes:
    if isinstance(value, bytes | bytearray | memoryview):
        return as_given(bytes(value))
    if not isinstance(value, str):
        raise _wrong(Kind.BLOB, value)
    if not value.startswith(BASE64_PREFIX):
        return given_reference(value)
    try:
        return as_given(base64.b64decode(value[len(BASE64_PREFIX) :], validate=True))
    except (binascii.Error, ValueError):
        raise ValueError(f"what follows {BASE64_PREFIX!r} is not base 64") from None


def _list(value: Any, type_: ValueType) -> Sequence[Any]:
    if isinstance(value, list | tuple):
        return value
    raise _wrong(type_.spelling(), value)


def _vector(type_: ValueType, value: Any) -> list[float]:
    items = _list(value, type_)
    if len(items) != type_.dim:
        raise ValueError(f"expected {type_.dim} numbers, found {len(items)}")
    return [_read_item(Kind.F32, item) for item in items]


_READERS: dict[Kind, Any] = {
    Kind.STRING: _string,
    Kind.BOOL: _bool,
    Kind.F32: lambda value: _float(Kind.F32, value),
    Kind.F64: lambda value: _float(Kind.F64, value),
    Kind.DATE: _date,
    Kind.DATETIME: _datetime,
    Kind.BLOB: _blob,
}
