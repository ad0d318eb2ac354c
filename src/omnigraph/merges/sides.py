"""The three states of a merge, and what each side changed since the base.

Guarantees: a table is compared at most once per side, and only on demand.
Deliberately absent: combining.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa

from omnigraph import progress
from omnigraph.engines.embedded.migratedview import Passer
from omnigraph.engines.embedded.view import pass_here
from omnigraph.history.entitydiff import Differ, diff_size, diff_versions, same_content
from omnigraph.history.groups import Ids
from omnigraph.history.images import TableDiff, TypePair, restrict
from omnigraph.lang.pg.schemamerge import MergedSchema, merge_schemas
from omnigraph.merges.defaultfills import without_backfills
from omnigraph.merges.overlays import State, diff_states
from omnigraph.model.catalog import EdgeType, NodeType, Property
from omnigraph.model.conflict import Side
from omnigraph.model.snapshot import Snapshot, TableVersion
from omnigraph.rows.threeway import Contested
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.tableforks import owner_of

TableType = NodeType | EdgeType


def other(side: Side) -> Side:
    return Side.THEIRS if side is Side.OURS else Side.OURS


@dataclass(frozen=True)
class Sides:
    """Base, ours and theirs. `branch_id` is the branch that will hold the result; `may_adopt`
    says that it may take versions of their tables over as they are."""

    root: GraphRoot
    common: State
    states: Mapping[Side, State]
    branch_id: str
    may_adopt: bool
    schema: MergedSchema
    # Which of their changes count, by table; None: all.
    only: Ids | None = None
    differ: Differ = diff_versions
    passer: Passer = pass_here
    _diffs: dict[tuple[Side, int], TableDiff] = field(default_factory=dict)

    @staticmethod
    def of(
        root: GraphRoot,
        base: State,
        ours: State,
        theirs: State,
        branch_id: str,
        *,
        may_adopt: bool,
        only: Ids | None = None,
        differ: Differ = diff_versions,
        passer: Passer = pass_here,
    ) -> Sides:
        catalogs = (state.snapshot.catalog for state in (base, ours, theirs))
        states = {Side.OURS: ours, Side.THEIRS: theirs}
        schema = merge_schemas(*catalogs)
        if base.clashes or ours.clashes:
            schema = replace(schema, clashes=(*base.clashes, *ours.clashes))
        return Sides(root, base, states, branch_id, may_adopt, schema, only, differ, passer)

    @property
    def base(self) -> Snapshot:
        return self.common.snapshot

    @property
    def ours(self) -> Snapshot:
        return self.snapshot(Side.OURS)

    @property
    def theirs(self) -> Snapshot:
        return self.snapshot(Side.THEIRS)

    def state(self, side: Side) -> State:
        return self.states[side]

    def snapshot(self, side: Side) -> Snapshot:
        return self.states[side].snapshot

    def contested(self, table_id: int) -> Contested:
        """What the base does not say about a table."""
        return self.common.overlay(table_id).contested

    def version(self, side: Side, table_id: int) -> TableVersion | None:
        return self.snapshot(side).table(table_id)

    def changed(self, side: Side, table_id: int) -> bool:
        """Whether a side may have changed rows of a table, as far as its versions tell."""
        overlays = (self.common.overlay(table_id), self.state(side).overlay(table_id))
        if not all(overlay.is_empty for overlay in overlays):
            return True
        return not same_content(self.base.table(table_id), self.version(side, table_id))

    def diff(self, side: Side, table: TableType) -> TableDiff:
        """What a side changed, in the columns of the merged type."""
        key = (side, table.id)
        if key not in self._diffs:
            types = TypePair.both(table)
            found = diff_states(self.root, self.differ, types, self.common, self.state(side))
            found = without_backfills(found, self._added(side, table))
            if self.only is not None and side is Side.THEIRS:
                found = restrict(found, self.only.get(table.id, frozenset()))
            self._diffs[key] = found
        return self._diffs[key]

    def rows_to_read(self) -> int:
        """About how many rows must be read to compare the tables that both sides changed."""
        tables = [
            table.id
            for table in self.schema.catalog.tables()
            if all(self.changed(side, table.id) for side in Side)
        ]
        return sum(
            diff_size(self.root, self.base.table(table_id), self.version(side, table_id))
            for table_id in tables
            for side in Side
        )

    def _added(self, side: Side, table: TableType) -> list[Property]:
        """The properties of the merged type that a side has and the base had not."""
        had, has = (
            {item.column for item in known.properties} if known else set()
            for known in (s.catalog.table(table.id) for s in (self.base, self.snapshot(side)))
        )
        return [item for item in table.properties if item.column in has - had]

    def both_diffs(self, table: TableType) -> tuple[TableDiff, TableDiff]:
        """What ours and theirs changed, compared side by side."""
        with ThreadPoolExecutor(max_workers=2) as pool:
            ours, theirs = (
                pool.submit(progress.inherited(partial(self.diff, side, table)))
                for side in (Side.OURS, Side.THEIRS)
            )
            return ours.result(), theirs.result()

    def fits(self, side: Side, table: TableType) -> bool:
        """Whether a side's version has the columns that the merged type needs."""
        if self.version(side, table.id) is None:
            return True
        if self.snapshot(side).catalog.table(table.id) is None:
            return False
        return not self.lacking(side, table) and not self.narrower(side, table)

    def _kinds(self, side: Side, table: TableType) -> dict[str, pa.DataType]:
        """The types of the columns that a side knows."""
        known = self.snapshot(side).catalog.table(table.id)
        return {item.column: item.type.to_arrow() for item in known.properties} if known else {}

    def lacking(self, side: Side, table: TableType) -> tuple[Property, ...]:
        """The properties of the merged type that a side's version has no columns for."""
        kinds = self._kinds(side, table)
        return tuple(item for item in table.properties if item.column not in kinds)

    def narrower(self, side: Side, table: TableType) -> bool:
        """Whether a side's version holds a property in another type than the merged one: the
        other side widened it, since schemas that want it in two ways do not combine."""
        kinds = self._kinds(side, table)
        wanted = {item.column: item.type.to_arrow() for item in table.properties}
        return any(kinds.get(column, kind) != kind for column, kind in wanted.items())

    def adoptable(self, table_id: int) -> bool:
        """Whether their version may stand in the place of ours. It may not be on a line that the
        branch itself writes to, since that line is further ahead; and the count of changes must
        go up, since writers are fenced by it."""
        ours, theirs = self.ours.table(table_id), self.theirs.table(table_id)
        return (
            self.may_adopt
            and theirs is not None
            and owner_of(theirs) != self.branch_id
            and (ours is None or theirs.logical > ours.logical)
        )
