"""Checks every constraint of a schema on every stored row.

Guarantees: reads one table at a time, in batches where the rule allows; reports, never raises, for
rows that break a rule.
Deliberately absent: rules of its own. Values are checked by the function that writes use.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.pg.steps import DataCheck, EdgesWithinCardinality, KeyMatchesIds, Unique
from omnigraph.model.catalog import DST_COLUMN, ID_COLUMN, SRC_COLUMN, Catalog, EdgeType, NodeType
from omnigraph.model.snapshot import Snapshot
from omnigraph.rows.checks import check_values
from omnigraph.rows.findings import Findings, Origin
from omnigraph.rows.setchecks import end_type
from omnigraph.storage.table import open_table

_SHOWN = 20


def constraint_checks(catalog: Catalog) -> tuple[DataCheck, ...]:
    """Keys, uniqueness and cardinality as checks over whole tables."""
    found: list[DataCheck] = []
    for table in catalog.tables():
        for group in table.uniques:
            found.append(Unique(table.id, table.name, group, _columns(table, group)))
        if isinstance(table, NodeType) and table.key:
            columns = _columns(table, table.key)
            found.append(KeyMatchesIds(table.id, table.name, table.key, columns))
        if isinstance(table, EdgeType) and not table.cardinality.is_default:
            card = table.cardinality
            found.append(
                EdgesWithinCardinality(
                    table.id, table.name, table.src_type, card.minimum, card.maximum
                )
            )
    return tuple(found)


def _columns(table: NodeType | EdgeType, names: tuple[str, ...]) -> tuple[str, ...]:
    """Physical columns; the ends of an edge are no properties and go by their own names."""
    found = (table.get(name) for name in names)
    return tuple(p.column if p else name for p, name in zip(found, names, strict=True))


def row_problems(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """Repeated ids, edges without ends, and values that the schema does not allow."""
    for table in snapshot.catalog.tables():
        version = snapshot.table(table.id)
        if version is None or version.rows == 0:
            continue
        yield from ((table.name, text) for text in _repeated_ids(snapshot, table))
        if isinstance(table, EdgeType):
            yield from ((table.name, text) for text in _lost_ends(snapshot, table))
        yield from ((table.name, text) for text in _bad_values(snapshot, table))


def _repeated_ids(snapshot: Snapshot, table: NodeType | EdgeType) -> Iterator[str]:
    ids = _column(snapshot, table, ID_COLUMN)
    if pc.count_distinct(ids).as_py() != len(ids):
        counted = pc.value_counts(ids)
        repeated = counted.filter(pc.greater(pc.struct_field(counted, "counts"), 1))
        some = pc.struct_field(repeated, "values").to_pylist()[:_SHOWN]
        yield f"{len(repeated)} ids repeat: {', '.join(map(repr, some))}"


def _lost_ends(snapshot: Snapshot, edge: EdgeType) -> Iterator[str]:
    for column in (SRC_COLUMN, DST_COLUMN):
        node = end_type(snapshot.catalog, edge, column)
        ends = pc.unique(_column(snapshot, edge, column))
        known = _column(snapshot, node, ID_COLUMN)
        lost = ends.filter(pc.invert(pc.is_in(ends, value_set=known)))
        if len(lost):
            some = ", ".join(map(repr, lost.to_pylist()[:_SHOWN]))
            yield f"{len(lost)} nodes of {node.name} that {column} names are not there: {some}"


def _bad_values(snapshot: Snapshot, table: NodeType | EdgeType) -> Iterator[str]:
    version = snapshot.table(table.id)
    assert version is not None
    columns = [item.column for item in table.properties]
    findings = Findings()
    for batch in open_table(snapshot.location, version).scan([ID_COLUMN, *columns]):
        origin = Origin(ids=batch.column(ID_COLUMN).to_pylist())
        check_values(table, pa.Table.from_batches([batch]), origin, findings)
    for violation in findings.violations[:_SHOWN]:
        yield str(violation)
    if findings.total > _SHOWN:
        yield f"and {findings.total - _SHOWN} values more"


def _column(snapshot: Snapshot, table: NodeType | EdgeType, column: str) -> pa.Array:
    version = snapshot.table(table.id)
    if version is None:
        return pa.array([], pa.string())
    return open_table(snapshot.location, version).read([column]).column(column).combine_chunks()
