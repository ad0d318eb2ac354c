"""One table version that queries share: its table, its numbering, and what probes have cost.

A numbering lives in a shared `Cache` and may go at any time; the next one may number the rows
differently. A query therefore takes `arrays` once and finds all that is by number there.

Guarantees: safe between threads.
Deliberately absent: arrays by number (`arrays`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator

from omnigraph.caches import AnyCache
from omnigraph.engines.embedded.arrays import Arrays
from omnigraph.engines.embedded.bounds import Bounds
from omnigraph.engines.embedded.lineage import Ancestor, continued
from omnigraph.engines.embedded.rownumbers import Array, Numbering, number_parts
from omnigraph.storage.table import ROW_ID, IoCounters, Table


class Resident:
    """A table version and what memory holds of it. `table` None: it was never written."""

    def __init__(
        self,
        key: Hashable,
        table: Table | None,
        cache: AnyCache,
        find_ancestor: Callable[[Resident], Ancestor | None] | None = None,
    ) -> None:
        self.key = key
        self._table = table
        self._cache = cache
        self._find_ancestor = find_ancestor
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
        return continued(found.resident.numbering(bounds), found)

    def _numbered_anew(self, bounds: Bounds) -> Numbering:
        assert self._table is not None

        def row_ids() -> Iterator[Array]:
            assert self._table is not None
            for batch in self._table.scan([], with_row_id=True):
                bounds.check()
                yield batch.column(ROW_ID).to_numpy()

        return number_parts(row_ids())

    def arrays(self, bounds: Bounds) -> Arrays:
        """What is known by number, under the numbering of this moment."""
        return Arrays(self, self.numbering(bounds), self._cache, bounds)

    def has(self, column: str) -> bool:
        return self._table is not None and column in self._table.schema.names

    # What probes have cost

    def afford_probe(self, cost: int) -> bool:
        """Whether one more probe is fine; once all together have cost a full read, none is."""
        if self._spent + cost >= self.rows:
            return False
        self._spent += cost
        return True

    def count_search(self, column: str) -> int:
        """How often a column of vectors has been searched, this time included."""
        times = self._searches[column] = self._searches.get(column, 0) + 1
        return times
