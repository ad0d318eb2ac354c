"""Defaults that a side's rows got in new properties: no change of those rows.

A property that a side added with a default has a value in every row. Compared with a base that does
not know the property, every row would have changed, and deleting one would clash with that.

Guarantees: a row is left out only if all that sets it apart from the base are defaults of
properties which the base lacks. The images of other rows stay as they are.
Deliberately absent: values that somebody set, even to what is the default of another property.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.history.images import TableDiff
from omnigraph.model.catalog import ID_COLUMN, Property
from omnigraph.model.equality import same_columns
from omnigraph.plan.checks import default_value


def without_backfills(diff: TableDiff, added: Sequence[Property]) -> TableDiff:
    """What differs from a base whose rows had the defaults of `added`, which the side knows and
    the base does not, all along."""
    defaults = [item for item in added if item.has_default]
    if not defaults or diff.before.num_rows == 0:
        return diff
    before, filled = diff.before, diff.before
    for item in defaults:
        place = filled.column_names.index(item.column)
        value = pa.scalar(default_value(item), item.type.to_arrow())
        filled = filled.set_column(place, item.column, pa.repeat(value, filled.num_rows))
    there = pc.index_in(diff.after.column(ID_COLUMN), value_set=_ids(before))
    inside = np.flatnonzero(there.is_valid().to_numpy())
    beside = there.drop_null().to_numpy().astype(np.int64)
    alike = np.ones(len(inside), bool)
    old, new = filled.take(pa.array(beside)), diff.after.take(pa.array(inside))
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
