"""Cells of delimited text, brought to types that the row checks take.

CSV knows nothing but text. Numbers, booleans, lists and vectors are read here; everything else
stays text and is read by the checks, as it would be from JSON.

Guarantees: a cell is read the way a person would write it (`3`, `1.5`, `true`, `[1, 2]`); an empty
cell is null, a quoted empty one an empty text; a cell that does not fit is reported, and its row is
left out of what comes back.
Deliberately absent: splitting bytes into cells.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import Violation
from omnigraph.model.types import FLOAT_KINDS, INTEGER_KINDS, Kind, ValueType
from omnigraph.plan.checks import TYPE, TableType
from omnigraph.plan.columns import combined
from omnigraph.plan.findings import Findings, Numbers, Origin, shown
from omnigraph.plan.values import read_value

_BOOLS = {"true": True, "false": False, "1": True, "0": False}


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
    read = _reader(type_)
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
    """Numbers at once, where Arrow reads every cell; it takes nothing that Python would refuse."""
    if type_.kind not in INTEGER_KINDS | FLOAT_KINDS:
        return None
    try:
        found = array.cast(type_.to_arrow())
    except pa.ArrowInvalid:
        return None
    if type_.kind in FLOAT_KINDS and not pc.all(pc.is_finite(found), min_count=0).as_py():
        return None
    return found


def _reader(type_: ValueType) -> Callable[[str], Any] | None:
    if type_.kind in INTEGER_KINDS:
        return _integer
    if type_.kind in FLOAT_KINDS:
        return _number
    if type_.kind is Kind.BOOL:
        return _bool
    return _list if type_.kind in (Kind.LIST, Kind.VECTOR) else None


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("expected a whole number") from None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("expected a number") from None


def _bool(text: str) -> bool:
    try:
        return _BOOLS[text.strip().lower()]
    except KeyError:
        raise ValueError("expected true or false") from None


def _list(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise ValueError("expected a list such as [1, 2]") from None
