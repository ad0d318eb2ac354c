"""The effect of a schema change on stored tables: none, new columns, or a rewrite of all rows.

Guarantees: a table that needs no other columns is not changed; nullable columns are added without
rewriting data; rows are streamed, and the result is the same on both engines.
Deliberately absent: checks of the data, and the commit (`migrate`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph import progress
from omnigraph.lang.pg.steps import DropMode, MigrationPlan, StepKind
from omnigraph.model.catalog import Catalog, EdgeType, NodeType
from omnigraph.model.commit import StagedWrite
from omnigraph.model.snapshot import Snapshot, TableVersion
from omnigraph.rows.checks import default_value
from omnigraph.storage.backfill import fill_columns, rewrite_table
from omnigraph.storage.maintenancetasks import Spread
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.stagedwrites import Stager

TableType = NodeType | EdgeType
# The runner for this number of rows; None: this process.
Choose = Callable[[int], Spread | None]


@dataclass(frozen=True)
class Reshaping:
    """A table that needs other columns. `fills` are the values of existing rows in new ones; with
    `anew`: all rows are rewritten, because a type was widened or data is deleted."""

    table: TableType
    version: TableVersion
    fills: Mapping[str, Any]
    anew: bool

    @property
    def rows(self) -> int:
        """The number of rows that are written, completely or partly."""
        filled = any(value is not None for value in self.fills.values())
        return self.version.rows if self.anew or filled else 0


def reshapings(snapshot: Snapshot, catalog: Catalog, plan: MigrationPlan) -> Iterator[Reshaping]:
    """The tables that must change to have the columns of a new catalog."""
    erased = erased_types(plan)
    for table in catalog.tables():
        version, before = snapshot.table(table.id), snapshot.catalog.table(table.id)
        if version is None or before is None:
            continue
        anew = _widened(before, table) or table.id in erased
        there = {item.column for item in before.properties}
        if anew or any(item.column not in there for item in table.properties):
            yield Reshaping(table, version, _fills(table, plan), anew)


def stage_reshaping(
    root: GraphRoot, branch_id: str, change: Reshaping, choose: Choose
) -> StagedWrite:
    """One staged write that gives a table its columns."""
    table, version, fills = change.table, change.version, change.fills
    progress.report(f"reshape {table.name}", rows=version.rows)
    spread = choose(change.rows) if change.rows else None
    if spread is not None:
        write = rewrite_table if change.anew else fill_columns
        return write(root, branch_id, table, version, fills, spread)
    stager = Stager(root, branch_id)
    if change.anew:
        return stager.reshape(table, version, fills)
    return stager.add_columns(table, version, fills)


def erased_types(plan: MigrationPlan) -> set[int]:
    """The types whose data is partly deleted."""
    return {step.type_id for step in plan.steps if step.mode is DropMode.HARD}


def _widened(before: TableType, after: TableType) -> bool:
    types = {item.id: item.type.to_arrow() for item in before.properties}
    return any(
        types.get(item.id, item.type.to_arrow()) != item.type.to_arrow()
        for item in after.properties
    )


def _fills(table: TableType, plan: MigrationPlan) -> dict[str, Any]:
    """The values that existing rows get in new columns."""
    filled = {
        step.property_id
        for step in plan.steps
        if step.kind is StepKind.ADD_PROPERTY and step.backfill is not None
    }
    return {item.column: default_value(item) for item in table.properties if item.id in filled}
