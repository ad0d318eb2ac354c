"""The calendar: which dates and times a graph may hold, and Python values for any of them.

A Date is a day from 0001-01-01 to 9999-12-31, a DateTime a millisecond of those days in UTC: what
Python, JSON with ISO 8601 and every client can read back. Arrow and Lance can hold far more, so the
range is checked wherever values come in, and a graph that holds others nevertheless can be read:
such a value comes out as text in the expanded form of ISO 8601, `+12345-06-07`.

Guarantees: `python_values` and `python_rows` never fail because of a date.
Deliberately absent: parsing.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

_EPOCH = date(1970, 1, 1)
_EPOCH_MOMENT = datetime(1970, 1, 1, tzinfo=UTC)
DAY_MS = 86_400_000
FIRST_DAY = (date.min - _EPOCH).days
LAST_DAY = (date.max - _EPOCH).days
FIRST_MS = FIRST_DAY * DAY_MS
LAST_MS = (LAST_DAY + 1) * DAY_MS - 1
RANGE = "0001-01-01 to 9999-12-31"
# How many of a unit make a millisecond, or how many milliseconds a unit is.
_PER_MS = {"us": 1_000, "ns": 1_000_000}
_MS_PER = {"s": 1_000, "ms": 1}


def day(number: int) -> date:
    """The date so many days after 1970-01-01; `ValueError` outside the calendar."""
    if not FIRST_DAY <= number <= LAST_DAY:
        raise ValueError(f"day {number} since 1970-01-01 is outside {RANGE}")
    return _EPOCH + timedelta(days=number)


def moment(number: int) -> datetime:
    """The time so many milliseconds after 1970-01-01; `ValueError` outside the calendar."""
    if not FIRST_MS <= number <= LAST_MS:
        raise ValueError(f"millisecond {number} since 1970-01-01 is outside {RANGE}")
    return _EPOCH_MOMENT + timedelta(milliseconds=number)


def is_temporal(type_: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_date(type_) or pa.types.is_timestamp(type_))


def outside(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Where dates or times are outside the calendar; null where there is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    low, high = _bounds(column.type)
    plain = pa.int32() if pa.types.is_date32(column.type) else pa.int64()
    numbers = column.cast(plain)
    return pc.or_(pc.less(numbers, low), pc.greater(numbers, high))


def has_outside(column: pa.Array | pa.ChunkedArray) -> bool:
    """Whether any date or time is outside the calendar. Nanoseconds cannot reach its ends."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        return False
    return bool(pc.any(outside(column), min_count=0).as_py())


def _bounds(type_: pa.DataType) -> tuple[int, int]:
    """The first and the last number of the type that are inside."""
    import pyarrow as pa

    if pa.types.is_date32(type_):
        return FIRST_DAY, LAST_DAY
    unit = "ms" if pa.types.is_date64(type_) else type_.unit
    if unit in _PER_MS:
        scale = _PER_MS[unit]
        return max(FIRST_MS * scale, -(2**63)), min((LAST_MS + 1) * scale - 1, 2**63 - 1)
    return -(-FIRST_MS // _MS_PER[unit]), LAST_MS // _MS_PER[unit]


# Python values.


def python_values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values of a column, dates and times outside the calendar as text."""
    try:
        found: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):
        found = [_python_value(scalar) for scalar in column]
    return found


def python_rows(rows: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    """The rows as dicts, dates and times outside the calendar as text."""
    try:
        found: list[dict[str, Any]] = rows.to_pylist()
    except (OverflowError, ValueError):
        names = rows.schema.names
        columns = [python_values(column) for column in rows.columns]
        found = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    return found


def _python_value(scalar: pa.Scalar) -> Any:
    import pyarrow as pa

    if not scalar.is_valid:
        return None
    if is_temporal(scalar.type):
        return _date_or_text(scalar)
    if isinstance(scalar, pa.ListScalar):  # all kinds of lists
        return [_python_value(item) for item in scalar.values]
    if isinstance(scalar, pa.StructScalar):
        return {name: _python_value(scalar[name]) for name in scalar}
    return scalar.as_py()


def _date_or_text(scalar: pa.Scalar) -> Any:
    import pyarrow as pa

    if pa.types.is_date32(scalar.type):
        number = scalar.value
        return day(number) if FIRST_DAY <= number <= LAST_DAY else spell_day(number)
    unit = "ms" if pa.types.is_date64(scalar.type) else scalar.type.unit
    ms = scalar.value // _PER_MS[unit] if unit in _PER_MS else scalar.value * _MS_PER[unit]
    inside = FIRST_MS <= ms <= LAST_MS
    if pa.types.is_date64(scalar.type):
        return day(ms // DAY_MS) if inside else spell_day(ms // DAY_MS)
    return moment(ms) if inside else spell_moment(ms)


def spell_day(number: int) -> str:
    """Any day as ISO 8601 text; outside of 0000 to 9999 the year has a sign."""
    # 400 years are 146,097 days, and then the calendar repeats itself.
    cycles, rest = divmod(number, 146_097)
    near = _EPOCH + timedelta(days=rest)
    year = near.year + 400 * cycles
    sign = "" if 0 <= year <= 9999 else ("+" if year > 0 else "-")
    return f"{sign}{abs(year):04d}-{near:%m-%d}"


def spell_moment(ms: int) -> str:
    """Any millisecond as ISO 8601 text in UTC."""
    days, rest = divmod(ms, DAY_MS)
    seconds, ms = divmod(rest, 1000)
    minutes, seconds = divmod(seconds, 60)
    return f"{spell_day(days)}T{minutes // 60:02d}:{minutes % 60:02d}:{seconds:02d}.{ms:03d}Z"


def iso(value: date) -> str:
    """A date or a time in UTC as ISO 8601 text; times to the millisecond."""
    if not isinstance(value, datetime):
        return value.isoformat()
    return f"{value.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"
