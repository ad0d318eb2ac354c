"""The view of a write: a snapshot with the changes of the write so far.

Statements of one mutation, and the members of one group of writes, each see what those before them
did. A view answers their questions from the snapshot's tables and the deltas laid over them.

Guarantees: immutable; a row that a delta replaced or removed is never seen in its old form; the
tables that were asked are remembered, so that the write can be fenced by them.
Deliberately absent: judging what is found (`integrity`), and predicates (`mutationrows`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engines.embedded.keylookup import Lookup
from omnigraph.engines.embedded.lookupcache import BY_ID, Columns, Lookups, changed, spelled
from omnigraph.model.catalog import ID_COLUMN
from omnigraph.model.snapshot import Snapshot, TableVersion
from omnigraph.rows.checks import TableType, logical_schema
from omnigraph.rows.columns import combined
from omnigraph.rows.deltas import Delta, TableDelta, merged
from omnigraph.rows.deltas import together as laid_together
from omnigraph.rows.keyowners import NOBODY, Holders, KeyShape, holders_among, matched, together
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.table import Table, open_table

Numbers: TypeAlias = np.ndarray[Any, Any]

# From here on, a pass over the column costs less than single lookups.
_MANY = 20_000

# One for the process: lookups of a table serve every handle of its graph.
LOOKUPS = Lookups()


class View:
    """A snapshot with deltas over it."""

    def __init__(
        self,
        root: GraphRoot,
        snapshot: Snapshot,
        over: Delta | None = None,
        *,
        reads: set[int] | None = None,
        lookups: Lookups = LOOKUPS,
    ) -> None:
        self.root = root
        self.snapshot = snapshot
        self.over: Delta = over or {}
        # The tables that were asked, by this view and by those that grew out of it.
        self.reads: set[int] = set() if reads is None else reads
        self._lookups = lookups
        self._over_lookups: dict[tuple[int, Columns], Lookup] = {}

    def with_delta(self, delta: Delta) -> View:
        """The same view after one more delta."""
        over = dict(self.over)
        for table_id, change in delta.items():
            over[table_id] = merged(over.get(table_id), change)
        return View(self.root, self.snapshot, over, reads=self.reads, lookups=self._lookups)

    def again(self) -> View:
        """A copy with an empty read set, so that the reads of another member are tracked
        separately."""
        view = View(self.root, self.snapshot, self.over, lookups=self._lookups)
        view._over_lookups = self._over_lookups
        return view

    def followed_by(self, delta: Delta) -> View:
        """The same view after a delta that touches none of the rows that are over it already."""
        over = dict(self.over)
        for table_id, change in delta.items():
            over[table_id] = laid_together(over.get(table_id), change)
        view = View(self.root, self.snapshot, over, lookups=self._lookups)
        view._over_lookups = {
            (table_id, columns): changed(lookup, delta[table_id], columns)
            if table_id in delta
            else lookup
            for (table_id, columns), lookup in self._over_lookups.items()
        }
        return view

    def committed(self, table: TableType) -> Table | None:
        """The snapshot's version of a table, open; None when it was never written."""
        version = self.version(table)
        return None if version is None else open_table(self.root.location, version)

    def version(self, table: TableType) -> TableVersion | None:
        """The snapshot's version of a table; from now on the write depends on it."""
        self.reads.add(table.id)
        return self.snapshot.table(table.id)

    # Keys

    def existing(self, table: TableType, ids: pa.Array) -> Numbers:
        """For each id, whether a row has it."""
        distinct = ids if len(ids) == 1 else ids.unique()
        places, _ = self.holders(table, BY_ID, pa.table({ID_COLUMN: distinct}))
        if len(distinct) == len(ids):
            there = np.zeros(len(ids), bool)
            there[places] = True
            return there
        found: Numbers = pc.is_in(ids, value_set=distinct.take(pa.array(places))).to_numpy(
            zero_copy_only=False
        )
        return found

    def holders(self, table: TableType, columns: Columns, rows: pa.Table) -> Holders:
        """The ids of all rows of a table that share their key over `columns` with one of `rows`,
        each with the place of that row. The keys of `rows` are distinct."""
        keys = spelled(rows, columns)
        found = self.committed_holders(table, columns, rows, keys)
        over = self.over.get(table.id)
        if over is None:
            return found
        return together([_visible(over, found), self._over_holders(over, columns, keys)])

    def committed_holders(
        self, table: TableType, columns: Columns, rows: pa.Table, keys: pa.Array
    ) -> Holders:
        """`holders` among the rows of the snapshot alone. `keys` are those of `rows`, spelled."""
        version = self.version(table)
        over = self.over.get(table.id)
        if version is None or version.rows == 0 or (over is not None and over.replaces):
            return NOBODY
        if len(keys) < max(_MANY, version.rows // 50):
            lookup = self._lookups.at(self.root, version, columns)
            if lookup is not None:
                return _found(lookup, keys)
        if len(keys) >= _MANY:
            return self.passed(version, self.key_shape(table, columns), keys)
        stored = self._probe(version, columns, rows)
        return matched(spelled(stored, columns), combined(stored.column(ID_COLUMN)), keys)

    def key_shape(self, table: TableType, columns: Columns) -> KeyShape:
        schema = logical_schema(table)
        return KeyShape(pa.schema([schema.field(name) for name in columns]))

    def passed(self, version: TableVersion, shape: KeyShape, keys: pa.Array) -> Holders:
        """The holders of many keys, by a pass over all rows."""
        return pass_here(self.root, version, shape, keys)

    def _probe(self, version: TableVersion, columns: Columns, rows: pa.Table) -> pa.Table:
        """Rows that may share a key, from the table's files; through an index if it has one."""
        table = open_table(self.root.location, version)
        wanted = list(dict.fromkeys((ID_COLUMN, *columns)))
        filter_ = None
        for name in columns:
            values = combined(rows.column(name)).drop_null().unique()
            # Storage tells -0.0 from 0.0, and the spelling of keys does not; it takes no filters on
            # unsigned columns.
            if not (pa.types.is_floating(values.type) or pa.types.is_unsigned_integer(values.type)):
                part = pc.field(name).isin(values)
                filter_ = part if filter_ is None else filter_ & part
        return table.read(wanted, filter=filter_)

    def _over_holders(self, over: TableDelta, columns: Columns, keys: pa.Array) -> Holders:
        if len(keys) >= _MANY or over.rows.num_rows >= _MANY:
            return matched(spelled(over.rows, columns), over.ids, keys)
        name = (over.table.id, columns)
        if name not in self._over_lookups:
            self._over_lookups[name] = Lookup.of(over.ids, spelled(over.rows, columns))
        return _found(self._over_lookups[name], keys)

    # Rows

    def rows(self, table: TableType, ids: Sequence[str]) -> pa.Table:
        """The rows with these ids, in all their columns and in no particular order."""
        wanted = pa.array(list(ids), pa.string())
        return self.select(table, pc.field(ID_COLUMN).isin(wanted), ids=wanted)

    def select(
        self,
        table: TableType,
        filter: Any | None = None,
        *,
        ids: pa.Array | None = None,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        """Rows that pass a filter over physical columns. Rows laid over the snapshot come along
        whatever the filter says, unless `ids` says which of them are meant."""
        schema = logical_schema(table)
        if columns is not None:
            schema = pa.schema([schema.field(name) for name in columns])
        over = self.over.get(table.id)
        source = self.committed(table)
        if source is None or (over is not None and over.replaces):
            stored = schema.empty_table()
        else:
            stored = _read(source, schema, filter, whole_blobs=bool(table.blob_properties))
        if over is None:
            return stored
        hidden = pc.is_in(stored.column(ID_COLUMN), pa.concat_arrays([over.ids, over.removed]))
        mine = over.rows.select(schema.names)
        if ids is not None:
            mine = mine.filter(pc.is_in(over.ids, value_set=ids))
        return pa.concat_tables([stored.filter(pc.invert(hidden)), mine])


def pass_here(root: GraphRoot, version: TableVersion, shape: KeyShape, keys: pa.Array) -> Holders:
    """The rows of a version that hold one of the keys, read a part at a time."""
    table = open_table(root.location, version)
    return holders_among(shape, table.scan(shape.columns(table.schema.names)), keys)


def _read(source: Table, schema: pa.Schema, filter: Any | None, *, whole_blobs: bool) -> pa.Table:
    """Rows of a table version; a property that came later is null."""
    there = [name for name in schema.names if name in source.schema.names]
    found = source.read(there, filter=filter, whole_blobs=whole_blobs, proven=True)
    columns = [
        found.column(field.name).cast(field.type)
        if field.name in there
        else pa.nulls(found.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def _visible(over: TableDelta, found: Holders) -> Holders:
    """Those of some committed rows that no delta replaced or removed."""
    places, ids = found
    if not len(ids):
        return found
    hidden = pc.is_in(ids, value_set=pa.concat_arrays([over.ids, over.removed]))
    kept = ~hidden.to_numpy(zero_copy_only=False)
    return places[kept], ids.filter(pa.array(kept))


def _found(lookup: Lookup, keys: pa.Array) -> Holders:
    asked = [(place, key) for place, key in enumerate(keys.to_pylist()) if key is not None]
    found = lookup.find([key for _, key in asked])
    places = np.array([asked[at][0] for at, _ in found], np.int64)
    return places, pa.array([id_ for _, id_ in found], pa.string())
