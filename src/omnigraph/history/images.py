"""Comparison of rows of one type by value.

Guarantees: an entity is reported when some property of the newer type, or an end, has another
value; properties are the same when their ids are, whatever they are called; both sides come out
sorted by id with all columns of either type.
Deliberately absent: where the rows come from.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import InvalidDataError
from omnigraph.model.catalog import DST_COLUMN, ID_COLUMN, SRC_COLUMN, EdgeType, NodeType, TableKind
from omnigraph.model.equality import same_columns
from omnigraph.model.types import Kind
from omnigraph.storage.versiondiff import ROW_ADDRESS, ROW_ID

TableType = NodeType | EdgeType


@dataclass(frozen=True)
class TypePair:
    """One type as the older and the newer side know it; None where a side does not have it."""

    older: TableType | None
    newer: TableType | None

    @property
    def shown(self) -> TableType:
        """The type as a reader of the newer side would name it."""
        found = self.newer or self.older
        assert found is not None
        return found

    @staticmethod
    def both(table: TableType) -> TypePair:
        return TypePair(table, table)


@dataclass(frozen=True)
class TableDiff:
    """The entities of one type that differ, sorted by id, in physical columns, with row ids and
    addresses.

    `before` holds those that were updated or deleted as they were, `after` those that were inserted
    or updated as they are. `rewritten` are entities that are the same in new rows: no difference,
    but their position has changed; only the position is needed.
    """

    types: TypePair
    before: pa.Table
    after: pa.Table
    rewritten: pa.Table

    @property
    def is_empty(self) -> bool:
        return bool(self.before.num_rows == 0 and self.after.num_rows == 0)


def wanted_columns(types: TypePair) -> list[str]:
    """All physical columns of either side that must be read."""
    spelled = _spelled_by_id(types)
    return [name for name in _column_types(types) if name != spelled]


def compare(types: TypePair, older: pa.Table, newer: pa.Table) -> TableDiff:
    """Drop the entities that are alike on both sides."""
    older, newer = aligned(types, older), aligned(types, newer)
    if older.num_rows == 0 or newer.num_rows == 0:
        return TableDiff(types, older, newer, newer.slice(0, 0))
    place = pc.index_in(newer.column(ID_COLUMN), older.column(ID_COLUMN).combine_chunks())
    found = place.combine_chunks()
    in_newer = np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False))
    in_older = found.drop_null().to_numpy().astype(np.int64)
    left, right = older.take(pa.array(in_older)), newer.take(pa.array(in_newer))
    alike = np.ones(len(in_newer), bool)
    for name in _compared_columns(types):
        alike &= same_columns(left.column(name), right.column(name))
    keep_newer = np.ones(newer.num_rows, bool)
    keep_older = np.ones(older.num_rows, bool)
    keep_newer[in_newer[alike]] = False
    keep_older[in_older[alike]] = False
    return TableDiff(
        types,
        older.filter(pa.array(keep_older)),
        newer.filter(pa.array(keep_newer)),
        newer.filter(pa.array(~keep_newer)),
    )


def restrict(diff: TableDiff, ids: Set[str]) -> TableDiff:
    """The part of a difference that is about some entities."""
    chosen = pa.array(sorted(ids), pa.string())
    before, after = (
        rows.filter(pc.is_in(rows.column(ID_COLUMN), value_set=chosen))
        for rows in (diff.before, diff.after)
    )
    return TableDiff(diff.types, before, after, diff.rewritten)


def _compared_columns(types: TypePair) -> list[str]:
    """What makes an entity another: its ends and the properties that the newer side knows."""
    chosen = types.newer or types.older
    assert chosen is not None
    return [*_ends(chosen), *(item.column for item in chosen.properties)]


def aligned(types: TypePair, rows: pa.Table) -> pa.Table:
    """All columns of the pair, sorted by id; a column that a version lacks is null."""
    columns = {}
    numbers = {ROW_ID: pa.uint64(), ROW_ADDRESS: pa.uint64()}
    spelled = _spelled_by_id(types)
    for name, kind in {**_column_types(types), **numbers}.items():
        if name == spelled:
            columns[name] = rows.column(ID_COLUMN).cast(kind)
        elif name in rows.column_names:
            columns[name] = _cast(types.shown, rows.column(name), name, kind)
        else:
            columns[name] = pa.nulls(rows.num_rows, kind)
    return pa.table(columns).sort_by(ID_COLUMN)


def _column_types(types: TypePair) -> dict[str, pa.DataType]:
    found = {name: pa.string() for name in (ID_COLUMN, *_ends(types.shown))}
    for table in (types.older, types.newer):
        for item in () if table is None else table.properties:
            known, kind = found.get(item.column), item.type.to_arrow()
            found[item.column] = kind if known is None else _wider(known, kind)
    return found


def _wider(older: pa.DataType, newer: pa.DataType) -> pa.DataType:
    """A type that holds the values of both; types of a property only ever differ in width."""
    numbers = all(pa.types.is_integer(t) or pa.types.is_floating(t) for t in (older, newer))
    return older if numbers and older.bit_width > newer.bit_width else newer


def _cast(
    table: TableType, column: pa.ChunkedArray, name: str, kind: pa.DataType
) -> pa.ChunkedArray:
    try:
        return column.cast(kind)
    except pa.ArrowInvalid:
        item = next(item for item in table.properties if item.column == name)
        raise InvalidDataError(
            f"{table.name}.{item.name} holds a value that does not fit into {item.type}.",
            hint="Widen the type of the property first; its values were written in a wider one.",
        ) from None


def _spelled_by_id(types: TypePair) -> str | None:
    """The column that says the same as the id, and need not be read: a key of one string. Keys
    are never added to a type later, so that rows of all versions between two obey it as well."""
    columns = {_string_key(table) for table in (types.older, types.newer) if table is not None}
    return columns.pop() if len(columns) == 1 else None


def _string_key(table: TableType) -> str | None:
    keys = table.key if isinstance(table, NodeType) else ()
    if len(keys) != 1:
        return None
    found = table.by_name[keys[0]]
    return found.column if found.type.kind is Kind.STRING else None


def _ends(table: TableType) -> tuple[str, ...]:
    return (SRC_COLUMN, DST_COLUMN) if table.kind is TableKind.EDGE else ()
