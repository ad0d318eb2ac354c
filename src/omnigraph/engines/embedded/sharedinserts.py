"""The same insert by several writers, evaluated once.

Writers of one group often run the same mutation with other parameters. If all it does is insert,
the rows of all of them are made, checked and looked up together, and each gets its own back. That
is a short cut: whenever one of them might fail, or might depend on another, there is no answer, and
they are evaluated one after another as always.

Guarantees: where there is an answer, it is what evaluating them in any order gives.
Deliberately absent: naming what is wrong; evaluating one by one does that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.engines.embedded.integrity import run_checks
from omnigraph.engines.embedded.mutationrows import Moment
from omnigraph.engines.embedded.view import View
from omnigraph.errors import OmniGraphError
from omnigraph.intake.records import read_end
from omnigraph.ir.query import InsertEdge, InsertNode, Statement
from omnigraph.model.catalog import ID_COLUMN, Catalog, EdgeType
from omnigraph.rows.checks import TableType, check_rows
from omnigraph.rows.deltas import Delta, TableDelta, together
from omnigraph.rows.findings import Findings, Origin
from omnigraph.rows.identities import ENDS, identify
from omnigraph.rows.setchecks import Endpoint, SetCheck, Unique, set_checks

MOST_STATEMENTS = 16


@dataclass(frozen=True)
class Shared:
    """What all writers do, and what each of them does."""

    whole: Delta
    each: tuple[Delta, ...]


def can_share(statements: Sequence[Statement]) -> bool:
    """Whether a mutation is of a kind that may be evaluated for several writers at once."""
    if len(statements) > MOST_STATEMENTS:
        return False
    return all(isinstance(statement, InsertNode | InsertEdge) for statement in statements)


def insert_together(
    view: View, statements: Sequence[Statement], moments: Sequence[Moment]
) -> Shared | None:
    """The statements with the parameters of each moment; None: evaluate them one by one."""
    try:
        inserted = _inserted(view.snapshot.catalog, statements, moments)
        if inserted is None:
            return None
        whole = {table.id: _stacked(inserted, table) for table, _ in inserted}
        if not _stands(view, whole):
            return None
        return Shared(whole, tuple(_of_member(inserted, place) for place in range(len(moments))))
    except (OmniGraphError, pa.ArrowException, ValueError, TypeError, OverflowError):
        return None


Inserted = list[tuple[TableType, pa.Table]]


def _inserted(
    catalog: Catalog, statements: Sequence[Statement], moments: Sequence[Moment]
) -> Inserted | None:
    """By statement: the type, and one row of it for each moment."""
    found: Inserted = []
    for statement in statements:
        table = catalog.node(statement.type_name) or catalog.edge(statement.type_name)
        if table is None or table.blob_properties:
            return None
        rows = _rows(catalog, table, statement, moments)
        if rows is None:
            return None
        found.append((table, rows))
    return found


def _rows(
    catalog: Catalog, table: TableType, statement: Any, moments: Sequence[Moment]
) -> pa.Table | None:
    values = {
        a.property: [moment.value(a.value) for moment in moments] for a in statement.assignments
    }
    columns = {name: _column(table, name, given) for name, given in values.items()}
    if isinstance(table, EdgeType):
        for end, expr in (("from", statement.src), ("to", statement.dst)):
            ends = [moment.value(expr) for moment in moments]
            ids = [None if e is None else read_end(catalog, table, ENDS[end], e) for e in ends]
            columns[ENDS[end]] = pa.array(ids, pa.string())
    columns.setdefault(ID_COLUMN, pa.nulls(len(moments), pa.string()))
    findings, origin = Findings(), Origin()
    rows = check_rows(table, pa.table(columns), origin, findings, fill_nulls=False)
    if not findings:
        rows = identify(table, rows, origin, findings)
    return None if findings else rows


def _column(table: TableType, name: str, values: list[Any]) -> pa.Array:
    item = table.by_name.get(name)
    return pa.array(values, pa.string() if item is None else item.type.to_arrow())


def _stacked(inserted: Inserted, table: TableType) -> TableDelta:
    rows = [rows for other, rows in inserted if other is table]
    return TableDelta(table, pa.concat_tables(rows), fresh=_is_fresh(table), replacing=0)


def _is_fresh(table: TableType) -> bool:
    return isinstance(table, EdgeType) or not table.key


def _stands(view: View, whole: Delta) -> bool:
    """Whether every row is new and none violates a constraint, in any order of the requests."""
    for change in whole.values():
        ids = change.ids
        if len(ids.unique()) < len(ids):
            return False
        if not change.fresh and bool(view.existing(change.table, ids).any()):
            return False
    checks = set_checks(view.snapshot.catalog, whole)
    if not all(_ignores_order(check, whole) for check in checks):
        return False
    return not run_checks(view, whole, checks)


def _ignores_order(check: SetCheck, whole: Delta) -> bool:
    """Whether a rule that holds for all rows together holds for them in any order."""
    if isinstance(check, Endpoint):
        return check.node.id not in whole  # else an edge might come before its node
    return isinstance(check, Unique)


def _of_member(inserted: Inserted, place: int) -> Delta:
    found: dict[int, TableDelta] = {}
    for number, (table, rows) in enumerate(inserted):
        own = TableDelta(
            table,
            rows.slice(place, 1),
            fresh=_is_fresh(table),
            replacing=0,
            origin=Origin(np.array([number])),
        )
        found[table.id] = together(found.get(table.id), own)
    return found
