"""Row-local checks: constraints on a single row.

    rows = check_rows(catalog.node("Person"), batch, origin, findings)

One function over an Arrow batch, called in-process and inside the tasks of a cluster alike.

Guarantees: what comes out has the type's physical columns, in order; defaults are filled in; every
value that is missing, unknown, of another type, outside its enum or range, or at odds with its
pattern or dimension is reported with record, type, property, value and rule. Rows with findings
stay in, for the caller to refuse.
Deliberately absent: ids (`identities`) and whatever needs other rows (`setchecks`).
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import Violation
from omnigraph.ir.expr import CompareOp
from omnigraph.model.catalog import (
    DST_COLUMN,
    ID_COLUMN,
    SRC_COLUMN,
    EdgeType,
    NodeType,
    Property,
)
from omnigraph.model.temporal import RANGE as CALENDAR
from omnigraph.model.temporal import has_outside, outside, python_values
from omnigraph.model.types import NUMERIC_KINDS, STRING, Kind, ValueType
from omnigraph.rows.coercion import Fitted, fit
from omnigraph.rows.columns import combined, to_column
from omnigraph.rows.findings import Findings, Numbers, Origin, shown

TableType: TypeAlias = NodeType | EdgeType
Column: TypeAlias = pa.Array | pa.ChunkedArray

TYPE = "type"
REQUIRED = "required"
UNKNOWN = "unknown"
ENUM = "enum"
RANGE = "range"
CHECK = "check"
_KINDS = {ValueType(kind).to_arrow(): kind for kind in NUMERIC_KINDS}
_KERNELS = {
    CompareOp.LT: pc.less,
    CompareOp.LE: pc.less_equal,
    CompareOp.GT: pc.greater,
    CompareOp.GE: pc.greater_equal,
}


def check_rows(
    table: TableType,
    data: pa.Table,
    origin: Origin,
    findings: Findings,
    *,
    fill_nulls: bool = True,
) -> pa.Table:
    """Rows with properties by name, in the physical columns of their type. `id`, and for edges
    `src` and `dst`, are passed on as text, null where they are missing.

    A default stands in for a property that is left out. Where an input cannot tell that from a
    null, as most cannot, it stands in for nulls too (`fill_nulls`).
    """
    checker = _Checker(table, origin, findings)
    checker.refuse_unknown(data)
    columns: dict[str, Column] = {}
    for name in system_columns(table):
        columns[name], _ = checker.typed(data, name, STRING)
    for item in table.properties:
        column, misfits = checker.typed(data, item.name, item.type)
        fill = fill_nulls or item.name not in data.column_names
        if item.has_default and column.null_count and fill:
            column = pc.fill_null(column, pa.scalar(default_value(item), column.type))
        # A value of the wrong type is reported once, not as missing too.
        checker.require(item, column, besides=misfits)
        columns[item.column] = column
    rows = pa.table(columns)
    checker.check_rules(rows)
    return rows


def check_values(table: TableType, rows: pa.Table, origin: Origin, findings: Findings) -> None:
    """Required properties, enums, ranges and patterns, for rows in physical columns."""
    checker = _Checker(table, origin, findings)
    for item in table.properties:
        checker.require(item, rows.column(item.column))
    checker.check_rules(rows)


def system_columns(table: TableType) -> tuple[str, ...]:
    ends = (SRC_COLUMN, DST_COLUMN) if isinstance(table, EdgeType) else ()
    return (ID_COLUMN, *ends)


@lru_cache(maxsize=1024)
def logical_schema(table: TableType) -> pa.Schema:
    """The physical columns of a type, in plain Arrow types."""
    system = [pa.field(name, pa.string()) for name in system_columns(table)]
    return pa.schema([*system, *(pa.field(p.column, p.type.to_arrow()) for p in table.properties)])


def default_value(item: Property) -> Any:
    """A property's default in the Python type that Arrow takes for it."""
    if item.type.kind is Kind.DATE:
        return date.fromisoformat(str(item.default))
    if item.type.kind is Kind.DATETIME:
        return datetime.fromisoformat(str(item.default)).astimezone(UTC)
    return item.default


def matches_pattern(column: Column, pattern: str) -> Column:
    """Where a pattern is found in the values of a column; null where there is no value."""
    return pc.match_substring_regex(column, pattern)


class _Checker:
    """The checks of one batch of one type."""

    def __init__(self, table: TableType, origin: Origin, findings: Findings) -> None:
        self._table = table
        self._origin = origin
        self._findings = findings

    def refuse_unknown(self, data: pa.Table) -> None:
        known = {*system_columns(self._table), *self._table.by_name}
        for name in data.column_names:
            if name not in known:
                message = f"{self._table.name} has no property {name!r}"
                violation = Violation(UNKNOWN, message, self._table.name, name)
                used = _places(pc.is_valid(data.column(name)))
                self._findings.add_each(used, self._origin, violation)
                if not len(used):
                    self._findings.add(violation)

    def typed(self, data: pa.Table, name: str, type_: ValueType) -> tuple[pa.Array, Numbers]:
        """A column in its type, and the rows whose values had another."""
        if name not in data.column_names:
            return pa.nulls(data.num_rows, type_.to_arrow()), np.empty(0, np.int64)
        column, misfits = to_column(data.column(name), type_)
        found = {misfit.row: misfit for misfit in misfits}
        rows = np.array(sorted(found), np.int64)
        self._findings.add_rows(
            rows,
            self._origin,
            lambda row: Violation(
                TYPE, found[row].reason, self._table.name, name, shown(found[row].value)
            ),
        )
        return column, rows

    def require(self, item: Property, column: Column, besides: Numbers | None = None) -> None:
        if item.type.nullable or not column.null_count:
            return
        places = _places(pc.is_null(column))
        if besides is not None and len(besides):
            places = np.setdiff1d(places, besides)
        message = f"{item.name} is required"
        if item.embed is not None:
            message += (
                f" and not made from {item.embed.source}: give it, configure an embedding provider"
                " (OMNIGRAPH_EMBED_PROVIDER), or make it optional in the schema"
            )
        violation = Violation(REQUIRED, message, self._table.name, item.name)
        self._findings.add_each(places, self._origin, violation)

    def check_rules(self, rows: pa.Table) -> None:
        for item in self._table.properties:
            if item.type.enum:
                self._check_enum(item, rows.column(item.column))
            if (item.type.item or item.type.kind) in (Kind.DATE, Kind.DATETIME):
                self._check_calendar(item, rows.column(item.column))
        if isinstance(self._table, NodeType):
            self._check_ranges(self._table, rows)
            self._check_patterns(self._table, rows)

    def _check_enum(self, item: Property, column: Column) -> None:
        allowed = item.type.enum
        known = pc.is_in(column, value_set=pa.array(allowed, pa.string()))
        wrong = pc.and_(pc.is_valid(column), pc.invert(known))
        listed = ", ".join(allowed[:10]) + (", …" if len(allowed) > 10 else "")
        self._report(item, column, wrong, ENUM, f"must be one of {listed}")

    def _check_calendar(self, item: Property, column: Column) -> None:
        """No date or time outside the calendar; values from outside were checked before."""
        if item.type.kind is not Kind.LIST:
            wrong = outside(column)
        else:
            items = pc.list_flatten(column)
            if not has_outside(items):
                return
            bad = pc.list_parent_indices(column).filter(outside(items))
            wrong = pc.is_in(pa.array(np.arange(len(column))), value_set=combined(bad))
        self._report(item, column, wrong, RANGE, f"must be in {CALENDAR}")

    def _check_ranges(self, table: NodeType, rows: pa.Table) -> None:
        for rule in table.ranges:
            item = table.by_name[rule.property]
            column = rows.column(item.column)
            if rule.minimum is not None:
                below = is_beyond(CompareOp.LT, column, rule.minimum)
                self._report(item, column, below, RANGE, f"must be at least {rule.minimum}")
            if rule.maximum is not None:
                above = is_beyond(CompareOp.GT, column, rule.maximum)
                self._report(item, column, above, RANGE, f"must be at most {rule.maximum}")

    def _check_patterns(self, table: NodeType, rows: pa.Table) -> None:
        for rule in table.checks:
            item = table.by_name[rule.property]
            column = rows.column(item.column)
            wrong = pc.invert(matches_pattern(column, rule.pattern))
            self._report(item, column, wrong, CHECK, f"must match {rule.pattern!r}")

    def _report(self, item: Property, column: Column, wrong: Column, rule: str, must: str) -> None:
        places = _places(wrong)
        self._findings.add_rows(
            places,
            self._origin,
            lambda row: Violation(
                rule,
                f"{item.name} {must}",
                self._table.name,
                item.name,
                shown(python_values(column.slice(row, 1))[0]),
            ),
        )


def is_beyond(op: CompareOp, column: Column, bound: int | float) -> Column:
    """Whether each value is below (`<`) or above (`>`) a bound, by exact numbers; null for null."""
    question = fit(op, _KINDS[column.type], bound)
    if isinstance(question, Fitted):
        limit = pa.scalar(question.value, column.type)
        return _KERNELS[question.op](column, limit)
    return pc.if_else(pc.is_valid(column), question, pa.scalar(None, pa.bool_()))


def _places(mask: Column) -> Numbers:
    """The rows where a mask holds; null is no."""
    if not pc.any(mask, min_count=0).as_py():
        return np.empty(0, np.int64)
    filled = pc.fill_null(mask, False)
    if isinstance(filled, pa.ChunkedArray):
        filled = filled.combine_chunks()
    return np.flatnonzero(filled.to_numpy(zero_copy_only=False))
