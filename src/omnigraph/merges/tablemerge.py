"""The merge of one table: keep ours, adopt theirs, or apply the changes of one side to the other.

Where both sides gave the table columns, ours gets theirs too: existing rows have their defaults in
them, as they got on the other side, and whatever the other side wrote comes along with its rows. If
the other side also widened the type of a column, our column is rewritten in that type.

Guarantees: a table that only one side changed is not read at all, unless something about it was
decided by hand; what must be written is proportional to the changes of the other side, save where
a type was widened.
Deliberately absent: rules that concern several tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph import progress
from omnigraph.history.images import TableDiff, TypePair
from omnigraph.merges.defaultfills import backfilled
from omnigraph.merges.overlays import state_rows
from omnigraph.merges.sides import Sides, TableType, other
from omnigraph.model.catalog import ID_COLUMN, Property
from omnigraph.model.conflict import MergeConflict, Side
from omnigraph.model.snapshot import TableVersion
from omnigraph.rows.checks import logical_schema
from omnigraph.rows.deltas import TableDelta, no_rows
from omnigraph.rows.threeway import (
    ChangedRows,
    Contested,
    Granularity,
    MergedTable,
    Resolution,
    merge_table,
)
from omnigraph.storage.versiondiff import (
    ROW_ADDRESS,
    ROW_ID,
    RowIds,
    descends,
    row_addresses,
    rows_by_id,
    shared_files,
)

NO_IDS = pa.array([], pa.string())


@dataclass(frozen=True)
class Choices:
    """How to combine: see `rows.threeway`. `strategies` go by type name and come before
    `strategy`; `resolutions` go by type name and entity id and come before both."""

    granularity: Granularity = Granularity.PROPERTY
    strategy: Side | None = None
    strategies: Mapping[str, Side | None] = field(default_factory=dict)
    resolutions: Mapping[tuple[str, str], Resolution] = field(default_factory=dict)

    def strategy_of(self, type_name: str) -> Side | None:
        return self.strategies.get(type_name, self.strategy)

    def resolutions_of(self, type_name: str) -> dict[str, Resolution]:
        return {key: item for (name, key), item in self.resolutions.items() if name == type_name}


@dataclass(frozen=True)
class TableStep:
    """What becomes of one table: `ground` is the side that it builds on, `delta` what is done to
    it. `inserted` are the rows of the delta that are new there, `mixed` the ids of rows that
    neither side has like this. `added` are properties that the ground has no columns for; `widened`
    is set if it has columns of a narrower type and must be rewritten. `contested` is what the sides
    clash about, also where a strategy decided."""

    table: TableType
    ground: Side
    delta: TableDelta
    conflicts: tuple[MergeConflict, ...] = ()
    mixed: frozenset[str] = frozenset()
    inserted: int = 0
    added: tuple[Property, ...] = ()
    widened: bool = False
    contested: Contested = field(default_factory=dict)

    @property
    def is_written(self) -> bool:
        """Whether anything is done to the ground."""
        return self.is_reshaped or not self.delta.is_empty

    @property
    def is_reshaped(self) -> bool:
        """Whether the ground's columns are not those of the type yet."""
        return bool(self.added) or self.widened

    @property
    def fills(self) -> dict[str, Any]:
        """What existing rows get in the columns that are added, where that is not null."""
        return backfilled(self.added)

    @property
    def is_kept(self) -> bool:
        return self.ground is Side.OURS and not self.is_written

    @property
    def is_adopted(self) -> bool:
        return self.ground is Side.THEIRS


def merge_tables(sides: Sides, choices: Choices) -> list[TableStep]:
    """One step per table of the merged schema, nodes first."""
    return [merge_one(sides, table, choices) for table in sides.schema.catalog.tables()]


def merge_one(sides: Sides, table: TableType, choices: Choices) -> TableStep:
    decided = choices.resolutions_of(table.name)
    ours_fits, theirs_fits = sides.fits(Side.OURS, table), sides.fits(Side.THEIRS, table)
    if not decided and ours_fits and not sides.changed(Side.THEIRS, table.id):
        return _untouched(table, Side.OURS)
    may_take = theirs_fits and sides.adoptable(table.id)
    if not decided and may_take and not sides.changed(Side.OURS, table.id):
        return _untouched(table, Side.THEIRS)
    if not ours_fits and not may_take:
        return replace(
            _combined(sides, table, choices, decided, Side.OURS),
            added=sides.lacking(Side.OURS, table),
            widened=sides.narrower(Side.OURS, table),
        )
    ground = Side.OURS if ours_fits else Side.THEIRS
    settled = not decided and not sides.contested(table.id)
    if may_take and settled and sides.diff(Side.OURS, table).is_empty:
        return _untouched(table, Side.THEIRS)
    return _combined(sides, table, choices, decided, ground)


def changed_rows(step: TableStep, sides: Sides) -> pa.Table:
    """The rows of the merged result that one of the sides put there or changed."""
    columns = logical_schema(step.table).names
    kept = _changes(sides, step.ground, step.table).after
    gone = pa.concat_arrays([step.delta.ids, step.delta.removed])
    stays = pc.invert(pc.is_in(kept.column(ID_COLUMN), value_set=gone))
    kept = kept.filter(stays).select(columns)
    for column, value in step.fills.items():
        place = kept.column_names.index(column)
        default = pa.scalar(value, kept.schema.field(column).type)
        kept = kept.set_column(place, column, pa.repeat(default, kept.num_rows))
    return pa.concat_tables([kept, step.delta.rows.select(columns)])


def gone_ids(step: TableStep, sides: Sides) -> pa.Array:
    """The ids of the base that the merged result no longer holds."""
    diff = _changes(sides, step.ground, step.table)
    lost = _minus(_ids(diff.before), pa.concat_arrays([_ids(diff.after), step.delta.ids]))
    return pa.concat_arrays([lost, step.delta.removed])


def deleted_ids(diff: TableDiff) -> pa.Array:
    """The ids that a side deleted."""
    return _minus(_ids(diff.before), _ids(diff.after))


def doomed_rows(step: TableStep, sides: Sides) -> RowIds:
    """The addresses, in the ground's version, of the rows that the delta replaces or removes."""
    version, base = sides.version(step.ground, step.table.id), sides.base.table(step.table.id)
    wanted = pa.concat_arrays([step.delta.ids, step.delta.removed])
    if version is None or len(wanted) == 0:
        return np.empty(0, np.uint64)
    is_on_disk = sides.common.overlay(step.table.id).is_empty
    if base is None or not is_on_disk or not descends(sides.root, base, version):
        found = rows_by_id(sides.root, version, wanted.to_pylist(), [ID_COLUMN])
        return row_addresses(sides.root, version, _numbers(found, ROW_ID))
    own = sides.diff(step.ground, step.table)
    # What the ground wrote has new rows there; the rest still lies where it did in the base.
    rest = sides.diff(other(step.ground), step.table).before
    written = pa.concat_tables([own.after, own.rewritten])
    touched = pa.concat_arrays([_ids(own.before), _ids(written)])
    rest = rest.filter(pc.invert(pc.is_in(rest.column(ID_COLUMN), value_set=touched)))
    new, old = (
        rows.filter(pc.is_in(rows.column(ID_COLUMN), value_set=wanted)) for rows in (written, rest)
    )
    return np.concatenate([_numbers(new, ROW_ADDRESS), _moved(sides, base, version, old)])


def _moved(sides: Sides, base: TableVersion, version: TableVersion, rows: pa.Table) -> RowIds:
    """Where rows of the base lie in a version that grew out of it and did not change them."""
    addresses = _numbers(rows, ROW_ADDRESS)
    stay = np.isin(addresses >> np.uint64(32), shared_files(sides.root, base, version))
    if stay.all():
        return addresses
    moved = row_addresses(sides.root, version, _numbers(rows, ROW_ID)[~stay])
    return np.concatenate([addresses[stay], moved])


def _combined(
    sides: Sides,
    table: TableType,
    choices: Choices,
    decided: dict[str, Resolution],
    ground: Side,
) -> TableStep:
    ours, theirs = sides.both_diffs(table)
    progress.report("combine")
    merged = merge_table(
        table,
        _as_rows(table, ours),
        _as_rows(table, theirs),
        granularity=choices.granularity,
        strategy=choices.strategy_of(table.name),
        resolutions=decided,
        onto=ground,
        contested=sides.contested(table.id),
        lacking={
            side: [item.column for item in sides.lacking(side, table)]
            for side in (Side.OURS, Side.THEIRS)
        },
    )
    own, incoming = (ours, theirs) if ground is Side.OURS else (theirs, ours)
    existing = _existing(own, incoming)
    rows = _completed(sides, table, ground, merged, existing)
    there = pc.is_in(rows.column(ID_COLUMN), value_set=existing)
    return TableStep(
        table,
        ground,
        TableDelta(table, rows, pa.array(merged.deletes, pa.string())),
        merged.conflicts,
        merged.mixed,
        rows.num_rows - (pc.sum(there).as_py() or 0),
        contested=merged.contested,
    )


def _existing(own: TableDiff, incoming: TableDiff) -> pa.Array:
    """The ids, among those that changed, that the ground holds."""
    was = _minus(_ids(incoming.before), _ids(own.before))
    return pa.concat_arrays([was, _ids(own.after)])


def _completed(
    sides: Sides, table: TableType, ground: Side, merged: MergedTable, existing: pa.Array
) -> pa.Table:
    """The rows to put in, with the values of properties that the other side does not know: as the
    ground has them for entities that exist there, and their defaults for new ones."""
    known = sides.snapshot(other(ground)).catalog.table(table.id)
    columns = {item.column for item in known.properties} if known else set()
    missing = [item for item in table.properties if item.column not in columns]
    rows = merged.upserts
    if not missing or rows.num_rows == 0:
        return rows
    found = _current(sides, table, ground, rows, existing, missing)
    place = pc.index_in(rows.column(ID_COLUMN), value_set=_ids(found))
    defaults = backfilled(missing)
    for item in missing:
        at = rows.column_names.index(item.column)
        filled = _plain(found.column(item.column)).take(_plain(place))
        if item.column in defaults:
            default = pa.scalar(defaults[item.column], filled.type)
            filled = pc.if_else(pc.is_null(place), default, filled)
        rows = rows.set_column(at, item.column, filled)
    return rows


def _current(
    sides: Sides,
    table: TableType,
    ground: Side,
    rows: pa.Table,
    existing: pa.Array,
    missing: list[Property],
) -> pa.Table:
    columns = [ID_COLUMN, *(item.column for item in missing)]
    ids = _ids(rows).filter(pc.is_in(_ids(rows), value_set=existing))
    version, state = sides.version(ground, table.id), sides.state(ground)
    if not state.overlay(table.id).is_empty:
        return state_rows(sides.root, TypePair.both(table), state, ids).select(columns)
    if version is None or len(ids) == 0:
        kinds = {item.column: item.type.to_arrow() for item in missing}
        return pa.schema([(ID_COLUMN, pa.string()), *kinds.items()]).empty_table()
    return rows_by_id(sides.root, version, ids.to_pylist(), columns)


def _untouched(table: TableType, ground: Side) -> TableStep:
    return TableStep(table, ground, TableDelta(table, no_rows(table)))


def _changes(sides: Sides, side: Side, table: TableType) -> TableDiff:
    return sides.diff(side, table)


def _as_rows(table: TableType, diff: TableDiff) -> ChangedRows:
    columns = logical_schema(table).names
    return ChangedRows(diff.before.select(columns), diff.after.select(columns))


def _ids(rows: pa.Table) -> pa.Array:
    return _plain(rows.column(ID_COLUMN))


def _numbers(rows: pa.Table, column: str) -> RowIds:
    found: RowIds = rows.column(column).to_numpy().astype(np.uint64)
    return found


def _minus(ids: pa.Array, others: pa.Array) -> pa.Array:
    return ids.filter(pc.invert(pc.is_in(ids, value_set=others)))


def _plain(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    if not isinstance(column, pa.ChunkedArray):
        return column
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
