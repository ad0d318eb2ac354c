"""The differences between two snapshots, entity by entity.

Where the lines of two table versions meet, only the rows written or lost since are read; otherwise
both are compared whole, by id. Rows that were rewritten without a difference are left out in both
cases.

Guarantees: exact images, deterministic order (nodes before edges, type, id), values compared by
property identity, so that a renamed property is no change. Large differences are read piece by
piece: what is held in memory is the ids of what changed and the images of one piece.
Deliberately absent: merging, and deciding what a difference means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from omnigraph.history.images import TableDiff, TableType, TypePair, compare, wanted_columns
from omnigraph.model.catalog import ID_COLUMN, TableKind
from omnigraph.model.change import Change, ChangeFilter, ChangeOp
from omnigraph.model.snapshot import Snapshot, TableVersion
from omnigraph.model.temporal import python_values
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.versiondiff import (
    ROW_ID,
    RowDelta,
    all_rows,
    delta_size,
    no_rows,
    row_delta,
    take_rows,
)

_BATCH = 4096
# So many rows of each side are compared at a time.
PIECE_ROWS = 65_536

# Compares two versions of a table. Another engine may bring its own, for tables that outgrow one
# machine; the result is the same.
Differ = Callable[[GraphRoot, TypePair, TableVersion | None, TableVersion | None], TableDiff]
# Restricts a difference between two snapshots to what is visible.
Shown = Callable[[TableDiff, Snapshot, Snapshot], TableDiff]


def diff_snapshots(
    root: GraphRoot,
    before: Snapshot,
    after: Snapshot,
    filter: ChangeFilter | None = None,
    differ: Differ | None = None,
    shown: Shown | None = None,
) -> Iterator[Change]:
    """Every change from `before` to `after`: nodes before edges, by type, by id."""
    wanted = filter or ChangeFilter()
    for table_diff in diff_tables(root, before, after, wanted, differ, shown):
        for change in changes_of(table_diff):
            if wanted.wants_op(change.op):
                yield change


def diff_tables(
    root: GraphRoot,
    before: Snapshot,
    after: Snapshot,
    wanted: ChangeFilter,
    differ: Differ | None = None,
    shown: Shown | None = None,
) -> Iterator[TableDiff]:
    """The differences of each type that changed, in pieces: nodes before edges, by type, by id.
    With a differ, each type's as a whole, however that finds it."""
    for found in _diff_tables(root, before, after, wanted, differ):
        visible = found if shown is None else shown(found, before, after)
        if shown is None or not visible.is_empty:
            yield visible


def _diff_tables(
    root: GraphRoot,
    before: Snapshot,
    after: Snapshot,
    wanted: ChangeFilter,
    differ: Differ | None,
) -> Iterator[TableDiff]:
    for pair in type_pairs(before, after):
        if not wanted.wants_type(pair.shown.kind, pair.shown.name):
            continue
        old, new = before.table(pair.shown.id), after.table(pair.shown.id)
        if same_content(old, new):
            continue
        if differ is None:
            yield from _pieces(root, pair, old, new)
        else:
            yield differ(root, pair, old, new)


def diff_versions(
    root: GraphRoot, types: TypePair, old: TableVersion | None, new: TableVersion | None
) -> TableDiff:
    """What differs between two versions of one table, as a whole."""
    if same_content(old, new):
        old = new = None
    delta = _delta(root, old, new, wanted_columns(types))
    return compare(types, delta.older, delta.written)


def same_content(old: TableVersion | None, new: TableVersion | None) -> bool:
    """Whether two versions are known to hold the same rows without looking at any."""
    if old is None or new is None:
        return (old.rows if old else 0) == (new.rows if new else 0) == 0
    same_line = (old.path, old.fork) == (new.path, new.fork)
    return same_line and (old.version == new.version or old.logical == new.logical)


def type_pairs(before: Snapshot, after: Snapshot) -> list[TypePair]:
    """Every type of either side, as each of them knows it."""
    old = {table.id: table for table in before.catalog.tables()}
    new = {table.id: table for table in after.catalog.tables()}
    pairs = [TypePair(old.get(key), new.get(key)) for key in old.keys() | new.keys()]
    return sorted(pairs, key=lambda p: (p.shown.kind is TableKind.EDGE, p.shown.id))


def changes_of(diff: TableDiff) -> Iterator[Change]:
    """The changes of one type, in order of id."""
    before = _images(diff.types.older, diff.before)
    after = _images(diff.types.newer, diff.after)
    shown = diff.types.shown
    old, new = next(before, None), next(after, None)
    while old is not None or new is not None:
        if new is None or (old is not None and old[0] < new[0]):
            assert old is not None
            yield _change(shown, old[0], ChangeOp.DELETE, old[1], None)
            old = next(before, None)
        elif old is None or new[0] < old[0]:
            yield _change(shown, new[0], ChangeOp.INSERT, None, new[1])
            new = next(after, None)
        else:
            yield _change(shown, new[0], ChangeOp.UPDATE, old[1], new[1])
            old, new = next(before, None), next(after, None)


def _pieces(
    root: GraphRoot, types: TypePair, old: TableVersion | None, new: TableVersion | None
) -> Iterator[TableDiff]:
    """The difference in one piece when it is small, else in order of id, bit by bit."""
    if diff_size(root, old, new) <= PIECE_ROWS:
        found = diff_versions(root, types, old, new)
        if not found.is_empty:
            yield found
        return
    columns = wanted_columns(types)
    candidates = _delta(root, old, new, [ID_COLUMN])
    left, right = candidates.older.sort_by(ID_COLUMN), candidates.written.sort_by(ID_COLUMN)
    while left.num_rows or right.num_rows:
        last = min(
            side.column(ID_COLUMN)[min(PIECE_ROWS, side.num_rows) - 1].as_py()
            for side in (left, right)
            if side.num_rows
        )
        first, left = _split(left, last)
        second, right = _split(right, last)
        found = compare(
            types,
            _rows_of(root, old, first, columns),
            _rows_of(root, new, second, columns),
        )
        if not found.is_empty:
            yield found


def _split(side: Any, last: str) -> tuple[Any, Any]:
    """The rows up to an id, and those after it. `side` is sorted by id."""
    ids = side.column(ID_COLUMN)
    low, high = 0, side.num_rows
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if ids[middle].as_py() <= last else (low, middle)
    return side.slice(0, low), side.slice(low)


def _rows_of(root: GraphRoot, version: TableVersion | None, rows: Any, columns: list[str]) -> Any:
    if version is None:
        return no_rows()
    return take_rows(root, version, rows.column(ROW_ID).to_numpy().astype(np.uint64), columns)


def diff_size(root: GraphRoot, old: TableVersion | None, new: TableVersion | None) -> int:
    """About how many rows must be read to compare two versions."""
    if old is None or new is None:
        return (old.rows if old else 0) + (new.rows if new else 0)
    return delta_size(root, old, new)


def _delta(
    root: GraphRoot, old: TableVersion | None, new: TableVersion | None, columns: list[str]
) -> RowDelta:
    """The rows of both sides that may differ."""
    if old is not None and new is not None:
        delta = row_delta(root, old, new, columns)
        if delta is not None:
            return delta
    older = all_rows(root, old, columns) if old else no_rows()
    newer = all_rows(root, new, columns) if new else no_rows()
    return RowDelta(written=newer, older=older)


def _images(table: TableType | None, rows: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    if table is None:
        return
    names = {item.column: item.name for item in table.properties}
    ends = [name for name in ("src", "dst") if table.kind is TableKind.EDGE]
    keys = [*ends, *names.values()]
    chosen = rows.select([ID_COLUMN, *ends, *names])
    for batch in chosen.to_batches(max_chunksize=_BATCH):
        # Column by column: making Python values row by row takes several times as long.
        ids, *columns = (python_values(column) for column in batch.columns)
        values = zip(*columns, strict=True) if columns else ((),) * len(ids)
        yield from (
            (id_, dict(zip(keys, row, strict=True))) for id_, row in zip(ids, values, strict=True)
        )


def _change(
    table: TableType,
    entity_id: str,
    op: ChangeOp,
    before: dict[str, Any] | None,
    after: dict[str, Any] | None,
) -> Change:
    return Change(table.kind, table.id, table.name, entity_id, op, before, after)
