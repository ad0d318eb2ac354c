"""Finds the rows that have given keys, by a scan of a table in this process or in executors.

The same holders wherever the pass is made. What is held in memory are the keys that are looked for,
about twice as many rows at a time, and the rows that hold one: never the table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.model.catalog import ID_COLUMN
from omnigraph.model.keys import composite_keys
from omnigraph.rows.columns import combined

# The ids of rows, each with the place of the key that found it.
Holders: TypeAlias = tuple[np.ndarray[Any, Any], pa.Array]
NOBODY: Holders = (np.empty(0, np.int64), pa.array([], pa.string()))
# Looking a few rows up costs as much as preparing to look.
_LEAST_ROWS = 65_536


@dataclass(frozen=True)
class KeyShape:
    """What keys are made of: columns as their type has them. `fills` are the values of rows in
    columns that their table has not got yet; null where it does not say."""

    fields: pa.Schema
    fills: Mapping[str, Any] = field(default_factory=dict)

    def columns(self, there: Collection[str]) -> list[str]:
        """What must be read of a table that has these columns."""
        return list(dict.fromkeys((ID_COLUMN, *(n for n in self.fields.names if n in there))))

    def spell(self, rows: pa.Table) -> pa.Array:
        """The key of each row, null when a member is."""
        if self.fields.names == [ID_COLUMN]:
            return combined(rows.column(ID_COLUMN))
        return composite_keys([self._column(rows, item) for item in self.fields])

    def _column(self, rows: pa.Table, item: pa.Field) -> pa.ChunkedArray:
        if item.name in rows.column_names:
            return rows.column(item.name).cast(item.type)
        value = pa.scalar(self.fills.get(item.name), item.type)
        return pa.chunked_array([pa.repeat(value, rows.num_rows)])


def holders_among(shape: KeyShape, batches: Iterable[pa.RecordBatch], keys: pa.Array) -> Holders:
    """Those of some rows that hold one of the keys, which are distinct where they are not null."""
    found = [
        matched(shape.spell(rows), combined(rows.column(ID_COLUMN)), keys)
        for rows in _gathered(batches, max(_LEAST_ROWS, 2 * len(keys)))
    ]
    return together(found)


def matched(stored: pa.Array, ids: pa.Array, keys: pa.Array) -> Holders:
    """Which of the stored keys is one of `keys`: the id, and its place there."""
    places = pc.index_in(stored, value_set=keys.drop_null(), skip_nulls=True)
    hit = pc.is_valid(places)
    found = places.filter(hit).to_numpy(zero_copy_only=False).astype(np.int64)
    # `index_in` speaks of the keys without nulls.
    valid = np.flatnonzero(pc.is_valid(keys).to_numpy(zero_copy_only=False))
    return valid[found], ids.filter(hit)


def together(found: Iterable[Holders]) -> Holders:
    parts = [NOBODY, *found]
    return np.concatenate([places for places, _ in parts]), pa.concat_arrays([i for _, i in parts])


def _gathered(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.Table]:
    """The same rows in tables of at least so many, but for the last."""
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        held.append(batch)
        count += batch.num_rows
        if count >= rows:
            yield pa.Table.from_batches(held)
            held, count = [], 0
    if count:
        yield pa.Table.from_batches(held)
