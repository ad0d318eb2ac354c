"""The data checks of a migration: whether the stored rows satisfy the new schema.

Guarantees: reads only the columns that a check names, batch by batch; values are tested by the same
functions as in a write, whatever their type; every violation is counted, the first ones are listed
with the id of their row.
Deliberately absent: deciding which checks a migration needs (`lang.pg`), and changing anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import Violation
from omnigraph.ir.expr import CompareOp
from omnigraph.lang.pg.steps import (
    DataCheck,
    EdgesWithinCardinality,
    InRange,
    KeyMatchesIds,
    Matches,
    NoNulls,
    NoRows,
    Unique,
    WithinCardinality,
)
from omnigraph.model.catalog import ID_COLUMN, SRC_COLUMN
from omnigraph.model.keys import node_ids
from omnigraph.model.snapshot import Snapshot
from omnigraph.rows.checks import is_beyond, matches_pattern
from omnigraph.storage.table import Table, open_table

LISTED = 100


class Tally:
    """Violations: the first ones in full, all of them counted."""

    def __init__(self) -> None:
        self.violations: list[Violation] = []
        self.total = 0

    def add(self, ids: Sequence[str], count: int, type_name: str, where: str, rule: str) -> None:
        self.total += count
        room = LISTED - len(self.violations)
        self.violations.extend(
            Violation(rule, f"the row {entity!r} does not allow it", type_name, where, entity)
            for entity in ids[:room]
        )


def run_checks(snapshot: Snapshot, checks: Sequence[DataCheck]) -> Tally:
    """Run every check against a snapshot."""
    tally = Tally()
    for check in checks:
        version = snapshot.table(check.type_id)
        if isinstance(check, WithinCardinality):
            _check_cardinality(snapshot, check, tally)
        elif version is not None and version.rows:
            _check_table(open_table(snapshot.location, version), check, tally)
    return tally


def _check_table(table: Table, check: DataCheck, tally: Tally) -> None:
    match check:
        case NoRows(type_name=name):
            tally.add([], table.rows, name, "", "must be empty")
        case NoNulls(type_name=name, property=where, column=column):
            _report(table, column, pc.is_null, name, where, "required", tally)
        case InRange(type_name=name, property=where, column=column):
            _report(table, column, _outside(check), name, where, "range", tally)
        case Matches(type_name=name, property=where, column=column, pattern=pattern):
            _report(table, column, _unlike(pattern), name, where, "check", tally)
        case Unique(type_name=name, properties=places, columns=columns):
            _check_unique(table, columns, name, ", ".join(places), tally)
        case KeyMatchesIds(type_name=name, properties=places, columns=columns):
            _check_keys(table, columns, name, ", ".join(places), tally)


def _report(
    table: Table,
    column: str,
    is_bad: Callable[[pa.Array], pa.Array],
    name: str,
    where: str,
    rule: str,
    tally: Tally,
) -> None:
    for batch in table.scan([ID_COLUMN, column]):
        marks = pc.fill_null(is_bad(batch.column(column)), False)
        bad = batch.filter(marks).column(ID_COLUMN).to_pylist()
        tally.add(bad, len(bad), name, where, rule)


def _outside(check: InRange) -> Callable[[pa.Array], pa.Array]:
    bounds = ((CompareOp.LT, check.minimum), (CompareOp.GT, check.maximum))

    def test(values: pa.Array) -> pa.Array:
        found = [is_beyond(op, values, bound) for op, bound in bounds if bound is not None]
        return reduce(pc.or_kleene, found)

    return test


def _unlike(pattern: str) -> Callable[[pa.Array], pa.Array]:
    return lambda values: pc.invert(matches_pattern(values, pattern))


def _check_unique(
    table: Table, columns: Sequence[str], name: str, where: str, tally: Tally
) -> None:
    if not columns:
        if table.rows > 1:
            tally.add([], table.rows - 1, name, where, "unique")
        return
    rows = table.read([ID_COLUMN, *columns])
    for column in columns:
        rows = rows.filter(pc.is_valid(rows.column(column)))
    groups = rows.group_by(list(columns)).aggregate([(ID_COLUMN, "count"), (ID_COLUMN, "min")])
    repeated = groups.filter(pc.greater(groups.column(f"{ID_COLUMN}_count"), 1))
    extra = pc.sum(pc.subtract(repeated.column(f"{ID_COLUMN}_count"), 1)).as_py() or 0
    tally.add(repeated.column(f"{ID_COLUMN}_min").to_pylist(), extra, name, where, "unique")


def _check_keys(table: Table, columns: Sequence[str], name: str, where: str, tally: Tally) -> None:
    rows = table.read([ID_COLUMN, *columns])
    expected = node_ids(rows, columns)
    same = pc.fill_null(pc.equal(rows.column(ID_COLUMN).combine_chunks(), expected), False)
    bad = rows.filter(pc.invert(same)).column(ID_COLUMN).to_pylist()
    tally.add(bad, len(bad), name, where, "key")


def _check_cardinality(snapshot: Snapshot, check: WithinCardinality, tally: Tally) -> None:
    degrees = _degrees(snapshot, check.type_id)
    counts = degrees.column("count")
    bad = pc.less(counts, check.minimum)
    if check.maximum is not None:
        bad = pc.or_(bad, pc.greater(counts, check.maximum))
    wrong = degrees.filter(bad).column(SRC_COLUMN).to_pylist()
    tally.add(wrong, len(wrong), check.type_name, "", "card")
    if check.minimum > 0 and not isinstance(check, EdgesWithinCardinality):
        _check_lonely(snapshot, check, degrees.column(SRC_COLUMN), tally)


def _check_lonely(
    snapshot: Snapshot, check: WithinCardinality, sources: pa.ChunkedArray, tally: Tally
) -> None:
    """Nodes of the source type without any edge, where at least one is required."""
    node = snapshot.catalog.node(check.src_type)
    version = snapshot.table(node.id) if node else None
    if version is None or version.rows == 0:
        return
    ids = open_table(snapshot.location, version).read([ID_COLUMN]).column(ID_COLUMN)
    lonely = ids.filter(pc.invert(pc.is_in(ids, sources.combine_chunks()))).to_pylist()
    tally.add(lonely, len(lonely), check.type_name, "", "card")


def _degrees(snapshot: Snapshot, edge_table_id: int) -> pa.Table:
    version = snapshot.table(edge_table_id)
    if version is None or version.rows == 0:
        return pa.table({SRC_COLUMN: pa.array([], pa.string()), "count": pa.array([], pa.int64())})
    rows = open_table(snapshot.location, version).read([SRC_COLUMN])
    counted = rows.group_by([SRC_COLUMN]).aggregate([(SRC_COLUMN, "count")])
    return counted.rename_columns([SRC_COLUMN, "count"])
