"""One table version, partly in memory: numbering, columns and order by id, loaded when they pay.

A few rows are asked from storage; once that has been done often enough to have paid for reading a
column whole, the column is read and kept. What is kept lives in a shared `ByteCache` and may go at
any time.

Guarantees: whichever way a value is found, it is the value at this version; safe between threads.
Deliberately absent: logical names. Columns are physical here; `catalog_view` knows the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engines.embedded.bounds import Bounds
from omnigraph.engines.embedded.cache import ByteCache
from omnigraph.engines.embedded.lineage import Ancestor, continued
from omnigraph.engines.embedded.numbering import NOBODY, Array, Numbering, Placing, number_parts
from omnigraph.model.catalog import ID_COLUMN
from omnigraph.storage.reading import ROW_ID, IoCounters, Table

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


class Resident:
    """A table version and what memory holds of it. `table` None: it was never written."""

    def __init__(
        self,
        key: Hashable,
        table: Table | None,
        cache: ByteCache,
        find_ancestor: Callable[[Resident], Ancestor | None] | None = None,
    ) -> None:
        self.key = key
        self._table = table
        self._cache = cache
        self._find_ancestor = find_ancestor
        self._ancestor: Ancestor | None = None
        self._spent = 0  # on probes, in rows of a full read
        self._searches: dict[str, int] = {}

    @property
    def table(self) -> Table | None:
        return self._table

    @property
    def io(self) -> IoCounters:
        return IoCounters() if self._table is None else self._table.io()

    @property
    def rows(self) -> int:
        return 0 if self._table is None else self._table.rows

    @property
    def is_numbered(self) -> bool:
        return self._cache.peek((self.key, "rows")) is not None

    @property
    def ancestor(self) -> Ancestor | None:
        """The version whose numbers this one continues, if it does."""
        return self._ancestor

    def numbering(self, bounds: Bounds) -> Numbering:
        if self._table is None or self.rows == 0:
            return Numbering(0)
        return self._cache.get(
            (self.key, "rows"), lambda: self._number(bounds), lambda made: made.nbytes
        )

    def numbered(self, numbering: Numbering) -> Numbering:
        """This numbering, unless there is one already."""
        return self._cache.get((self.key, "rows"), lambda: numbering, lambda made: made.nbytes)

    def _number(self, bounds: Bounds) -> Numbering:
        return self._continued(bounds) or self._numbered_anew(bounds)

    def _continued(self, bounds: Bounds) -> Numbering | None:
        found = None if self._find_ancestor is None else self._find_ancestor(self)
        if found is None:
            return None
        older = found.resident.numbering(bounds)
        numbering = continued(older, found.delta, found.resident.key)
        self._ancestor = None if numbering is None else found
        return numbering

    def _numbered_anew(self, bounds: Bounds) -> Numbering:
        assert self._table is not None
        self._ancestor = None

        def row_ids() -> Iterator[Array]:
            assert self._table is not None
            for batch in self._table.scan([], with_row_id=True):
                bounds.check()
                yield batch.column(ROW_ID).to_numpy()

        return number_parts(row_ids())

    # Columns

    def has(self, column: str) -> bool:
        return self._table is not None and column in self._table.schema.names

    def held(self, column: str) -> pa.Array | None:
        """A column by number, if memory holds it."""
        return self._cache.peek((self.key, "column", column))

    def column(self, column: str, bounds: Bounds) -> pa.Array:
        """A whole column by number."""
        return self._cache.get(
            (self.key, "column", column),
            lambda: self._load(column, bounds),
            lambda made: int(made.nbytes),
        )

    def _load(self, column: str, bounds: Bounds) -> pa.Array:
        numbering = self.numbering(bounds)
        carried = self._carried_ids(numbering) if column == ID_COLUMN else None
        if carried is not None:
            return carried
        assert self._table is not None
        values: list[pa.Array] = []
        placing = Placing(numbering)
        for batch in self._table.scan([column], with_row_id=True):
            bounds.scan(batch.num_rows)
            values.append(batch.column(0))
            placing.add(batch.column(ROW_ID).to_numpy())
        whole = _whole(values, self._table.schema.field(column).type)
        places = placing.places()
        return whole if places is None else whole.take(indices(places))

    def _carried_ids(self, numbering: Numbering) -> pa.Array | None:
        """The ancestor's ids and those of the rows since; a row keeps its id for life."""
        if self._ancestor is None or numbering.continues != self._ancestor.resident.key:
            return None
        older = self._ancestor.resident.held(ID_COLUMN)
        if older is None:
            return None
        fresh = self._ancestor.delta.inserted.column(ID_COLUMN).combine_chunks()
        ids = pa.concat_arrays([older, fresh])
        if numbering.alive is None:
            return ids
        return ids.take(indices(np.where(numbering.alive, np.arange(numbering.size), NOBODY)))

    def fits(self, column: str) -> bool:
        """Whether a column may be kept whole."""
        if self._table is None or self.held(column) is not None:
            return True
        width = _width(self._table.schema.field(column).type)
        return self.rows * width <= self._cache.budget_bytes // _LARGEST_SHARE

    def values(self, column: str, numbers: Array, bounds: Bounds) -> pa.Array:
        """The values of some rows; `NOBODY` has null."""
        held = self.held(column)
        if held is None and self._worth_reading(column, len(numbers)):
            held = self.column(column, bounds)
        if held is not None:
            return held.take(indices(numbers))
        return self._fetch(column, numbers, bounds)

    def _worth_reading(self, column: str, rows: int) -> bool:
        probed = self.afford_probe(rows * _ROWS_PER_TAKEN_ROW + _ROWS_PER_PROBE)
        return not probed and self.fits(column)

    def afford_probe(self, cost: int) -> bool:
        """Whether one more probe is fine; once all together have cost a full read, none is."""
        if self._spent + cost >= self.rows:
            return False
        self._spent += cost
        return True

    def searched(self, column: str, bounds: Bounds) -> pa.Array | None:
        """A column of vectors by number, once it has been searched often enough to be kept."""
        held = self.held(column)
        if held is None:
            times = self._searches[column] = self._searches.get(column, 0) + 1
            if times > _SEARCHES_PER_READ and self.fits(column):
                held = self.column(column, bounds)
        return held

    def _fetch(self, column: str, numbers: Array, bounds: Bounds) -> pa.Array:
        assert self._table is not None
        bounds.scan(len(numbers))
        there = numbers >= 0
        row_ids = self.numbering(bounds).to_row_ids(numbers[there])
        found = self._table.take(row_ids, [column]).column(0).combine_chunks()
        if bool(there.all()):
            return found
        places = np.where(there, np.cumsum(there) - 1, NOBODY)
        return found.take(indices(places))

    # Rows by id

    def find(self, ids: Sequence[str], bounds: Bounds) -> Array:
        """The numbers of ids; `NOBODY` for an id that is not there."""
        if self._table is None or self.rows == 0:
            return np.full(len(ids), NOBODY, np.int32)
        held = self.held(ID_COLUMN)
        if held is None:
            if not self._worth_reading(ID_COLUMN, len(ids)):
                return self._probe(ids, bounds)
            held = self.column(ID_COLUMN, bounds)
        if len(ids) <= _FEW_IDS:
            order = self.id_order(bounds)
            return np.array([_search(held, order, i) for i in ids], self.numbering(bounds).dtype)
        return self.find_all(pa.array(ids, pa.string()), bounds)

    def find_all(self, ids: pa.Array | pa.ChunkedArray, bounds: Bounds) -> Array:
        """The same for many ids, by hashing the whole id column."""
        numbering = self.numbering(bounds)
        if numbering.size == 0:
            return np.full(len(ids), NOBODY, numbering.dtype)
        held = self.column(ID_COLUMN, bounds)
        bounds.scan(len(ids))
        places = bounds.wait(lambda: pc.index_in(ids, value_set=held), len(ids))
        found: Array = places.fill_null(NOBODY).to_numpy()
        return found.astype(numbering.dtype, copy=False)

    def _probe(self, ids: Sequence[str], bounds: Bounds) -> Array:
        assert self._table is not None
        bounds.scan(len(ids))
        found = self._table.lookup(ids, [ID_COLUMN])
        numbering = self.numbering(bounds)
        numbers = numbering.to_numbers(found.column(ROW_ID).to_numpy())
        by_id = dict(zip(found.column(ID_COLUMN).to_pylist(), numbers.tolist(), strict=True))
        return np.array([by_id.get(i, NOBODY) for i in ids], numbering.dtype)

    def id_order(self, bounds: Bounds) -> Array:
        """Row numbers in ascending order of their ids."""
        return self._cache.get(
            (self.key, "id order"), lambda: self._order_ids(bounds), lambda made: int(made.nbytes)
        )

    @property
    def is_ordered(self) -> bool:
        """Whether the order of ids is known, so that ranks cost next to nothing."""
        return self._cache.peek((self.key, "id order")) is not None

    def id_rank(self, bounds: Bounds) -> Array:
        """By number: the place of a row in the order of ids."""
        return self._cache.get(
            (self.key, "id rank"), lambda: self._rank_ids(bounds), lambda made: int(made.nbytes)
        )

    def _order_ids(self, bounds: Bounds) -> Array:
        ids = self.column(ID_COLUMN, bounds)
        order = bounds.wait(lambda: pc.sort_indices(ids), 4 * len(ids))
        found: Array = order.to_numpy().astype(self.numbering(bounds).dtype)
        return found

    def _rank_ids(self, bounds: Bounds) -> Array:
        order = self.id_order(bounds)
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
