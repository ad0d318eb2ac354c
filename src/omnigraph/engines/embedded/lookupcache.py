"""The cache of key lookups, updated incrementally with new table versions.

Guarantees: a lookup that is handed out describes exactly the version that was asked for; a version
of which only maintenance changed is the same content; memory stays within a budget, least recently
used first out. A table that is seldom asked is not held: the first question about a large one goes
to its files, the first few if an index answers them, and a later one pays for the lookup.
Deliberately absent: rows, and waiting. Two threads that miss at once both build.
"""

from __future__ import annotations

from typing import TypeAlias

import pyarrow as pa

from omnigraph.caches import Cache
from omnigraph.engines.embedded.keylookup import Lookup
from omnigraph.model.catalog import ID_COLUMN
from omnigraph.model.keys import composite_keys
from omnigraph.model.snapshot import TableVersion
from omnigraph.rows.columns import combined
from omnigraph.rows.deltas import TableDelta
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.table import open_table
from omnigraph.storage.versiondiff import row_delta

# Building for so few rows costs no more than asking once.
_SMALL = 50_000
# Beyond this, an index of the table must do.
_LARGE = 5_000_000
# A change of more rows than this is not applied incrementally; the lookup is rebuilt on demand.
_LONG_CHANGE = 50_000
_BUDGET_BYTES = 1 << 30
_COUNTED = 1024  # keys whose questions are counted
# So many questions about a large table go to its files before a lookup is built.
_PATIENCE = 1
_PATIENCE_INDEXED = 16

Columns: TypeAlias = tuple[str, ...]
_Key: TypeAlias = tuple[tuple[str, str], str, str | None, Columns]

BY_ID: Columns = (ID_COLUMN,)


def spelled(rows: pa.Table, columns: Columns) -> pa.Array:
    """The key of each row over these columns; null when a member is."""
    if columns == BY_ID:
        return combined(rows.column(ID_COLUMN))
    return composite_keys([rows.column(name) for name in columns])


class Lookups:
    """Lookups by table and columns, each at the newest version that was asked for."""

    def __init__(self, budget_bytes: int = _BUDGET_BYTES) -> None:
        self._held: Cache[_Key, tuple[TableVersion, Lookup]] = Cache(budget_bytes)
        self._missed: Cache[_Key, int] = Cache(entries=_COUNTED)

    def at(self, root: GraphRoot, version: TableVersion, columns: Columns) -> Lookup | None:
        """The lookup of a version, or None when its files should be asked instead."""
        key = _key(root, version, columns)
        held = self._held.peek(key)
        if held is not None and not _same_content(held[0], version):
            self._bring_forward(root, held[0], version)
            held = self._held.peek(key)
        if held is not None:
            if _same_content(held[0], version):
                return held[1]
            if held[0].version > version.version:
                return None  # a read of an old state must not evict the new one
        if not self._worth_building(root, key, version):
            return None
        found = _built(root, version, columns)
        self._keep(key, version, found)
        return found

    def _bring_forward(self, root: GraphRoot, old: TableVersion, new: TableVersion) -> None:
        """Carry all lookups of one version along to a later one of the same line, if that is
        cheap: what changed is read once for all of them."""
        if old.version > new.version or abs(new.rows - old.rows) > _LONG_CHANGE:
            return
        lookups = [(columns, one) for columns, one in self._at(root, old) if not one.is_worn]
        wanted = dict.fromkeys((ID_COLUMN, *(name for columns, _ in lookups for name in columns)))
        delta = row_delta(root, old, new, list(wanted))
        if delta is None or delta.written.num_rows > _LONG_CHANGE:
            return
        ids = combined(delta.written.column(ID_COLUMN))
        gone = [*delta.older.column(ID_COLUMN).to_pylist(), *ids.to_pylist()]
        for columns, lookup in lookups:
            moved = lookup.changed(gone, ids, spelled(delta.written, columns))
            self._keep(_key(root, new, columns), new, moved)

    def moved(
        self, root: GraphRoot, old: TableVersion | None, new: TableVersion, delta: TableDelta
    ) -> None:
        """Carry what is held of `old` along to `new`, which this delta made of it."""
        rows = delta.rows.num_rows + len(delta.removed)
        for columns, lookup in self._held_of(root, old, delta):
            key = _key(root, new, columns)
            if rows > _LONG_CHANGE or lookup.is_worn:
                self._held.drop(key)
            else:
                self._keep(key, new, changed(lookup, delta, columns))

    def clear(self) -> None:
        self._held.clear()
        self._missed.clear()

    def _held_of(
        self, root: GraphRoot, old: TableVersion | None, delta: TableDelta
    ) -> list[tuple[Columns, Lookup]]:
        if old is None or delta.replaces:
            return [(BY_ID, Lookup())]
        return self._at(root, old)

    def _at(self, root: GraphRoot, version: TableVersion) -> list[tuple[Columns, Lookup]]:
        line = _key(root, version, BY_ID)[:3]
        return [
            (key[3], lookup)
            for key, (held, lookup) in self._held.items()
            if key[:3] == line and held.version == version.version
        ]

    def _worth_building(self, root: GraphRoot, key: _Key, version: TableVersion) -> bool:
        if version.rows <= _SMALL:
            return True
        if version.rows > _LARGE:
            return False
        asked = (self._missed.peek(key) or 0) + 1
        self._missed.put(key, asked)
        return asked > (_PATIENCE_INDEXED if _is_indexed(root, version, key[3]) else _PATIENCE)

    def _keep(self, key: _Key, version: TableVersion, lookup: Lookup) -> None:
        self._held.put(key, (version, lookup), lookup.nbytes)


def _key(root: GraphRoot, version: TableVersion, columns: Columns) -> _Key:
    place = (root.key, version.incarnation or root.incarnation)
    return place, version.path, version.fork, columns


def changed(lookup: Lookup, delta: TableDelta, columns: Columns) -> Lookup:
    """A lookup after a delta."""
    ids = delta.ids
    gone = [*delta.removed.to_pylist(), *ids.to_pylist()]
    return lookup.changed(gone, ids, spelled(delta.rows, columns))


def _is_indexed(root: GraphRoot, version: TableVersion, columns: Columns) -> bool:
    """Whether an index holds nearly all rows by one of the columns."""
    indexes = open_table(root.location, version).indexes()
    return any(i.column in columns and 10 * i.rows >= 9 * version.rows for i in indexes)


def _same_content(held: TableVersion, wanted: TableVersion) -> bool:
    return held.version == wanted.version or held.logical == wanted.logical


def _built(root: GraphRoot, version: TableVersion, columns: Columns) -> Lookup:
    table = open_table(root.location, version)
    rows = table.read(list(dict.fromkeys((ID_COLUMN, *columns))))
    ids = combined(rows.column(ID_COLUMN))
    return Lookup.of(ids, ids if columns == BY_ID else spelled(rows, columns))
