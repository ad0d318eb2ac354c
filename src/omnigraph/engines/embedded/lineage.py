"""Later versions of a table from earlier ones: the changes of a commit are applied, instead of a
full rebuild.

The engine remembers the table versions that it has opened. When a version descends from one of
them and little lies between, numbering, ids and adjacency of the old one are carried over, and only
the rows that the delta names are looked at.

Guarantees: what is carried over equals what would be built from nothing; where the bookkeeping does
not reach, or too much has changed, there is no ancestor, and all is built from nothing.
Deliberately absent: the data themselves, which the cache may have dropped meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.caches import Cache
from omnigraph.engines.embedded.rownumbers import (
    Array,
    Label,
    Numbering,
    Origin,
    continuing,
)
from omnigraph.errors import HistoryReclaimedError, StorageNotFoundError
from omnigraph.model.catalog import DST_COLUMN, ID_COLUMN, SRC_COLUMN
from omnigraph.model.location import Location
from omnigraph.model.snapshot import TableVersion
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.table import ROW_ID
from omnigraph.storage.versiondiff import delta_size, descends, row_delta

if TYPE_CHECKING:
    from omnigraph.engines.embedded.tablecache import Resident

_TABLES = 4096
_VERSIONS_PER_TABLE = 4
# Beyond this share of a table, an incremental update costs more than a rebuild.
_LARGEST_SHARE = 8
_CARRIED = (ID_COLUMN, SRC_COLUMN, DST_COLUMN)


@dataclass(frozen=True, eq=False)
class Delta:
    """Rows that a version has written since an ancestor, and rows that it has lost.

    `inserted` and `updated` have `_rowid` and those of `id`, `src`, `dst` that the table has.
    `moved_from` has the row id of each updated row in the ancestor, `removed` those of rows whose
    id is gone.
    """

    inserted: pa.Table
    updated: pa.Table
    moved_from: Array
    removed: Array

    @property
    def nbytes(self) -> int:
        held = (self.inserted, self.updated, self.moved_from, self.removed)
        return sum(int(each.nbytes) for each in held)


@dataclass(frozen=True, eq=False)
class Ancestor:
    """An earlier version and the way from it."""

    resident: Resident
    delta: Delta


class Lineage:
    """The versions that an engine has seen, by table."""

    def __init__(self) -> None:
        self._seen: Cache[tuple[str, str], tuple[Resident, ...]] = Cache(entries=_TABLES)

    def remember(self, location: Location, resident: Resident) -> None:
        if resident.table is None:
            return
        key = (location.key, resident.table.version.path)
        known = self._seen.peek(key) or ()
        if resident not in known:
            known = (*known, resident)[-_VERSIONS_PER_TABLE:]
        self._seen.put(key, known)

    def ancestor(self, location: Location, resident: Resident) -> Ancestor | None:
        """The nearest earlier version from which this one descends by a small change."""
        assert resident.table is not None
        version = resident.table.version
        known = self._seen.peek((location.key, version.path)) or ()
        for older in sorted(known, key=_number, reverse=True):
            if older is resident or _number(older) >= version.version or not older.is_numbered:
                continue
            delta = _small_delta(location, older, version)
            if delta is not None:
                return Ancestor(older, delta)
        return None


def _number(resident: Resident) -> int:
    return 0 if resident.table is None else resident.table.version.version


def _small_delta(location: Location, older: Resident, version: TableVersion) -> Delta | None:
    assert older.table is not None
    before = older.table.version
    place = GraphRoot(location)
    try:
        if not descends(place, before, version):
            return None
        if delta_size(place, before, version) * _LARGEST_SHARE > version.rows:
            return None
    except (HistoryReclaimedError, StorageNotFoundError):
        return None  # removed by cleanup; the requested version is numbered from nothing
    columns = [name for name in _CARRIED if older.has(name)]
    found = row_delta(place, before, version, columns)
    return None if found is None else _delta(found.written, found.older, columns)


def _delta(written: pa.Table, older: pa.Table, columns: list[str]) -> Delta:
    """Rows are identified by their ids: a writer may give an updated row a new row id."""
    rows = written.select([*columns, ROW_ID]).combine_chunks()
    new, old = rows.column(ID_COLUMN), older.column(ID_COLUMN)
    before = pc.index_in(new, value_set=old.combine_chunks()).combine_chunks()
    known = before.is_valid()
    row_ids: Array = older.column(ROW_ID).to_numpy()
    return Delta(
        rows.filter(pc.invert(known)),
        rows.filter(known),
        row_ids[before.drop_null().to_numpy()],
        row_ids[~pc.is_in(old, value_set=new.combine_chunks()).to_numpy()],
    )


def continued(before: Numbering, found: Ancestor) -> Numbering | None:
    """The numbering of a version from its ancestor's; None when holes would waste too many."""
    delta = found.delta
    fresh = delta.inserted.column(ROW_ID).to_numpy()
    moved = delta.updated.column(ROW_ID).to_numpy()
    size = before.size + len(fresh)
    row_ids: Array | None = None
    stays = before.row_ids is None and np.array_equal(moved, delta.moved_from)
    if not stays or not np.array_equal(fresh, np.arange(before.size, size)):
        row_ids = np.concatenate([before.all_row_ids(), fresh])
        row_ids[before.to_numbers(delta.moved_from)] = moved
    alive = before.alive
    if alive is not None or len(delta.removed):
        alive = np.ones(size, bool)
        if before.alive is not None:
            alive[: before.size] = before.alive
        alive[before.to_numbers(delta.removed)] = False
        if np.count_nonzero(alive) * 4 < size * 3:
            return None
    origin = Origin(Label(found.resident.key, before.serial), delta)
    return continuing(size, row_ids, alive, origin)
