"""Arrow columns from outside, checked before anything reads them.

Nothing in Arrow makes sure that what is called a text is UTF-8, that offsets stay within their
buffer or that an index of a dictionary names an entry. A file or a program may hand over
anything, and reading it then fails far from here, or not at all until the rows are committed.

Guarantees: what comes out is safe to read. A text that is not UTF-8 is reported for its row, and
the row is left out; a column that is damaged otherwise, or that occurs twice, refuses the input.
Deliberately absent: types and rules of the schema (`rows.checks`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.errors import InvalidDataError, Violation
from omnigraph.rows.findings import Findings, Numbers, Origin, shown

TYPE = "type"
DAMAGED = "damaged"
REPEATED = "repeated_column"


def sound_rows(
    type_name: str, rows: pa.Table, origin: Origin, findings: Findings
) -> tuple[pa.Table, Numbers]:
    """The rows that are safe to read, and their numbers."""
    refuse_repeated(type_name, rows.column_names, origin.file)
    wrong = np.zeros(rows.num_rows, bool)
    for name in rows.column_names:
        bad = _wrong_texts(type_name, name, rows.column(name), origin)
        if bad:
            _report(type_name, name, bad, origin, findings)
            wrong[list(bad)] = True
    good = np.flatnonzero(~wrong)
    if len(good) == len(wrong):
        return rows, good
    # Not `take`, which does not know all types of columns.
    kept = [rows.slice(first, count) for first, count in _runs(good)]
    return (pa.concat_tables(kept) if kept else rows.slice(0, 0)), good


def refuse_repeated(type_name: str, names: list[str], file: str | None = None) -> None:
    """A column that occurs twice has no one value for a row."""
    repeated = next((name for at, name in enumerate(names) if name in names[:at]), None)
    if repeated is not None:
        message = f"the column {shown(repeated)!r} occurs more than once"
        violation = Violation(REPEATED, message, type_name, shown(repeated), file=file)
        hint = "Rename or remove one of the columns; nothing was written."
        raise InvalidDataError(f"{violation}.", violations=[violation], hint=hint)


def _report(
    type_name: str, name: str, bad: dict[int, str], origin: Origin, findings: Findings
) -> None:
    findings.add_rows(
        np.array(sorted(bad), np.int64),
        origin,
        lambda row: Violation(TYPE, "the text is not valid UTF-8", type_name, name, bad[row]),
    )


def _runs(rows: Numbers) -> Iterator[tuple[int, int]]:
    """Ascending row numbers as stretches: first and how many."""
    for run in np.split(rows, np.flatnonzero(np.diff(rows) != 1) + 1):
        if len(run):
            yield int(run[0]), len(run)


# One column.


def _wrong_texts(
    type_name: str, name: str, column: pa.ChunkedArray, origin: Origin
) -> dict[int, str]:
    """The rows whose text is not UTF-8, with what they hold. Raises if all else is not sound."""
    found: dict[int, str] = {}
    first = 0
    for chunk in column.chunks:
        problem = _problem(chunk)
        if problem is not None:
            chunk = _as_bytes(chunk)
            problem = _problem(chunk)
            if problem is not None:
                row = first + _first_damaged(chunk)
                raise _damaged(type_name, name, problem, origin, row)
            found.update(_undecodable(chunk, first))
        first += len(chunk)
    return found


def _problem(chunk: pa.Array) -> str | None:
    try:
        chunk.validate(full=True)
    except pa.ArrowException as error:
        return str(error).splitlines()[0]
    return None


def _as_bytes(chunk: pa.Array) -> pa.Array:
    """The same buffers, with texts as bytes."""
    if isinstance(chunk, pa.ExtensionArray):
        chunk = chunk.storage
    return chunk.view(_bytes_type(chunk.type))


def _bytes_type(type_: pa.DataType) -> pa.DataType:
    texts = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary()}
    texts[pa.string_view()] = pa.binary_view()
    if type_ in texts:
        return texts[type_]
    if pa.types.is_dictionary(type_):
        return pa.dictionary(type_.index_type, _bytes_type(type_.value_type), type_.ordered)
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_bytes_type(field.type)) for field in type_])
    if pa.types.is_fixed_size_list(type_):
        return pa.list_(_bytes_type(type_.value_type), type_.list_size)
    for is_kind, make in _LISTS:
        if is_kind(type_):
            return make(_bytes_type(type_.value_type))
    return type_


_LISTS: tuple[tuple[Any, Any], ...] = (
    (pa.types.is_list, pa.list_),
    (pa.types.is_large_list, pa.large_list),
    (pa.types.is_list_view, pa.list_view),
    (pa.types.is_large_list_view, pa.large_list_view),
)


def _first_damaged(chunk: pa.Array) -> int:
    low, high = 0, len(chunk)
    while high - low > 1:
        middle = (low + high) // 2
        if _problem(chunk.slice(low, middle - low)) is None:
            low = middle
        else:
            high = middle
    return low


def _damaged(type_name: str, name: str, problem: str, origin: Origin, row: int) -> InvalidDataError:
    message = f"the column is damaged at row {row}: {problem}"
    record = origin.record(row)
    violation = Violation(DAMAGED, message, type_name, shown(name), None, record, origin.file)
    hint = "Write the file or make the table again; nothing was written."
    return InvalidDataError(f"{violation}.", violations=[violation], hint=hint)


def _undecodable(chunk: pa.Array, first: int) -> dict[int, str]:
    found = {}
    for row, value in enumerate(chunk.to_pylist(), first):
        wrong = _undecodable_part(value)
        if wrong is not None:
            found[row] = shown(wrong.decode("utf-8", "backslashreplace"))
    return found


def _undecodable_part(value: Any) -> bytes | None:
    """The first bytes within a value that are no UTF-8."""
    if isinstance(value, bytes):
        try:
            value.decode("utf-8")
        except UnicodeDecodeError:
            return value
    elif isinstance(value, list | dict):
        items = value.values() if isinstance(value, dict) else value
        return next((bad for item in items if (bad := _undecodable_part(item)) is not None), None)
    return None
