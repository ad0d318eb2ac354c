"""Running the statements of a mutation, one after another, over a view.

Guarantees: a statement sees what those before it did, chained updates of one row included; what
comes out is the net change, every row once; deleting a node takes its edges of every type along.
Violations name the statement, counted from 0, as their record.
Deliberately absent: committing, and anything about other writers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph.engines.embedded.integrity import run_checks
from omnigraph.engines.embedded.mutationrows import Moment, evaluated, matching, matching_ids
from omnigraph.engines.embedded.stagedelta import replaced_rows
from omnigraph.engines.embedded.view import View
from omnigraph.engines.embedded.visibletargets import VisibleTargets
from omnigraph.errors import KeyConflictError, LimitExceededError, TypeNotFoundError, Violation
from omnigraph.intake.records import read_end
from omnigraph.ir.expr import Expr
from omnigraph.ir.expr import Property as StoredProperty
from omnigraph.ir.fold import contains
from omnigraph.ir.query import (
    Assignment,
    Delete,
    InsertEdge,
    InsertNode,
    OnConflict,
    Statement,
    Update,
    UpsertNode,
)
from omnigraph.model.catalog import ID_COLUMN, EdgeType, NodeType, Property, TableKind
from omnigraph.model.types import Kind
from omnigraph.model.visibility import EVERYTHING, Visibility
from omnigraph.model.write import Affected
from omnigraph.rows.checks import TYPE, TableType, check_rows, check_values
from omnigraph.rows.columns import to_column
from omnigraph.rows.deltas import Delta, TableDelta, merged, removal
from omnigraph.rows.findings import Findings, Origin, shown
from omnigraph.rows.identities import ENDS, identify
from omnigraph.rows.setchecks import ends_at, set_checks

MOST_BYTES = 256 << 20
# Fills in vectors of new rows, before they are checked.
EmbedRows: TypeAlias = Callable[[TableType, pa.Table], pa.Table]


class Mutation:
    """The statements of one query, as they are carried out."""

    def __init__(
        self,
        view: View,
        moment: Moment,
        *,
        most_bytes: int | None = None,
        embed: EmbedRows | None = None,
        visibility: Visibility = EVERYTHING,
    ) -> None:
        self._embed = embed
        self._targets = None if visibility.is_everything else VisibleTargets(visibility)
        self._start = view
        self._view = view
        self._moment = moment
        self._most_bytes = MOST_BYTES if most_bytes is None else most_bytes
        self._own: dict[int, TableDelta] = {}
        self._findings = Findings()

    def run(self, statement: Statement, number: int) -> None:
        """Carry out one statement, the `number`-th of its query."""
        table = self._table(statement.type_name)
        _RUNNERS[type(statement)](self, statement, table, Origin(np.array([number])))
        self._findings.raise_if_any()

    def finish(self) -> Delta:
        """The net change, once it is known to break nothing."""
        checks = set_checks(self._start.snapshot.catalog, self._own)
        run_checks(self._start, self._own, checks).raise_if_any()
        return {
            table_id: replace(change, replacing=replaced_rows(self._start, change))
            for table_id, change in self._own.items()
        }

    def affected(self, delta: Delta) -> dict[str, Affected]:
        return affected_rows(delta)

    # Statements

    def insert_node(self, statement: InsertNode, table: NodeType, origin: Origin) -> None:
        row = self._checked(table, self._given(statement.assignments), origin)
        if row is not None:
            self._refuse_hidden(table, row)
            self._put(TableDelta(table, row, fresh=not table.key, origin=origin))

    def insert_edge(self, statement: InsertEdge, table: EdgeType, origin: Origin) -> None:
        values = self._given(statement.assignments)
        catalog = self._start.snapshot.catalog
        for end, expr in (("from", statement.src), ("to", statement.dst)):
            value = self._moment.value(expr)
            try:
                column = ENDS[end]
                values[column] = None if value is None else read_end(catalog, table, column, value)
            except ValueError as error:
                violation = Violation(TYPE, str(error), table.name, end, shown(value))
                self._findings.add_each([0], origin, violation)
                return
        row = self._checked(table, values, origin)
        if row is not None:
            self._put(TableDelta(table, row, fresh=True, origin=origin))

    def upsert_node(self, statement: UpsertNode, table: NodeType, origin: Origin) -> None:
        row = self._checked(table, self._given(statement.assignments), origin)
        if row is None:
            return
        (id_,) = row.column(ID_COLUMN).to_pylist()
        self._refuse_hidden(table, row)
        there = bool(self._view.existing(table, pa.array([id_], pa.string()))[0])
        if not there or statement.on_conflict is OnConflict.REPLACE:
            self._put(TableDelta(table, row, origin=origin))
        elif statement.on_conflict is OnConflict.UPDATE:
            wanted = statement.updates or _besides_key(statement.assignments, table)
            self._change(table, self._view.rows(table, [id_]), wanted, origin)
        elif statement.on_conflict is OnConflict.ERROR:
            raise KeyConflictError(
                f"{table.name} has a node {id_!r} already.", type_name=table.name, ids=[id_]
            )

    def update(self, statement: Update, table: NodeType, origin: Origin) -> None:
        where = self._where(table, statement.where)
        found = matching(self._view, table, where, self._moment)
        if found.num_rows:
            self._change(table, found, statement.assignments, origin)

    def delete(self, statement: Delete, table: TableType, origin: Origin) -> None:
        where = self._where(table, statement.where)
        ids = matching_ids(self._view, table, where, self._moment)
        if self._targets is not None and isinstance(table, EdgeType):
            ids = self._targets.edges(self._view, table, ids)
        if not ids:
            return
        removals = [removal(table, ids, cascaded=True)]
        if isinstance(table, NodeType):
            removals += self._incident(table, ids)
        for change in removals:
            self._put(change)

    def _where(self, table: TableType, where: Expr) -> Expr:
        return where if self._targets is None else self._targets.where(table, where)

    def _refuse_hidden(self, table: NodeType, row: pa.Table) -> None:
        if self._targets is not None:
            (id_,) = row.column(ID_COLUMN).to_pylist()
            self._targets.refuse_hidden(self._view, table, id_)

    def _incident(self, table: NodeType, ids: list[str]) -> Iterable[TableDelta]:
        """The edges of every type that touch one of these nodes."""
        nodes = pa.array(ids, pa.string())
        for edge in self._view.snapshot.catalog.edges_of(table.name):
            found: set[str] = set()
            for column in ends_at(edge, table.name):
                _, edges = self._view.holders(edge, (column,), pa.table({column: nodes}))
                found.update(edges.to_pylist())
            if found:
                yield removal(edge, sorted(found))

    # Rows

    def _given(self, assignments: Iterable[Assignment]) -> dict[str, Any]:
        return {a.property: self._moment.value(a.value) for a in assignments}

    def _checked(
        self, table: TableType, values: Mapping[str, Any], origin: Origin
    ) -> pa.Table | None:
        """One new row; None when something is wrong with it."""
        columns = {name: _one_value(table, name, value) for name, value in values.items()}
        columns.setdefault(ID_COLUMN, pa.nulls(1, pa.string()))
        findings = Findings()
        data = pa.table(columns)
        data = data if self._embed is None else self._embed(table, data)
        row = check_rows(table, data, origin, findings, fill_nulls=False)
        if not findings:
            row = identify(table, row, origin, findings)
        self._findings.merge(findings)
        return None if findings else row

    def _change(
        self, table: NodeType, rows: pa.Table, assignments: Iterable[Assignment], origin: Origin
    ) -> None:
        """Rows with new values in some of their properties."""
        ids = rows.column(ID_COLUMN).to_pylist()
        everywhere = Origin(np.full(rows.num_rows, origin.record(0)), ids=ids)
        changed, findings = rows, Findings()
        for assignment in assignments:
            item = table.by_name[assignment.property]
            values = self._values(assignment.value, item, rows, table)
            column, misfits = to_column(values, item.type)
            for misfit in misfits:
                violation = Violation(
                    TYPE, misfit.reason, table.name, item.name, shown(misfit.value)
                )
                findings.add_each([misfit.row], everywhere, violation)
            place = changed.column_names.index(item.column)
            changed = changed.set_column(place, item.column, column)
        if not findings:
            check_values(table, changed, everywhere, findings)
        self._findings.merge(findings)
        if not findings:
            self._put(TableDelta(table, changed, origin=Origin(everywhere.records)))

    def _values(self, expr: Expr, item: Property, rows: pa.Table, table: NodeType) -> pa.Array:
        if item.type.kind is not Kind.BLOB or contains(expr, StoredProperty):
            return evaluated(expr, rows, table, self._moment)
        # A text stands for the bytes that it spells, or for where they lie.
        (value,) = _one_value(table, item.name, self._moment.value(expr))
        return pa.repeat(value, rows.num_rows)

    def _put(self, change: TableDelta) -> None:
        table_id = change.table.id
        self._own[table_id] = merged(self._own.get(table_id), change)
        self._view = self._view.with_delta({table_id: change})
        held = sum(change.nbytes for change in self._own.values())
        if held > self._most_bytes:
            raise LimitExceededError(
                f"The mutation would hold {held:,} bytes of rows in memory.",
                resource="memory_bytes",
                limit=float(self._most_bytes),
                actual=float(held),
                hint="Narrow its predicates and run it in parts.",
            )

    def _table(self, name: str) -> TableType:
        catalog = self._start.snapshot.catalog
        found = catalog.node(name) or catalog.edge(name)
        if found is None:
            raise TypeNotFoundError(f"The graph has no type {name!r}.")
        return found


def affected_rows(delta: Delta) -> dict[str, Affected]:
    """How many rows of each type a delta inserts, updates and deletes."""
    found: dict[str, Affected] = {}
    for change in delta.values():
        updated = change.replacing or 0
        counts = Affected(
            inserted=change.rows.num_rows - updated,
            updated=updated,
            deleted=len(change.removed),
            is_edge=change.table.kind is TableKind.EDGE,
        )
        if counts.total:
            found[change.table.name] = counts
    return found


def _besides_key(assignments: Iterable[Assignment], table: NodeType) -> tuple[Assignment, ...]:
    return tuple(a for a in assignments if a.property not in table.key)


def _one_value(table: TableType, name: str, value: Any) -> pa.Array:
    item = table.by_name.get(name)
    if item is not None and item.type.kind is Kind.BLOB and isinstance(value, str):
        return pa.array([value], pa.string())  # Arrow would take the text itself for the bytes
    wanted = pa.string() if item is None else item.type.to_arrow()
    try:
        return pa.array([value], wanted)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array([value])  # not of its type; the check will say so


_RUNNERS: dict[type[Any], Callable[[Mutation, Any, Any, Origin], None]] = {
    InsertNode: Mutation.insert_node,
    InsertEdge: Mutation.insert_edge,
    UpsertNode: Mutation.upsert_node,
    Update: Mutation.update,
    Delete: Mutation.delete,
}
