"""Node ids from keys: one canonical spelling per value, for single values and whole columns.

What it does: a key of one property gives its value's spelling; a key of several gives a JSON array
of spellings, in the order of the columns (the catalog keeps key properties in order of their ids,
so renaming one changes no id). Integers are decimal, booleans `true` and `false`, dates their days
and date-times their milliseconds since 1970, floats the shortest digits that read back at their
own width, without an exponent; both zeros are `0`.
Guarantees: the scalar and the column functions agree, value by value; equal values have equal
spellings and different ones different spellings; a row in which any member is null has no key.
Deliberately absent: keys of lists, vectors and blobs. Those are refused loudly.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, TypeAlias

from omnigraph.errors import InvalidArgumentError, InvalidDataError, Violation
from omnigraph.model.types import INTEGER_KINDS, Kind

if TYPE_CHECKING:
    import pyarrow as pa

    Column: TypeAlias = pa.Array | pa.ChunkedArray

KeyValue: TypeAlias = str | int | float | bool | date | datetime | None

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = date(1970, 1, 1)
_NEEDS_ESCAPE = r'["\\\x00-\x1f]'


def canonical_scalar(value: KeyValue, kind: Kind) -> str | None:
    """The spelling of one value, or nothing for a null."""
    if value is None:
        return None
    spelled = _spell(value, kind)
    if spelled is None:
        raise InvalidArgumentError(f"{value!r} is no {kind} that could be a key.")
    return spelled


def composite_key(values: Sequence[KeyValue], kinds: Sequence[Kind]) -> str | None:
    """The key of one row, or nothing when a member is null."""
    parts = [canonical_scalar(v, k) for v, k in zip(values, kinds, strict=True)]
    if any(part is None for part in parts):
        return None
    return parts[0] if len(parts) == 1 else _join(parts)


def _join(parts: Sequence[str | None]) -> str:
    return json.dumps(parts, ensure_ascii=False, separators=(",", ":"))


def _spell(value: KeyValue, kind: Kind) -> str | None:
    if kind is Kind.STRING:
        return value if isinstance(value, str) else None
    if kind is Kind.BOOL:
        return str(value).lower() if isinstance(value, bool) else None
    if isinstance(value, bool):
        return None
    if kind in INTEGER_KINDS:
        return str(value) if isinstance(value, int) else None
    if kind in (Kind.F32, Kind.F64):
        return _spell_float(float(value), kind) if isinstance(value, int | float) else None
    if kind is Kind.DATE:
        return _spell_date(value)
    return _spell_datetime(value) if kind is Kind.DATETIME else None


def _spell_float(value: float, kind: Kind) -> str:
    if not math.isfinite(value):
        raise _not_finite(kind, None)
    if kind is Kind.F32:
        import numpy as np

        return _plain(str(np.float32(value)))
    return _plain(repr(value))


def _plain(spelled: str) -> str:
    """Shortest digits without exponent, trailing zeros or a sign on zero."""
    text = format(Decimal(spelled), "f") if "e" in spelled else spelled
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _spell_date(value: KeyValue) -> str | None:
    if isinstance(value, int):
        return str(value)
    if isinstance(value, date) and not isinstance(value, datetime):
        return str((value - _EPOCH_DAY).days)
    return None


def _spell_datetime(value: KeyValue) -> str | None:
    if isinstance(value, int):
        return str(value)
    if not isinstance(value, datetime):
        return None
    moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value
    return str((moment - _EPOCH) // timedelta(milliseconds=1))


def _not_finite(what: object, record: int | None) -> InvalidDataError:
    message = "a value that is not finite cannot be part of a key"
    violation = Violation("key", message, record=record)
    return InvalidDataError(f"A {what} key holds {message}.", violations=[violation])


# Whole columns.


def composite_keys(columns: Sequence[Column]) -> pa.StringArray:
    """The key of every row; null where a member is null. This is the one way to compare rows."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not columns:
        raise InvalidArgumentError("A key needs at least one column.")
    parts = [canonical_column(column) for column in columns]
    if len(parts) == 1:
        return parts[0]
    pieces: list[object] = [pa.scalar('["')]
    for column, part in zip(columns, parts, strict=True):
        pieces += [_escaped(part) if _may_need_escape(column.type) else part, pa.scalar('","')]
    pieces[-1] = pa.scalar('"]')
    return pc.binary_join_element_wise(*pieces, "")


def node_ids(table: pa.Table | pa.RecordBatch, columns: Iterable[str]) -> pa.StringArray:
    """The ids that key columns of a table give, named in the order of the catalog's key."""
    return composite_keys([table.column(name) for name in columns])


def canonical_column(column: Column) -> pa.StringArray:
    """The spelling of every value of a column; null stays null."""
    import pyarrow as pa

    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):  # what combining gives for no chunks at all
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    kind = array.type
    if pa.types.is_dictionary(kind):
        return canonical_column(array.dictionary_decode())
    if pa.types.is_floating(kind):
        return _float_column(array)
    if pa.types.is_date32(kind):
        array = array.cast(pa.int32())
    elif pa.types.is_timestamp(kind) or pa.types.is_date64(kind):
        array = _milliseconds(array)
    elif not _is_plain(kind):
        raise InvalidArgumentError(
            f"A column of type {kind} cannot be part of a key or a uniqueness constraint."
        )
    return array.cast(pa.string())


def _is_plain(kind: pa.DataType) -> bool:
    import pyarrow as pa

    tests = (
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_string_view,
        pa.types.is_integer,
        pa.types.is_boolean,
        pa.types.is_null,
    )
    return any(test(kind) for test in tests)


def _milliseconds(array: pa.Array) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_timestamp(array.type) and array.type.unit != "ms":
        zone = array.type.tz
        if array.type.unit == "s":
            array = array.cast(pa.timestamp("ms", tz=zone))
        else:
            # Towards the past, as for scalars; a cast alone would round towards 1970.
            array = pc.floor_temporal(array, unit="millisecond")
            array = array.cast(pa.timestamp("ms", tz=zone), safe=False)
    return array.cast(pa.int64())


def _float_column(array: pa.Array) -> pa.StringArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    finite = pc.fill_null(pc.is_finite(array), True)
    if not pc.all(finite, min_count=0).as_py():
        record = pc.index(finite, False).as_py()
        raise _not_finite(array.type, record)
    text = array.cast(pa.string())
    odd = pc.fill_null(pc.match_substring_regex(text, "e|^-0$"), False)
    if not pc.any(odd, min_count=0).as_py():
        return text
    plain = [None if t is None else _plain(t) for t in pc.filter(text, odd).to_pylist()]
    return pc.replace_with_mask(text, odd, pa.array(plain, pa.string()))


def _may_need_escape(kind: pa.DataType) -> bool:
    import pyarrow as pa

    numbers = pa.types.is_primitive(kind) or pa.types.is_boolean(kind)
    return not numbers


def _escaped(array: pa.StringArray) -> pa.StringArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    odd = pc.fill_null(pc.match_substring_regex(array, _NEEDS_ESCAPE), False)
    if not pc.any(odd, min_count=0).as_py():
        return array
    encoded = [json.dumps(t, ensure_ascii=False)[1:-1] for t in array.filter(odd).to_pylist()]
    return pc.replace_with_mask(array, odd, pa.array(encoded, pa.string()))
