"""Conflicts between two schemas, and between rows under them.

Guarantees: nothing that a person wrote disappears because the other side dropped its place; it is
a conflict, with the reason.
Deliberately absent: combining the schemas themselves (`lang.pg.schemamerge`).
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.history.entitydiff import diff_versions
from omnigraph.history.images import TableDiff, TypePair
from omnigraph.lang.pg.steps import Constraint, MigrationPlan, Replacement, Step, StepKind
from omnigraph.merges.overlays import diff_states, state_rows
from omnigraph.merges.sides import Sides, TableType, other
from omnigraph.model.catalog import ID_COLUMN, Property, TableKind
from omnigraph.model.conflict import ConflictKind, MergeConflict, Side
from omnigraph.model.equality import same_columns
from omnigraph.rows.checks import default_value
from omnigraph.rows.columns import combined


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
        if not _has(sides, other(side), table, dropped):
            continue  # both dropped it
        changed = _set_in(_diff(sides, other(side), table), dropped)
        changed = sorted({*changed, *_contested(sides, other(side), table, dropped)})
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


def _has(sides: Sides, side: Side, table: TableType, item: Property) -> bool:
    known = sides.snapshot(side).catalog.table(table.id)
    return known is not None and any(each.id == item.id for each in known.properties)


def _diff(sides: Sides, side: Side, table: TableType) -> TableDiff:
    """What a side changed, in the columns that the base knew."""
    known = sides.snapshot(side).catalog.table(table.id)
    is_changed = known is not None and sides.changed(side, table.id)
    new = sides.state(side) if is_changed else sides.common
    return diff_states(sides.root, diff_versions, TypePair.both(table), sides.common, new)


def _set_in(diff: TableDiff, item: Property) -> list[str]:
    """The entities that a side gave a value of a property: updated ones that have another than
    before, and inserted ones that have one. The default does not count: rows get it by
    themselves."""
    place = combined(pc.index_in(diff.after.column(ID_COLUMN), value_set=_ids(diff.before)))
    new, updated = diff.after.filter(pc.is_null(place)), diff.after.filter(pc.is_valid(place))
    before = diff.before.take(place.drop_null()).column(item.column)
    changed = ~same_columns(before, updated.column(item.column))
    values = new.column(item.column)
    given = values.is_valid().to_numpy()
    if item.has_default:
        default = pa.scalar(default_value(item), values.type)
        given &= ~same_columns(pa.chunked_array([pa.repeat(default, new.num_rows)]), values)
    chosen = [updated.filter(pa.array(changed)), new.filter(pa.array(given))]
    return [id_ for rows in chosen for id_ in rows.column(ID_COLUMN).to_pylist()]


def _contested(sides: Sides, side: Side, table: TableType, item: Property) -> list[str]:
    """The entities that have a value of a property of which the base does not know one."""
    contested = sides.contested(table.id).items()
    ids = [key for key, columns in contested if not columns or item.column in columns]
    if not ids:
        return []
    state, types = sides.state(side), TypePair.both(table)
    rows = state_rows(sides.root, types, state, pa.array(ids, pa.string()))
    found: list[str] = (
        rows.filter(rows.column(item.column).is_valid()).column(ID_COLUMN).to_pylist()
    )
    return found


def _ids(rows: pa.Table) -> pa.Array:
    return combined(rows.column(ID_COLUMN))


def _conflict(kind: TableKind, name: str, message: str, item: str | None = None) -> MergeConflict:
    return MergeConflict(ConflictKind.SCHEMA, kind, name, None, message, (item,) if item else ())


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
