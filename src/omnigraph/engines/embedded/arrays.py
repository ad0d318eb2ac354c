"""Arrays by row number of one table version: columns, numbers of ids, and the order of ids.

A few rows are asked from storage; once that has been done often enough to have paid for reading a
column whole, the column is read and kept in a shared `Cache`, from which it may go at any time.

Guarantees: all that one `Arrays` hands out is in the same numbering, whatever the cache has dropped
or others have put there meanwhile; whichever way a value is found, it is the value at this version.
Deliberately absent: logical names. Columns are physical here; `catalog_view` knows the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.caches import AnyCache
from omnigraph.engines.embedded.bounds import Bounds
from omnigraph.engines.embedded.rownumbers import NOBODY, Array, Label, Numbering, Placing
from omnigraph.model.catalog import ID_COLUMN
from omnigraph.storage.table import ROW_ID

if TYPE_CHECKING:
    from omnigraph.engines.embedded.tablecache import Resident

# What reading one row by id costs, in rows of a full read of the column.
_ROWS_PER_PROBE = 20_000
_ROWS_PER_TAKEN_ROW = 20
# Vectors are wide: so many searches pay for reading all of them.
_SEARCHES_PER_READ = 64
# So many binary searches cost less than hashing all ids once.
_FEW_IDS = 100
# A column is not kept whole if it would take more than this share of the cache.
_LARGEST_SHARE = 4
# Holes hold null, which sorts last: beyond every text.
_AFTER_ALL = "\U0010ffff"


class Arrays:
    """A table version under one numbering."""

    def __init__(
        self, resident: Resident, numbering: Numbering, cache: AnyCache, bounds: Bounds
    ) -> None:
        self.numbering = numbering
        self.label = Label(resident.key, numbering.serial)
        self._resident = resident
        self._cache = cache
        self._bounds = bounds

    # Columns

    def held(self, column: str) -> pa.Array | None:
        """A column by number, if memory holds it."""
        return self._cache.peek((self.label, "column", column))

    def column(self, column: str) -> pa.Array:
        """A whole column by number."""
        return self._cache.get(
            (self.label, "column", column),
            lambda: self._load(column),
            lambda made: int(made.nbytes),
        )

    def _load(self, column: str) -> pa.Array:
        numbering = self.numbering
        carried = self._carried_ids() if column == ID_COLUMN else None
        if carried is not None:
            return carried
        table = self._resident.table
        assert table is not None
        values: list[pa.Array] = []
        placing = Placing(numbering)
        for batch in table.scan([column], with_row_id=True):
            self._bounds.scan(batch.num_rows)
            values.append(batch.column(0))
            placing.add(batch.column(ROW_ID).to_numpy())
        whole = _whole(values, table.schema.field(column).type)
        places = placing.places()
        return whole if places is None else whole.take(indices(places))

    def _carried_ids(self) -> pa.Array | None:
        """The ids under the numbering that this one continues, and those of the rows since; a row
        keeps its id for life."""
        numbering, origin = self.numbering, self.numbering.origin
        if origin is None:
            return None
        older: pa.Array | None = self._cache.peek((origin.label, "column", ID_COLUMN))
        if older is None:
            return None
        fresh = origin.delta.inserted.column(ID_COLUMN).combine_chunks()
        ids = pa.concat_arrays([older, fresh])
        if numbering.alive is None:
            return ids
        return ids.take(indices(np.where(numbering.alive, np.arange(numbering.size), NOBODY)))

    def fits(self, column: str) -> bool:
        """Whether a column may be kept whole."""
        if self._resident.table is None or self.held(column) is not None:
            return True
        width = _width(self._resident.table.schema.field(column).type)
        return self._resident.rows * width <= self._cache.limit_bytes // _LARGEST_SHARE

    def values(self, column: str, numbers: Array) -> pa.Array:
        """The values of some rows; `NOBODY` has null."""
        held = self.held(column)
        if held is None and self._worth_reading(column, len(numbers)):
            held = self.column(column)
        if held is not None:
            return held.take(indices(numbers))
        return self._fetch(column, numbers)

    def _worth_reading(self, column: str, rows: int) -> bool:
        probed = self._resident.afford_probe(rows * _ROWS_PER_TAKEN_ROW + _ROWS_PER_PROBE)
        return not probed and self.fits(column)

    def searched(self, column: str) -> pa.Array | None:
        """A column of vectors by number, once it has been searched often enough to be kept."""
        held = self.held(column)
        if held is None:
            times = self._resident.count_search(column)
            if times > _SEARCHES_PER_READ and self.fits(column):
                held = self.column(column)
        return held

    def _fetch(self, column: str, numbers: Array) -> pa.Array:
        assert self._resident.table is not None
        self._bounds.scan(len(numbers))
        there = numbers >= 0
        row_ids = self.numbering.to_row_ids(numbers[there])
        found = self._resident.table.take(row_ids, [column]).column(0).combine_chunks()
        if bool(there.all()):
            return found
        places = np.where(there, np.cumsum(there) - 1, NOBODY)
        return found.take(indices(places))

    # Rows by id

    def find(self, ids: Sequence[str]) -> Array:
        """The numbers of ids; `NOBODY` for an id that is not there."""
        if self._resident.table is None or self._resident.rows == 0:
            return np.full(len(ids), NOBODY, np.int32)
        held = self.held(ID_COLUMN)
        if held is None:
            if not self._worth_reading(ID_COLUMN, len(ids)):
                return self._probe(ids)
            held = self.column(ID_COLUMN)
        if len(ids) <= _FEW_IDS:
            order = self.id_order()
            return np.array([_search(held, order, i) for i in ids], self.numbering.dtype)
        return self.find_all(pa.array(ids, pa.string()))

    def find_all(self, ids: pa.Array | pa.ChunkedArray) -> Array:
        """The same for many ids, by hashing the whole id column."""
        numbering = self.numbering
        if numbering.size == 0:
            return np.full(len(ids), NOBODY, numbering.dtype)
        held = self.column(ID_COLUMN)
        self._bounds.scan(len(ids))
        places = self._bounds.wait(lambda: pc.index_in(ids, value_set=held), len(ids))
        found: Array = places.fill_null(NOBODY).to_numpy()
        return found.astype(numbering.dtype, copy=False)

    def _probe(self, ids: Sequence[str]) -> Array:
        assert self._resident.table is not None
        self._bounds.scan(len(ids))
        found = self._resident.table.lookup(ids, [ID_COLUMN])
        numbering = self.numbering
        numbers = numbering.to_numbers(found.column(ROW_ID).to_numpy())
        by_id = dict(zip(found.column(ID_COLUMN).to_pylist(), numbers.tolist(), strict=True))
        return np.array([by_id.get(i, NOBODY) for i in ids], numbering.dtype)

    def id_order(self) -> Array:
        """Row numbers in ascending order of their ids."""
        return self._cache.get(
            (self.label, "id order"), self._order_ids, lambda made: int(made.nbytes)
        )

    @property
    def is_ordered(self) -> bool:
        """Whether the order of ids is known, so that ranks cost next to nothing."""
        return self._cache.peek((self.label, "id order")) is not None

    def id_rank(self) -> Array:
        """By number: the place of a row in the order of ids."""
        return self._cache.get(
            (self.label, "id rank"), self._rank_ids, lambda made: int(made.nbytes)
        )

    def _order_ids(self) -> Array:
        ids = self.column(ID_COLUMN)
        order = self._bounds.wait(lambda: pc.sort_indices(ids), 4 * len(ids))
        found: Array = order.to_numpy().astype(self.numbering.dtype)
        return found

    def _rank_ids(self) -> Array:
        order = self.id_order()
        rank = np.empty(len(order), order.dtype)
        rank[order] = np.arange(len(order), dtype=order.dtype)
        return rank


def _whole(parts: list[pa.Array], type_: Any) -> pa.Array:
    """Parts as one array of its own. A part that is kept as it was read would keep all that was
    read with it: row ids, and the bytes of the file around it."""
    return pa.concat_arrays(parts) if parts else pa.array([], type_)


def indices(numbers: Array) -> pa.Array:
    """Numbers as Arrow takes them, with null for `NOBODY`."""
    absent = numbers < 0
    return pa.array(numbers, mask=absent) if bool(absent.any()) else pa.array(numbers)


def _search(ids: pa.Array, order: Array, wanted: str) -> int:
    """Binary search; a handful of scalars cost less than a vector over the whole column."""
    low, high = 0, len(order)
    while low < high:
        middle = (low + high) // 2
        if _text(ids, int(order[middle])) < wanted:
            low = middle + 1
        else:
            high = middle
    if low < len(order) and _text(ids, int(order[low])) == wanted:
        return int(order[low])
    return NOBODY


def _text(ids: pa.Array, number: int) -> str:
    text: str | None = ids[number].as_py()
    return _AFTER_ALL if text is None else text


def _width(type_: Any) -> int:
    """A guess at the bytes of one value."""
    if pa.types.is_fixed_size_list(type_):
        return int(type_.list_size) * _width(type_.value_type)
    try:
        return max(1, int(type_.bit_width) // 8)
    except ValueError:
        return 32
