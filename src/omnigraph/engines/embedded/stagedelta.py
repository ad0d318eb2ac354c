"""Staging a delta: one staged write per table that it touches.

Rows whose ids are all new are appended, which costs their own number; only then are existing rows
looked for where a row may replace one. Nothing becomes visible here.
Not included: checks (`integrity`), and landing what was staged.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from omnigraph.engines.embedded.view import View
from omnigraph.model.commit import StagedWrite
from omnigraph.rows.deltas import Delta, TableDelta
from omnigraph.storage.stagedwrites import Stager

# From here on, tables are written side by side.
_MANY_ROWS = 50_000


def stage(view: View, branch_id: str, delta: Delta) -> tuple[StagedWrite, ...]:
    """Write the files of a delta that was made over this view."""
    stager = Stager(view.root, branch_id)
    changes = [delta[table_id] for table_id in sorted(delta)]
    moving = [change for change in changes if _moves(view, change)]
    if sum(change.rows.num_rows for change in moving) < _MANY_ROWS or len(moving) < 2:
        return tuple(_stage_table(stager, view, change) for change in moving)
    with ThreadPoolExecutor(max_workers=min(4, len(moving))) as pool:
        return tuple(pool.map(lambda change: _stage_table(stager, view, change), moving))


def _moves(view: View, change: TableDelta) -> bool:
    """Whether a table has to move at all. Replacing nothing by nothing leaves it where it is."""
    base = view.snapshot.table(change.table.id)
    if change.replaces and not change.rows.num_rows:
        return base is not None and base.rows > 0
    return not change.is_empty


def _stage_table(stager: Stager, view: View, change: TableDelta) -> StagedWrite:
    table, rows = change.table, change.rows
    base = view.snapshot.table(table.id)
    if change.replaces:
        return stager.overwrite(table, base, rows)
    if base is None:
        return stager.create(table, rows)
    if len(change.removed):
        return stager.exchange(table, base, rows, change.removed.to_pylist())
    if replaced_rows(view, change):
        return stager.upsert(table, base, rows)
    return stager.insert(table, base, rows)


def replaced_rows(view: View, change: TableDelta) -> int:
    """How many rows of a delta take the place of rows that the view shows."""
    if change.replacing is not None:
        return change.replacing
    return 0 if change.fresh else int(view.existing(change.table, change.ids).sum())
