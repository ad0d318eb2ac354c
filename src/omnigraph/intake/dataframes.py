"""Frames of pandas, and of any library with Arrow's stream interface, as Arrow.

A frame that Arrow cannot hold is refused with the column and, where there is one, the row; nothing
of Arrow's or the library's own errors comes out.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from omnigraph.errors import InvalidDataError, Violation
from omnigraph.intake.buffers import refuse_repeated
from omnigraph.rows.findings import shown

_FAILURES = (pa.ArrowException, TypeError, ValueError, OverflowError)


def from_pandas(frame: Any) -> pa.Table:
    """A pandas frame, without its index."""
    refuse_repeated("", [str(name) for name in frame.columns])
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except _FAILURES as error:
        raise _refused(frame) from error


def _refused(frame: Any) -> InvalidDataError:
    for name in frame.columns:
        values = frame[name]
        if _fits(values):
            continue
        low, high = 0, len(values)
        while high - low > 1:  # the first rows that Arrow does not take all together
            middle = (low + high) // 2
            low, high = (middle, high) if _fits(values.iloc[:middle]) else (low, middle)
        value = values.iloc[low]
        message = f"a {type(value).__name__} does not fit the rows before it"
        violation = Violation("type", message, None, str(name), shown(value), low)
        return InvalidDataError(
            f"{violation} (row {low}).",
            violations=[violation],
            hint="Give every value of the column one type that a property can have; nothing was "
            "written.",
        )
    return InvalidDataError("The frame cannot be read as Arrow columns.")


def _fits(values: Any) -> bool:
    try:
        pa.Array.from_pandas(values)
    except _FAILURES:
        return False
    return True


def open_stream(data: Any) -> pa.RecordBatchReader:
    """The batches of an object with `__arrow_c_stream__`."""
    try:
        return pa.RecordBatchReader.from_stream(data)
    except _FAILURES as error:
        raise _unknown_types(data, error) from error


def _unknown_types(data: Any, error: Exception) -> InvalidDataError:
    """Libraries have types of their own; if a column can be tried by itself it is named."""
    wrong = [name for name in getattr(data, "columns", ()) if not _streams(data, name)]
    violations = [
        Violation("type", f"Arrow has no type {data[name].dtype}", None, str(name))
        for name in wrong
    ]
    reason = str(violations[0]) if violations else str(error).splitlines()[0]
    return InvalidDataError(
        f"The frame cannot be read as Arrow columns: {reason}.",
        violations=violations,
        hint="Cast the column to a type that a property can have; nothing was written.",
    )


def _streams(data: Any, name: Any) -> bool:
    try:
        pa.RecordBatchReader.from_stream(data.select([name]))
    except _FAILURES:
        return False
    except AttributeError:  # a library that has no such method
        return True
    return True
