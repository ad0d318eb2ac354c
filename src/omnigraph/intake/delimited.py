"""Delimited text: records split into cells, cells brought to types that the row checks take.

CSV knows nothing but text. Numbers, booleans, lists and vectors are read here, and dates that are
given as numbers; everything else stays text and is read by the checks, as it would be from JSON.

Guarantees: a cell is read the way a person would write it (`3`, `1.5`, `true`, `[1, 2]`): digits
only, no `1_000` and no `0x10`; an empty cell is null, a quoted empty one an empty text; a cell that
does not fit, or a record with too many or too few cells, is reported, and left out of what comes
back.
Deliberately absent: finding the ends of records (`csvrecords`).
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from omnigraph.errors import InvalidDataError, Violation
from omnigraph.intake.csvrecords import CSV, Stretch
from omnigraph.model.strictjson import read_json
from omnigraph.model.types import FLOAT_KINDS, INTEGER_KINDS, Kind, ValueType
from omnigraph.rows.checks import TYPE, TableType
from omnigraph.rows.columns import combined
from omnigraph.rows.findings import Findings, Numbers, Origin, shown
from omnigraph.rows.propertyvalues import read_value

_BOOLS = {"true": True, "false": False, "1": True, "0": False}
_READ_BYTES = 1 << 20
_DIGITS = re.compile(r"[+-]?[0-9]+", re.ASCII)
_DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_PLAIN_DIGITS = r"^-?[0-9]+$"
_ANY_DIGITS = r"^\s*[+-]?[0-9]+\s*$"
_DATES = frozenset({Kind.DATE, Kind.DATETIME})


# Records.


def read_header(record: bytes, delimiter: str, file: str | None) -> list[str]:
    """The names of the columns, from the first record."""
    try:
        text = io.StringIO(record.decode("utf-8"), newline="")
        return next(csv.reader(text, delimiter=delimiter, strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        violation = Violation(CSV, f"the header cannot be read: {error}", file=file)
        raise InvalidDataError(f"{violation}.", violations=[violation]) from None


def read_records(
    type_name: str,
    names: list[str],
    stretch: Stretch,
    delimiter: str,
    origin: Origin,
    findings: Findings,
) -> tuple[pa.Table, Numbers]:
    """Columns of text under these names; and the numbers of the records that have as many cells."""
    wrong: dict[int, int] = {}

    def skip(row: Any) -> str:
        wrong[row.number - 1] = row.actual_columns
        return "skip"

    rows = pacsv.read_csv(
        pa.BufferReader(stretch.data),
        # Without threads: rows have numbers then, and nothing goes on behind our back.
        pacsv.ReadOptions(
            column_names=[str(place) for place in range(len(names))],
            block_size=max(_READ_BYTES, stretch.longest + 2),
            use_threads=False,
        ),
        pacsv.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=skip),
        pacsv.ConvertOptions(
            column_types={str(place): pa.string() for place in range(len(names))},
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            check_utf8=False,  # `buffers` does, and tells the row
        ),
    )
    findings.add_rows(
        np.array(sorted(wrong), np.int64),
        origin,
        lambda row: Violation(CSV, f"expected {len(names)} cells, found {wrong[row]}", type_name),
    )
    good = np.setdiff1d(np.arange(len(stretch.lines)), np.array(sorted(wrong), np.int64))
    return rows.rename_columns(names), good


# Cells.


def read_cells(
    table: TableType, rows: pa.Table, origin: Origin, findings: Findings
) -> tuple[pa.Table, Numbers]:
    """Text columns named after properties, in types; and the numbers of the rows that fit."""
    wrong = np.zeros(rows.num_rows, bool)
    for place, name in enumerate(rows.column_names):
        item = table.by_name.get(name)
        if item is None:
            continue
        column = _read_column(table, name, item.type, rows.column(name), origin, findings, wrong)
        rows = rows.set_column(place, name, column)
    good = np.flatnonzero(~wrong)
    return (rows if len(good) == len(wrong) else rows.take(pa.array(good))), good


def _read_column(
    table: TableType,
    name: str,
    type_: ValueType,
    column: pa.ChunkedArray,
    origin: Origin,
    findings: Findings,
    wrong: np.ndarray[Any, Any],
) -> pa.Array:
    read = _READERS.get(type_.kind)
    array = combined(column)
    if read is None:
        return array
    fast = _fast(array, type_)
    if fast is not None:
        return fast
    values: list[Any] = []
    for row, text in enumerate(array.to_pylist()):
        try:
            values.append(None if text is None else read_value(type_, read(text)))
        except ValueError as error:
            reason = str(error)
            violation = Violation(TYPE, reason, table.name, name, shown(text))
            findings.add_each([row], origin, violation)
            wrong[row] = True
            values.append(None)
    return pa.array(values, type_.to_arrow())


def _fast(array: pa.Array, type_: ValueType) -> pa.Array | None:
    """Cells at once, where none of them needs a closer look."""
    if type_.kind in _DATES:
        # The checks read dates as text faster than this module would.
        return None if _any(pc.match_substring_regex(array, _ANY_DIGITS)) else array
    if type_.kind in INTEGER_KINDS:
        # Arrow would also read 0x10.
        if _any(pc.invert(pc.match_substring_regex(array, _PLAIN_DIGITS))):
            return None
    elif type_.kind not in FLOAT_KINDS:
        return None
    try:
        found = array.cast(type_.to_arrow())
    except pa.ArrowInvalid:
        return None
    if type_.kind in FLOAT_KINDS and not pc.all(pc.is_finite(found), min_count=0).as_py():
        return None
    return found


def _any(mask: pa.Array) -> bool:
    return bool(pc.any(mask, min_count=0).as_py())


def _integer(text: str) -> int:
    digits = text.strip()
    if not _DIGITS.fullmatch(digits):
        raise ValueError("expected a whole number")
    try:
        return int(digits)
    except ValueError:  # thousands of digits
        raise ValueError("the number has too many digits") from None


def _number(text: str) -> float:
    digits = text.strip()
    if not _DECIMAL.fullmatch(digits):
        raise ValueError("expected a number such as 1.5")
    return float(digits)


def _bool(text: str) -> bool:
    try:
        return _BOOLS[text.strip().lower()]
    except KeyError:
        raise ValueError("expected true or false") from None


def _day(text: str) -> int | str:
    """A number of days or milliseconds; anything else is left to `read_value`."""
    return _integer(text) if _DIGITS.fullmatch(text.strip()) else text


def _list(text: str) -> Any:
    try:
        return read_json(text)
    except ValueError:
        raise ValueError("expected a list such as [1, 2]") from None


_READERS: dict[Kind, Callable[[str], Any]] = {
    **dict.fromkeys(INTEGER_KINDS, _integer),
    **dict.fromkeys(FLOAT_KINDS, _number),
    **dict.fromkeys(_DATES, _day),
    Kind.BOOL: _bool,
    Kind.LIST: _list,
    Kind.VECTOR: _list,
}
