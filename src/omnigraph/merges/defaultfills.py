"""Defaults that a side's rows got in new properties: no change of those rows.

A required property that a side added has its default in every row that was there. Compared with a
base that does not know the property, every row would have changed, and deleting one would clash
with that. So the base's rows count as if they had had the default all along.

A row is left out only if all that sets it apart from the base are defaults of properties which the
base lacks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.history.images import TableDiff
from omnigraph.model.catalog import ID_COLUMN, Property
from omnigraph.model.equality import same_columns
from omnigraph.rows.checks import default_value


def backfilled(items: Iterable[Property]) -> dict[str, Any]:
    """What existing rows get in new properties, by column, where that is not null."""
    required = [item for item in items if item.has_default and not item.type.nullable]
    return {item.column: default_value(item) for item in required}


def with_backfills(rows: pa.Table, items: Iterable[Property]) -> pa.Table:
    """Rows with what they would have got in new properties."""
    for column, value in backfilled(items).items():
        if column in rows.column_names:
            place = rows.column_names.index(column)
            default = pa.scalar(value, rows.schema.field(place).type)
            rows = rows.set_column(place, column, pa.repeat(default, rows.num_rows))
    return rows


def without_backfills(diff: TableDiff, added: Sequence[Property]) -> TableDiff:
    """What differs from a base whose rows had the defaults of `added`, which the side knows and
    the base does not, all along."""
    if not backfilled(added) or diff.before.num_rows == 0:
        return diff
    before = with_backfills(diff.before, added)
    there = pc.index_in(diff.after.column(ID_COLUMN), value_set=_ids(before))
    inside = np.flatnonzero(there.is_valid().to_numpy())
    beside = there.drop_null().to_numpy().astype(np.int64)
    alike = np.ones(len(inside), bool)
    old, new = before.take(pa.array(beside)), diff.after.take(pa.array(inside))
    for name in _compared(diff):
        alike &= same_columns(old.column(name), new.column(name))
    keep_after, keep_before = np.ones(diff.after.num_rows, bool), np.ones(before.num_rows, bool)
    keep_after[inside[alike]] = False
    keep_before[beside[alike]] = False
    return TableDiff(
        diff.types,
        before.filter(pa.array(keep_before)),
        diff.after.filter(pa.array(keep_after)),
        _with_places(diff.rewritten, diff.after.filter(pa.array(~keep_after))),
    )


def _compared(diff: TableDiff) -> list[str]:
    ends = [name for name in ("src", "dst") if name in diff.after.column_names]
    return [*ends, *(item.column for item in diff.types.shown.properties)]


def _with_places(rewritten: pa.Table, rows: pa.Table) -> pa.Table:
    return pa.concat_tables([rewritten, rows.select(rewritten.column_names)])


def _ids(rows: pa.Table) -> pa.Array:
    column = rows.column(ID_COLUMN)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], pa.string())
