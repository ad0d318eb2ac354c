"""The plan of a merge: the result of every table, and the conflicts.

Guarantees: writes nothing; the same snapshots and choices give the same plan; conflicts come
sorted: nodes before edges, type, id, kind.
Deliberately absent: carrying it out (`mergewrites`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow.compute as pc

from omnigraph import headroom, progress
from omnigraph.merges.orphans import decide_orphans, find_orphans, orphan_conflict
from omnigraph.merges.resultchecks import find_violations
from omnigraph.merges.schemaconflicts import schema_conflicts
from omnigraph.merges.sides import Sides
from omnigraph.merges.tablemerge import Choices, TableStep, merge_one, merge_tables
from omnigraph.model.catalog import ID_COLUMN, TableKind
from omnigraph.model.conflict import MergeConflict, Side
from omnigraph.storage.membudget import bounded

# Combining takes so many times the bytes of what both sides changed: copies in order of id, hashes
# of ids, and the rows to write.
_TIMES_HELD = 4


@dataclass(frozen=True, slots=True)
class Counts:
    """How many entities of a type the merge changes on the branch that receives it."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0

    @property
    def is_zero(self) -> bool:
        return not (self.inserted or self.updated or self.deleted)


@dataclass(frozen=True)
class MergePlan:
    """What to do to each table, by table id, and what prevents it."""

    sides: Sides
    steps: Mapping[int, TableStep]
    conflicts: tuple[MergeConflict, ...]

    def counts(self) -> dict[str, Counts]:
        """What each type would gain and lose, by name. Reads what is taken over as it is."""
        found = {step.table.name: _count(self.sides, step) for step in self.steps.values()}
        return {name: counts for name, counts in found.items() if not counts.is_zero}


def plan_merge(sides: Sides, choices: Choices) -> MergePlan:
    return progress.aside(lambda: _plan(sides, choices))


def _plan(sides: Sides, choices: Choices) -> MergePlan:
    with progress.tallying("compare", sides.rows_to_read() if progress.is_heard() else None):
        conflicts = schema_conflicts(sides)
        if sides.schema.clashes:
            return MergePlan(sides, {}, tuple(conflicts))
        with bounded(headroom.total_bytes() // _TIMES_HELD, "merge"):
            steps = {step.table.id: step for step in merge_tables(sides, choices)}
    progress.report("check")
    orphans = find_orphans(sides, steps)
    decided = decide_orphans(orphans, choices)
    if decided:
        choices = replace(choices, resolutions={**choices.resolutions, **decided})
        names = {name for name, _ in decided}
        for table in sides.schema.catalog.tables():
            if table.name in names:
                steps[table.id] = merge_one(sides, table, choices)
        orphans = find_orphans(sides, steps)
    for step in steps.values():
        conflicts += step.conflicts
    conflicts += [orphan_conflict(orphan) for orphan in orphans]
    conflicts += find_violations(sides, steps)
    # An edge may be found to be an orphan in more than one way.
    distinct = {(*_order(found), found.entity_id or found.message): found for found in conflicts}
    return MergePlan(sides, steps, tuple(sorted(distinct.values(), key=_order)))


def _count(sides: Sides, step: TableStep) -> Counts:
    if not step.is_adopted:
        rows, removed = step.delta.rows.num_rows, len(step.delta.removed)
        return Counts(step.inserted, rows - step.inserted, removed)
    diff = sides.diff(Side.THEIRS, step.table)
    after, before = diff.after.column(ID_COLUMN), diff.before.column(ID_COLUMN)
    updated = pc.sum(pc.is_in(after, before.combine_chunks())).as_py() or 0
    return Counts(len(after) - updated, updated, len(before) - updated)


def _order(conflict: MergeConflict) -> tuple[object, ...]:
    is_edge = conflict.entity_kind is TableKind.EDGE
    return (is_edge, conflict.type_name, conflict.entity_id or "", str(conflict.kind))
