"""Every constraint, checked on the merged result.

Both sides hold by themselves, so a rule can only break where their changes meet: a key that both
gave out, a source whose edges both changed, a row that was mixed from both. Only such rules are
evaluated, by the evaluator of all writes, on the whole change.

Guarantees: a merge that passes leaves no violation; when the sides' schemas differ, every rule is
evaluated on every row that either side changed.
Deliberately absent: the rules, and edges without their nodes (`orphans`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engines.embedded.integrity import run_checks
from omnigraph.engines.embedded.lookupcache import spelled
from omnigraph.engines.embedded.migratedview import ReshapedView
from omnigraph.engines.embedded.view import View
from omnigraph.errors import Violation
from omnigraph.merges.orphans import Steps
from omnigraph.merges.sides import Sides, other
from omnigraph.merges.tablemerge import TableStep, changed_rows, deleted_ids
from omnigraph.model.catalog import ID_COLUMN, SRC_COLUMN, NodeType
from omnigraph.model.conflict import ConflictKind, MergeConflict, Side
from omnigraph.model.snapshot import Snapshot
from omnigraph.model.temporal import python_rows
from omnigraph.rows.checks import check_values
from omnigraph.rows.deltas import Delta, TableDelta
from omnigraph.rows.findings import Findings, Origin
from omnigraph.rows.setchecks import (
    CARDINALITY,
    ENDPOINT,
    UNIQUE,
    Count,
    Endpoint,
    SetCheck,
    Unique,
    ends_at,
    set_checks,
)

_KINDS = {
    UNIQUE: ConflictKind.UNIQUE,
    CARDINALITY: ConflictKind.CARDINALITY,
    ENDPOINT: ConflictKind.ORPHAN_EDGE,
}


def find_violations(sides: Sides, steps: Steps) -> list[MergeConflict]:
    """What the merged result would break."""
    apart = sides.ours.catalog.hash != sides.theirs.catalog.hash
    delta = _delta(sides, steps, everything=apart)
    rules = set_checks(sides.schema.catalog, delta)
    checks = tuple(rule for rule in rules if _matters(rule, sides, steps, apart))
    found: list[MergeConflict] = []
    for change in delta.values():
        found += _row_violations(change, steps[change.table.id], everything=apart)
    reshaped = {table_id: step.fills for table_id, step in steps.items() if step.is_reshaped}
    view = ReshapedView(sides.root, _ground(sides, steps), reshaped, sides.passer)
    if checks:
        found += _conflicts(delta, run_checks(view, delta, checks))
    for step in steps.values():
        if isinstance(step.table, NodeType) and len(step.delta.removed):
            found += _left_behind(view, sides, steps, step, step.table)
    return found


def _left_behind(
    view: View, sides: Sides, steps: Steps, step: TableStep, node: NodeType
) -> Iterator[MergeConflict]:
    """Edges of nodes that neither side deleted, but a person who decided conflicts did."""
    theirs = [deleted_ids(sides.diff(side, node)) for side in Side]
    gone = step.delta.removed
    gone = gone.filter(pc.invert(pc.is_in(gone, value_set=pa.concat_arrays(theirs))))
    if len(gone) == 0:
        return
    for edge in sides.schema.catalog.edges_of(node.name):
        change = steps[edge.id].delta
        for column in ends_at(edge, node.name):
            places, ids = view.holders(edge, (column,), pa.table({column: gone}))
            leaves = pc.is_in(ids, value_set=pa.concat_arrays([change.ids, change.removed]))
            for place, edge_id, left in zip(places, ids.to_pylist(), leaves, strict=True):
                if not left.as_py():
                    yield MergeConflict(
                        ConflictKind.ORPHAN_EDGE,
                        edge.kind,
                        edge.name,
                        edge_id,
                        f"{edge.name} {edge_id!r} leads to {node.name} "
                        f"{gone[int(place)].as_py()!r}, which is to be deleted.",
                        (column,),
                    )


def _ground(sides: Sides, steps: Steps) -> Snapshot:
    """The state that the steps build on."""
    tables = dict(sides.ours.tables)
    for table_id, step in steps.items():
        version = sides.version(step.ground, table_id)
        if version is not None:
            tables[table_id] = version
    return replace(sides.ours, catalog=sides.schema.catalog, tables=tables)


def _delta(sides: Sides, steps: Steps, *, everything: bool) -> Delta:
    """What the steps do to their ground; with `everything`, also what the ground's side did."""
    found: dict[int, TableDelta] = {}
    for table_id, step in steps.items():
        change = step.delta
        if everything and any(sides.changed(side, table_id) for side in Side):
            change = replace(change, rows=changed_rows(step, sides))
        if not change.is_empty:
            found[table_id] = replace(change, origin=Origin(is_input=False))
    return found


def _matters(check: SetCheck, sides: Sides, steps: Steps, apart: bool) -> bool:
    """Whether the rule can break by merging."""
    if isinstance(check, Unique):
        return apart or _shares_keys(check, sides, steps[check.table.id])
    if isinstance(check, Count):
        return apart or _shares_sources(check, sides, steps[check.edge.id])
    if isinstance(check, Endpoint):
        return bool(steps[check.edge.id].mixed)
    return False  # ids cannot clash, and edges of nodes that go are `orphans`


def _shares_keys(check: Unique, sides: Sides, step: TableStep) -> bool:
    if step.mixed:
        return True
    own = sides.diff(step.ground, step.table).after
    keys = spelled(own, check.columns)
    return bool(pc.any(pc.is_in(spelled(step.delta.rows, check.columns), value_set=keys)).as_py())


def _shares_sources(check: Count, sides: Sides, step: TableStep) -> bool:
    if step.mixed:
        return True
    first, second = (_sources(sides, side, step) for side in (step.ground, other(step.ground)))
    return bool(pc.any(pc.is_in(first, value_set=second)).as_py())


def _sources(sides: Sides, side: Side, step: TableStep) -> pa.Array:
    diff = sides.diff(side, step.table)
    both = [rows.column(SRC_COLUMN).combine_chunks() for rows in (diff.before, diff.after)]
    return pa.concat_arrays(both).unique()


def _row_violations(
    change: TableDelta, step: TableStep, *, everything: bool
) -> Iterator[MergeConflict]:
    """Rows that break a rule by themselves: only rows that neither side has can."""
    rows = change.rows
    if not everything:
        if not step.mixed:
            return
        mixed = pa.array(sorted(step.mixed), pa.string())
        rows = rows.filter(pc.is_in(rows.column(ID_COLUMN), value_set=mixed))
    findings = Findings()
    check_values(change.table, rows, Origin(), findings)
    yield from _conflicts({change.table.id: replace(change, rows=rows)}, findings)


def _conflicts(delta: Delta, findings: Findings) -> Iterator[MergeConflict]:
    named = {change.table.name: change for change in delta.values()}
    for violation in findings.violations:
        change = named.get(violation.type_name or "")
        yield _conflict(violation, change)


def _named(violation: Violation, entity_id: str | None) -> str:
    """The violation with the entity that breaks the rule."""
    if entity_id is None:
        return str(violation)
    return f"{violation.type_name} {entity_id!r}: {violation.message}"


def _conflict(violation: Violation, change: TableDelta | None) -> MergeConflict:
    entity_id, image = None, None
    if change is not None and violation.record is not None:
        (row,) = python_rows(change.rows.slice(violation.record, 1))
        entity_id = row.pop(ID_COLUMN)
        names = {item.column: item.name for item in change.table.properties}
        image = {names.get(key, key): value for key, value in row.items()}
    assert change is not None
    return MergeConflict(
        _KINDS.get(violation.rule, ConflictKind.VALUE),
        change.table.kind,
        change.table.name,
        entity_id,
        f"{_named(violation, entity_id)}.",
        tuple((violation.property or "").split(", ")) if violation.property else (),
        theirs=image,
    )
