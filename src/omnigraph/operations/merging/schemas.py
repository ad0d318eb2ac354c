"""What two schemas, and the rows under them, do not let combine.

Guarantees: nothing that a person wrote disappears because the other side dropped its place; it is
a conflict, with the reason.
Deliberately absent: combining the schemas themselves (`lang.pg.merge`).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow.compute as pc

from omnigraph.history.diff import diff_versions
from omnigraph.history.images import TableDiff, TypePair
from omnigraph.lang.pg.steps import Constraint, MigrationPlan, Replacement, Step, StepKind
from omnigraph.model.catalog import ID_COLUMN, Property, TableKind
from omnigraph.model.conflict import ConflictKind, MergeConflict, Side
from omnigraph.model.equality import same_columns
from omnigraph.operations.merging.sides import Sides, TableType, other


def schema_conflicts(sides: Sides) -> list[MergeConflict]:
    found = [
        _conflict(TableKind.NODE, clash.entity or "schema", f"{_capital(clash.message)}.")
        for clash in sides.schema.clashes
    ]
    if not found:
        for side, plan in ((Side.OURS, sides.schema.ours), (Side.THEIRS, sides.schema.theirs)):
            found += _lost_rows(sides, side, plan)
            found += _lost_values(sides, side, plan)
            found += _moved_keys(sides, side, plan)
    return found


def _lost_rows(sides: Sides, side: Side, plan: MigrationPlan) -> Iterator[MergeConflict]:
    """Rows of a type that one side changed and the other dropped."""
    for step in plan.steps:
        table = sides.base.catalog.table(step.type_id)
        if step.kind is StepKind.DROP_TYPE and table is not None:
            diff = _diff(sides, other(side), table)
            if not diff.is_empty:
                text = f"{side} dropped {table.name}, and {other(side)} changed some of its rows."
                yield _conflict(table.kind, table.name, _capital(text))


def _lost_values(sides: Sides, side: Side, plan: MigrationPlan) -> Iterator[MergeConflict]:
    """Values of a property that one side set and the other dropped."""
    for step in plan.steps:
        table = sides.base.catalog.table(step.type_id)
        if step.kind is not StepKind.DROP_PROPERTY or table is None:
            continue
        dropped = next(item for item in table.properties if item.id == step.property_id)
        changed = _updated_in(_diff(sides, other(side), table), dropped)
        if changed:
            text = (
                f"{side} dropped {table.name}.{dropped.name}, and {other(side)} set it on "
                f"{table.name} {changed[0]!r}"
            )
            more = f" and {len(changed) - 1} more." if len(changed) > 1 else "."
            yield _conflict(table.kind, table.name, _capital(text + more), dropped.name)


def _moved_keys(sides: Sides, side: Side, plan: MigrationPlan) -> Iterator[MergeConflict]:
    """A type whose key one side changed while the other changed its rows: ids come from keys."""
    for step in plan.steps:
        table = sides.base.catalog.table(step.type_id)
        if table is None or _constraint(step) != "key":
            continue
        if not _diff(sides, other(side), table).is_empty:
            text = f"{side} changed the key of {table.name}, and {other(side)} changed its rows."
            yield _conflict(table.kind, table.name, _capital(text))


def _constraint(step: Step) -> str | None:
    value = step.value.new if isinstance(step.value, Replacement) else step.value
    return value.kind if isinstance(value, Constraint) else None


def _diff(sides: Sides, side: Side, table: TableType) -> TableDiff:
    """What a side changed, in the columns that the base knew."""
    old, new = sides.base.table(table.id), sides.version(side, table.id)
    known = sides.snapshot(side).catalog.table(table.id)
    if known is None or not sides.changed(side, table.id):
        new = old
    return diff_versions(sides.root, TypePair.both(table), old, new)


def _updated_in(diff: TableDiff, item: Property) -> list[str]:
    """The entities that have another value of a property than before."""
    ids = diff.after.column(ID_COLUMN)
    place = pc.index_in(diff.before.column(ID_COLUMN), value_set=ids.combine_chunks())
    there = pc.is_valid(place)
    before = diff.before.filter(there)
    after = diff.after.take(place.filter(there))
    differs = ~same_columns(before.column(item.column), after.column(item.column))
    chosen: list[str] = before.column(ID_COLUMN).take(np.flatnonzero(differs)).to_pylist()
    return chosen


def _conflict(kind: TableKind, name: str, message: str, item: str | None = None) -> MergeConflict:
    return MergeConflict(ConflictKind.SCHEMA, kind, name, None, message, (item,) if item else ())


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
