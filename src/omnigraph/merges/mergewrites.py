"""Writing what a merge plan says, up to the door.

Tables that are taken over are not touched; the others get one staged write each, which finds the
rows to replace by their row ids instead of looking for them.
"""

from __future__ import annotations

from omnigraph import progress
from omnigraph.merges.mergeplan import MergePlan
from omnigraph.merges.tablemerge import TableStep, doomed_rows
from omnigraph.model.commit import StagedWrite, TableUnchanged
from omnigraph.model.conflict import Side
from omnigraph.model.snapshot import TableVersion
from omnigraph.storage.stagedwrites import Stager


def stage_plan(plan: MergePlan) -> tuple[StagedWrite, ...]:
    stager = Stager(plan.sides.root, plan.sides.branch_id)
    steps = [step for step in plan.steps.values() if step.is_written]

    def stage() -> tuple[StagedWrite, ...]:
        with progress.tallying("write", sum(_rows_to_write(plan, step) for step in steps)):
            return tuple(_stage(stager, plan, step) for step in steps)

    return progress.aside(stage)


def _rows_to_write(plan: MergePlan, step: TableStep) -> int:
    version = plan.sides.version(step.ground, step.table.id) if step.widened else None
    return int(step.delta.rows.num_rows) + (version.rows if version else 0)


def adopted_versions(plan: MergePlan) -> tuple[TableVersion, ...]:
    versions = [
        plan.sides.version(Side.THEIRS, table_id)
        for table_id, step in plan.steps.items()
        if step.is_adopted
    ]
    return tuple(version for version in versions if version is not None)


def dropped_tables(plan: MergePlan) -> tuple[int, ...]:
    """Tables of ours whose types the merged schema no longer has."""
    kept = plan.sides.schema.catalog
    return tuple(sorted(key for key in plan.sides.ours.tables if kept.table(key) is None))


def fences(plan: MergePlan) -> tuple[TableUnchanged, ...]:
    """A merge has looked at everything: all tables must still be as it saw them."""
    ours = plan.sides.ours
    known = {*ours.tables, *plan.steps}
    versions = {table_id: ours.table(table_id) for table_id in sorted(known)}
    return tuple(
        TableUnchanged(table_id, version.logical if version else None)
        for table_id, version in versions.items()
    )


def _stage(stager: Stager, plan: MergePlan, step: TableStep) -> StagedWrite:
    version = plan.sides.version(step.ground, step.table.id)
    doomed = doomed_rows(step, plan.sides)
    rows = step.delta.rows
    if version is not None and step.widened:
        return stager.reshape(step.table, version, step.fills, rows, doomed)
    if version is not None and step.added:
        return stager.widen(step.table, version, step.fills, rows, doomed)
    return stager.change(step.table, version, rows, doomed)
