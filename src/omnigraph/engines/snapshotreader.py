"""Tables of a snapshot as its visibility shows them.

Every channel that hands out rows of a snapshot opens tables here. Without a visibility these are
the tables of storage themselves; with one, hidden rows and hidden columns are left out of scans,
counts and lookups.

The visible rows of a table version are found once and cached by the versions that they depend on
(the table, and for an edge type the tables of its ends) and by the hash of the visibility.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from omnigraph.caches import Cache
from omnigraph.engines.expressions.tablerows import predicate_columns, rows_that_hold
from omnigraph.history.images import TableDiff, TypePair, compare
from omnigraph.model.catalog import DST_COLUMN, ID_COLUMN, SRC_COLUMN, EdgeType, NodeType
from omnigraph.model.snapshot import Snapshot
from omnigraph.model.visibility import Visibility
from omnigraph.storage.table import ROW_ID, Table, open_table
from omnigraph.storage.visibletable import VisibleTable

RowIds = NDArray[np.uint64]
_HELD = 64


@dataclass(frozen=True, eq=False)
class VisibleRows:
    """The visible rows of one table version: row ids, ascending, and ids."""

    row_ids: RowIds
    ids: pa.Array

    @property
    def nbytes(self) -> int:
        return int(self.row_ids.nbytes + self.ids.nbytes)


_visible: Cache[Hashable, VisibleRows] = Cache(entries=_HELD)


class SnapshotReader:
    """Opens the tables of one snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot

    def table(self, type_: NodeType | EdgeType) -> Table | None:
        """The rows of a type; None if it was never written."""
        version = self.snapshot.table(type_.id)
        if version is None:
            return None
        opened = open_table(self.snapshot.location, version)
        return opened if self.sees_all(type_) else self._restricted(type_, opened)

    def sees_all(self, type_: NodeType | EdgeType) -> bool:
        """Whether no row and no property of the type is hidden."""
        visibility = self.snapshot.visibility
        if visibility.is_everything:
            return True
        is_restricted = visibility.restricts(type_, self.snapshot.whole_catalog)
        return not is_restricted and type_.id not in visibility.hidden

    def cache_key(self, type_: NodeType | EdgeType) -> tuple[Hashable, ...]:
        """What, besides the version of the table itself, decides what is visible of it."""
        if self.sees_all(type_):
            return ()
        visibility = self.snapshot.visibility
        return (visibility.hash, *(self._label(end) for end in self._ends(type_)))

    def count(self, type_: NodeType | EdgeType) -> int:
        """How many rows of a type are visible."""
        version = self.snapshot.table(type_.id)
        if version is None:
            return 0
        rows = self.visible(type_)
        return version.rows if rows is None else len(rows.row_ids)

    def visible(self, type_: NodeType | EdgeType) -> VisibleRows | None:
        """The visible rows of a type that was written; None if all are visible."""
        if not self.snapshot.visibility.restricts(type_, self.snapshot.whole_catalog):
            return None
        key = (self._label(type_), self.cache_key(type_))
        return _visible.get(key, lambda: self._find(type_), lambda rows: rows.nbytes)

    def _restricted(self, type_: NodeType | EdgeType, opened: Table) -> Table:
        rows = self.visible(type_)
        whole = self._whole(type_)
        hidden = self.snapshot.visibility.hidden.get(type_.id, frozenset())
        columns = frozenset(p.column for p in whole.properties if p.name in hidden)
        return VisibleTable(opened, None if rows is None else rows.row_ids, columns)

    def _find(self, type_: NodeType | EdgeType) -> VisibleRows:
        version = self.snapshot.table(type_.id)
        assert version is not None
        whole = self._whole(type_)
        table = open_table(self.snapshot.location, version)
        predicates = self.snapshot.visibility.rows.get(type_.id, ())
        ends = (SRC_COLUMN, DST_COLUMN) if isinstance(type_, EdgeType) else ()
        wanted = dict.fromkeys((ID_COLUMN, *ends, *predicate_columns(predicates, whole)))
        columns = [name for name in wanted if name in table.schema.names]
        allowed = self._visible_ends(type_)
        row_ids: list[RowIds] = []
        ids: list[pa.Array] = []
        for batch in table.scan(columns, with_row_id=True):
            marks = rows_that_hold(predicates, batch, whole)
            for column, values in allowed.items():
                marks &= _contained(batch.column(column), values)
            row_ids.append(batch.column(ROW_ID).to_numpy()[marks])
            ids.append(batch.column(ID_COLUMN).filter(pa.array(marks)))
        found = np.concatenate(row_ids) if row_ids else np.empty(0, np.uint64)
        known = pa.concat_arrays(ids) if ids else pa.array([], pa.string())
        return VisibleRows(np.sort(found), known)

    def _visible_ends(self, type_: NodeType | EdgeType) -> dict[str, pa.Array]:
        """By column of an edge type: the ids of visible nodes, where some are hidden."""
        if not isinstance(type_, EdgeType):
            return {}
        found: dict[str, pa.Array] = {}
        for column, name in ((SRC_COLUMN, type_.src_type), (DST_COLUMN, type_.dst_type)):
            node = self.snapshot.whole_catalog.node(name)
            if node is None or self.snapshot.table(node.id) is None:
                continue
            rows = self.visible(node)
            if rows is not None:
                found[column] = rows.ids
        return found

    def _ends(self, type_: NodeType | EdgeType) -> Iterator[NodeType]:
        if isinstance(type_, EdgeType):
            for name in (type_.src_type, type_.dst_type):
                node = self.snapshot.whole_catalog.node(name)
                if node is not None:
                    yield node

    def _whole(self, type_: NodeType | EdgeType) -> NodeType | EdgeType:
        return self.snapshot.whole_catalog.table(type_.id) or type_

    def _label(self, type_: NodeType | EdgeType) -> tuple[Hashable, ...]:
        version = self.snapshot.table(type_.id)
        if version is None:
            return (type_.id,)
        label = version.incarnation or self.snapshot.incarnation
        place = self.snapshot.location.key
        return (place, label, version.path, version.fork, version.version)


class VisibleChanges:
    """Differences of tables as a visibility shows them: a row that becomes visible is an insert,
    one that becomes hidden a delete. Edges whose own row did not change are not looked at."""

    def __init__(self, visibility: Visibility) -> None:
        self._visibility = visibility

    def __call__(self, found: TableDiff, before: Snapshot, after: Snapshot) -> TableDiff:
        old, new = (each.seen_through(self._visibility) for each in (before, after))
        table_id = found.types.shown.id
        types = TypePair(old.catalog.table(table_id), new.catalog.table(table_id))
        return compare(
            types,
            _only_visible(found.before, SnapshotReader(old), found.types.older),
            _only_visible(found.after, SnapshotReader(new), found.types.newer),
        )


def _only_visible(
    rows: pa.Table, reader: SnapshotReader, type_: NodeType | EdgeType | None
) -> pa.Table:
    if type_ is None or rows.num_rows == 0 or reader.snapshot.table(type_.id) is None:
        return rows
    visible = reader.visible(type_)
    if visible is None:
        return rows
    marks = np.isin(rows.column(ROW_ID).to_numpy().astype(np.uint64), visible.row_ids)
    return rows.filter(pa.array(marks))


def _contained(values: pa.Array, among: pa.Array) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = pc.is_in(values, value_set=among).to_numpy(zero_copy_only=False)
    return found


def visible_ids(snapshot: Snapshot, type_: NodeType | EdgeType) -> pa.Array | None:
    """The ids of the visible rows of a type, for readers of single files; None if all are."""
    if snapshot.visibility.is_everything or snapshot.table(type_.id) is None:
        return None
    rows = SnapshotReader(snapshot).visible(type_)
    return None if rows is None else rows.ids


def visible_table(snapshot: Snapshot, type_: NodeType | EdgeType) -> Table | None:
    """The rows of a type that the snapshot shows; None if the type was never written."""
    return SnapshotReader(snapshot).table(type_)
