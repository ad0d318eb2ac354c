"""Whole columns of an input, brought to the type of a property.

Arrow's own casts do the work; where one refuses, every value is read again by itself, to learn
which rows are wrong and why.

Guarantees: what comes out has the property's Arrow type; a row that does not fit is null and is
reported; nothing is accepted that `values.read_value` would refuse, save that whole numbers may
come as floats (a frame with gaps has no other way to hold them) and that a moment at midnight may
stand for a date. Columns were found safe to read before (`intake.buffers`).
Deliberately absent: rules of the schema (`checks`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, time
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.model.references import STORED
from omnigraph.model.temporal import (
    FIRST_DAY,
    FIRST_MS,
    LAST_DAY,
    LAST_MS,
    has_outside,
    is_temporal,
    python_values,
)
from omnigraph.model.types import FLOAT_KINDS, INTEGER_KINDS, Kind, ValueType
from omnigraph.rows.propertyvalues import read_value

_DATE_TEXT = r"^\d{4}-\d\d-\d\d$"
_TIME_TEXT = r"^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?(Z|[+-]\d\d:?\d\d)?$"
_ZONE_TEXT = r"(Z|[+-]\d\d:?\d\d)$"
_MILLISECONDS = pa.timestamp("ms", tz="UTC")


@dataclass(frozen=True, slots=True)
class Misfit:
    """A row whose value is not of the wanted type."""

    row: int
    value: Any
    reason: str


def to_column(
    column: pa.ChunkedArray | pa.Array, type_: ValueType
) -> tuple[pa.Array, list[Misfit]]:
    """The column in the Arrow type of `type_`, and the rows that did not fit."""
    array = combined(column)
    if array.type == type_.to_arrow() and type_.kind not in _LOOK_INSIDE:
        return array, []
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), type_.to_arrow()), []
    try:
        fast = _convert(array, type_)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        fast = None
    return (fast, []) if fast is not None else _value_by_value(array, type_)


def combined(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """One array, without dictionary."""
    if isinstance(column, pa.ChunkedArray):
        if pa.types.is_dictionary(column.type):
            # Chunk by chunk: Arrow does not join dictionaries that hold null.
            column = pa.chunked_array([_decoded(c) for c in column.chunks], _decoded_type(column))
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):  # what combining gives for no chunks at all
            column = pa.array([], column.type)
    return _decoded(column) if pa.types.is_dictionary(column.type) else column


def _decoded_type(column: pa.ChunkedArray) -> pa.DataType:
    held = column.type.value_type
    return pa.large_string() if pa.types.is_string_view(held) else held


def _decoded(array: pa.DictionaryArray) -> pa.Array:
    """Arrow has no way to decode a dictionary of views, so their texts are copied first."""
    if pa.types.is_string_view(array.type.value_type):
        words = array.dictionary.cast(pa.large_string())
        array = pa.DictionaryArray.from_arrays(array.indices, words)
    return array.dictionary_decode()


def is_text(type_: pa.DataType) -> bool:
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(test(type_) for test in tests)


def _value_by_value(array: pa.Array, type_: ValueType) -> tuple[pa.Array, list[Misfit]]:
    misfits: list[Misfit] = []
    values: list[Any] = []
    for row, value in enumerate(python_values(array)):
        try:
            values.append(None if value is None else read_value(type_, _loosened(value, type_)))
        except ValueError as error:
            values.append(None)
            misfits.append(Misfit(row, value, str(error)))
    return pa.array(values, type_.to_arrow()), misfits


def _loosened(value: Any, type_: ValueType) -> Any:
    """What a frame has no better type for."""
    if type_.kind in _NUMBERED and isinstance(value, float) and value.is_integer():
        return int(value)
    if type_.kind is Kind.DATE and isinstance(value, datetime) and value.time() == time():
        return value.date()
    return value


def _convert(array: pa.Array, type_: ValueType) -> pa.Array | None:
    """The whole column at once, or None when it has to be looked at value by value."""
    kind = type_.kind
    if kind is Kind.VECTOR:
        return _to_vectors(array, type_)
    if kind is Kind.LIST:
        return _to_lists(array, type_)
    return _convert_scalars(array, kind, type_.to_arrow())


def _convert_scalars(array: pa.Array, kind: Kind, wanted: pa.DataType) -> pa.Array | None:
    if kind in INTEGER_KINDS:
        number = pa.types.is_integer(array.type) or pa.types.is_floating(array.type)
        return array.cast(wanted) if number else None
    if kind in FLOAT_KINDS:
        return _to_floats(array, wanted)
    return _CONVERTERS[kind](array)


def _to_floats(array: pa.Array, wanted: pa.DataType) -> pa.Array | None:
    if not (pa.types.is_integer(array.type) or pa.types.is_floating(array.type)):
        return None
    # Not a safe cast: a whole number that no float holds is rounded, as it would be in JSON.
    found = array.cast(wanted, safe=False)
    return found if _all(pc.is_finite(found)) else None


def _to_text(array: pa.Array) -> pa.Array | None:
    return array.cast(pa.string()) if is_text(array.type) else None


def _to_bools(array: pa.Array) -> pa.Array | None:
    return array if pa.types.is_boolean(array.type) else None


def _within_calendar(convert: Callable[[pa.Array], pa.Array | None]) -> Any:
    """The conversion, unless a date is outside the calendar before or after it."""

    def converted(array: pa.Array) -> pa.Array | None:
        if is_temporal(array.type) and has_outside(array):
            return None
        found = convert(array)
        return None if found is None or has_outside(found) else found

    return converted


@_within_calendar
def _to_dates(array: pa.Array) -> pa.Array | None:
    if pa.types.is_date(array.type):
        return array.cast(pa.date32())
    if pa.types.is_integer(array.type):
        if not _between(array.cast(pa.int64()), FIRST_DAY, LAST_DAY):
            return None
        return array.cast(pa.int32()).cast(pa.date32())
    if pa.types.is_timestamp(array.type):
        days = array.cast(pa.date32())
        return days if _all(pc.equal(days.cast(array.type), array)) else None
    if is_text(array.type) and _all(pc.match_substring_regex(array, _DATE_TEXT)):
        return array.cast(pa.string()).cast(pa.date32())
    return None


@_within_calendar
def _to_datetimes(array: pa.Array) -> pa.Array | None:
    if pa.types.is_integer(array.type):
        moments = array.cast(pa.int64())
        return moments.cast(_MILLISECONDS) if _between(moments, FIRST_MS, LAST_MS) else None
    if pa.types.is_date(array.type):
        return array.cast(pa.timestamp("ms")).cast(_MILLISECONDS)
    if is_text(array.type):
        if not _all(pc.match_substring_regex(array, _TIME_TEXT)):
            return None
        array = _with_zone(array.cast(pa.string())).cast(pa.timestamp("us", tz="UTC"))
    if not pa.types.is_timestamp(array.type):
        return None
    return _cut_to_milliseconds(array)


def _between(numbers: pa.Array, low: int, high: int) -> bool:
    return _all(pc.and_(pc.greater_equal(numbers, low), pc.less_equal(numbers, high)))


def _with_zone(text: pa.Array) -> pa.Array:
    has_zone = pc.match_substring_regex(text, _ZONE_TEXT)
    if _all(has_zone):
        return text
    return pc.if_else(has_zone, text, pc.binary_join_element_wise(text, "Z", ""))


def _cut_to_milliseconds(array: pa.Array) -> pa.Array:
    unit = array.type.unit
    array = array.cast(pa.timestamp(unit, tz="UTC"))  # without a zone it is taken as UTC
    if unit in ("us", "ns"):
        # Towards the past; the cast alone would go towards 1970.
        array = pc.floor_temporal(array, unit="millisecond")
        return array.cast(_MILLISECONDS, safe=False)
    return array.cast(_MILLISECONDS)


def _to_blobs(array: pa.Array) -> pa.Array | None:
    tests = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
    if any(test(array.type) for test in tests):
        array = array.cast(pa.large_binary())
        # References have to be looked at one by one: they are not trusted to have been admitted.
        marked = pc.any(pc.starts_with(array, pattern=STORED), min_count=0).as_py()
        return None if marked else array
    return None


def _to_vectors(array: pa.Array, type_: ValueType) -> pa.Array | None:
    items = _items(array)
    if items is None or _to_floats(items, pa.float32()) is None or items.null_count:
        return None
    return array.cast(type_.to_arrow(), safe=False)


def _to_lists(array: pa.Array, type_: ValueType) -> pa.Array | None:
    assert type_.item is not None
    items = _items(array)
    if items is None or items.null_count:
        return None
    wanted = type_.to_arrow()
    converted = _convert_scalars(items, type_.item, wanted.value_type)
    if converted is None:
        return None
    if converted.type == items.type:
        return array.cast(wanted)
    lengths = pc.fill_null(pc.list_value_length(array), 0).cast(pa.int64())
    ends = pc.cumulative_sum(lengths).cast(pa.int32())
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    return pa.ListArray.from_arrays(offsets, converted, wanted, mask=array.is_null())


def _items(array: pa.Array) -> pa.Array | None:
    tests = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    if not any(test(array.type) for test in tests):
        return None
    if pa.types.is_fixed_size_list(array.type) and array.null_count:
        array = array.drop_null()  # their places still hold items
    return array.flatten()


def _all(mask: pa.Array) -> bool:
    """Whether a mask holds wherever it is not null."""
    return bool(pc.all(mask, min_count=0).as_py())


_LOOK_INSIDE = FLOAT_KINDS | {Kind.LIST, Kind.VECTOR, Kind.BLOB, Kind.DATE, Kind.DATETIME}
# Kinds that a whole number may stand for.
_NUMBERED = INTEGER_KINDS | {Kind.DATE, Kind.DATETIME}

_CONVERTERS: dict[Kind, Callable[[pa.Array], pa.Array | None]] = {
    Kind.STRING: _to_text,
    Kind.BOOL: _to_bools,
    Kind.DATE: _to_dates,
    Kind.DATETIME: _to_datetimes,
    Kind.BLOB: _to_blobs,
}
