"""In-memory states: the tables of a snapshot with an overlay of changed rows.

The common state of branches that were merged both ways is made by merging (`bases`), and must not
be written: a preview may need it. It is a snapshot with an overlay of rows.

Guarantees: comparing two states gives what comparing tables with these rows would give; rows that
neither overlay names are compared as files are, without reading more.
Deliberately absent: making such states.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.history.entitydiff import Differ
from omnigraph.history.images import TableDiff, TypePair, aligned, compare, wanted_columns
from omnigraph.lang.pg.schemamerge import Clash
from omnigraph.merges.defaultfills import with_backfills
from omnigraph.model.catalog import ID_COLUMN, Property
from omnigraph.model.snapshot import Snapshot, TableVersion
from omnigraph.rows.columns import combined
from omnigraph.rows.deltas import TableDelta
from omnigraph.rows.threeway import Contested
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.versiondiff import no_rows, rows_by_id

_NO_IDS = pa.array([], pa.string())


@dataclass(frozen=True)
class TableOverlay:
    """What a state holds instead of a table version's rows: rows put in place and ids taken away.
    `filled` are properties that the version has no columns for: its rows have their defaults.
    `contested` says which values are not known; the rows hold any."""

    delta: TableDelta | None = None
    filled: tuple[Property, ...] = ()
    contested: Contested = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        delta = self.delta
        return (delta is None or delta.is_empty) and not self.filled and not self.contested

    @property
    def ids(self) -> pa.Array:
        if self.delta is None:
            return _NO_IDS
        return pa.concat_arrays([self.delta.ids, self.delta.removed])

    def over(self, types: TypePair, rows: pa.Table) -> pa.Table:
        """Rows of the table version, aligned to a type, as the state has them."""
        rows = with_backfills(rows, self.filled)
        if self.delta is None:
            return rows
        stays = pc.invert(pc.is_in(rows.column(ID_COLUMN), value_set=self.ids))
        return pa.concat_tables([rows.filter(stays), aligned(types, self.delta.rows)])


NOTHING = TableOverlay()
Overlays = Mapping[int, TableOverlay]


@dataclass(frozen=True)
class State:
    """A snapshot, and by table what is different from it. With clashes there is no such state:
    the schemas that it is made of do not combine."""

    snapshot: Snapshot
    overlays: Overlays = field(default_factory=dict)
    clashes: tuple[Clash, ...] = ()

    def overlay(self, table_id: int) -> TableOverlay:
        return self.overlays.get(table_id, NOTHING)


def diff_states(
    root: GraphRoot, differ: Differ, types: TypePair, older: State, newer: State
) -> TableDiff:
    """What differs between two states of one table."""
    table_id = types.shown.id
    old, new = older.snapshot.table(table_id), newer.snapshot.table(table_id)
    found = differ(root, types, old, new)
    below, above = older.overlay(table_id), newer.overlay(table_id)
    if below.is_empty and above.is_empty:
        return found
    named = pa.concat_arrays([below.ids, above.ids]).unique()
    known = pa.concat_arrays([_ids(found.before), _ids(found.after)])
    alike = _rows(root, types, old, _minus(named, known))
    before = pa.concat_tables([found.before, alike])
    after = pa.concat_tables([found.after, alike])
    return compare(types, below.over(types, before), above.over(types, after))


def state_rows(root: GraphRoot, types: TypePair, state: State, ids: pa.Array) -> pa.Table:
    """The rows of these ids that a state holds."""
    table_id = types.shown.id
    rows = _rows(root, types, state.snapshot.table(table_id), ids)
    rows = state.overlay(table_id).over(types, rows)
    return rows.filter(pc.is_in(rows.column(ID_COLUMN), value_set=ids))


def _rows(
    root: GraphRoot, types: TypePair, version: TableVersion | None, ids: pa.Array
) -> pa.Table:
    if version is None or len(ids) == 0:
        return aligned(types, no_rows())
    return aligned(types, rows_by_id(root, version, ids.to_pylist(), wanted_columns(types)))


def _minus(ids: pa.Array, others: pa.Array) -> pa.Array:
    return ids.filter(pc.invert(pc.is_in(ids, value_set=others)))


def _ids(rows: pa.Table) -> pa.Array:
    return combined(rows.column(ID_COLUMN))
