"""Set checks: constraints between rows, as values that every engine can evaluate.

    checks = set_checks(catalog, delta)

Each check names the rows of the delta that it looks at and the committed rows that it needs, so
that its cost follows the delta. An engine runs them against a snapshot (`engines.*.integrity`);
the tables that they read are what the write must be fenced by.

- `FreeId`: strictly inserted rows have ids that do not exist.
- `Unique`: no two rows of a table share a key over the given properties; null is exempt.
- `Endpoint`: the node at one end of each edge exists, in the delta or committed.
- `Attached`: no edge is left pointing to a node that goes.
- `Count`: a node whose edges change has as many of them afterwards as `@card` allows.

Guarantees: derived from catalog and delta alone; in a fixed order.
Deliberately absent: evaluation, and repeated ids within one input (`distinct_ids`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import Violation
from omnigraph.model.catalog import DST_COLUMN, ID_COLUMN, SRC_COLUMN, Catalog, EdgeType, NodeType
from omnigraph.rows.checks import TableType
from omnigraph.rows.columns import combined
from omnigraph.rows.deltas import Delta, TableDelta
from omnigraph.rows.findings import Findings, Numbers, Origin, shown

KEY = "key"
UNIQUE = "unique"
ENDPOINT = "endpoint"
CARDINALITY = "cardinality"


@dataclass(frozen=True, slots=True)
class FreeId:
    table: TableType


@dataclass(frozen=True, slots=True)
class Unique:
    table: TableType
    properties: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        # The ends of an edge are no properties; their columns go by their own names.
        found = ((self.table.get(name), name) for name in self.properties)
        return tuple(item.column if item else name for item, name in found)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """`column` is `src` or `dst`."""

    edge: EdgeType
    column: str
    node: NodeType


@dataclass(frozen=True, slots=True)
class Attached:
    node: NodeType
    edge: EdgeType
    column: str


@dataclass(frozen=True, slots=True)
class Count:
    edge: EdgeType
    node: NodeType


SetCheck: TypeAlias = FreeId | Unique | Endpoint | Attached | Count


def set_checks(catalog: Catalog, delta: Delta) -> tuple[SetCheck, ...]:
    """Everything that must be asked of committed rows before this delta may stand."""
    found: list[SetCheck] = []
    for change in delta.values():
        found += _own_checks(change)
    for change in delta.values():
        found += _edge_checks(catalog, change)
    return tuple(found)


def _own_checks(change: TableDelta) -> Iterator[SetCheck]:
    if change.rows.num_rows:
        if change.strict and not (change.replaces or change.fresh):
            yield FreeId(change.table)
        for properties in change.table.uniques:
            yield Unique(change.table, properties)


def _edge_checks(catalog: Catalog, change: TableDelta) -> Iterator[SetCheck]:
    if isinstance(change.table, NodeType):
        if (change.replaces or len(change.removed)) and not change.cascaded:
            for edge in catalog.edges_of(change.table.name):
                for column in ends_at(edge, change.table.name):
                    yield Attached(change.table, edge, column)
        return
    edge = change.table
    if change.rows.num_rows:
        for column in (SRC_COLUMN, DST_COLUMN):
            yield Endpoint(edge, column, end_type(catalog, edge, column))
    if not edge.cardinality.is_default:
        yield Count(edge, end_type(catalog, edge, SRC_COLUMN))


def ends_at(edge: EdgeType, node_type: str) -> tuple[str, ...]:
    """The columns of an edge type that hold ids of a node type."""
    ends = ((SRC_COLUMN, edge.src_type), (DST_COLUMN, edge.dst_type))
    return tuple(column for column, name in ends if name == node_type)


def end_type(catalog: Catalog, edge: EdgeType, column: str) -> NodeType:
    node = catalog.node(edge.src_type if column == SRC_COLUMN else edge.dst_type)
    assert node is not None  # the schema compiler saw to it
    return node


# Repeated ids within one input.


def distinct_ids(table: TableType, rows: pa.Table, origin: Origin, findings: Findings) -> None:
    """Report every row whose id an earlier row of the input has already."""
    ids = combined(rows.column(ID_COLUMN))
    later, firsts = repeats(ids)
    first_of = dict(zip(later.tolist(), firsts.tolist(), strict=True))
    findings.add_rows(
        later,
        origin,
        lambda row: Violation(
            KEY,
            f"the id {shown(ids[row].as_py())!r} is that of record "
            f"{origin.record(first_of[row])} too",
            table.name,
            ID_COLUMN,
            shown(ids[row].as_py()),
        ),
    )


def last_of_each(rows: pa.Table, origin: Origin) -> tuple[pa.Table, Origin]:
    """Of rows with the same id only the last, in the order of their records."""
    ids = combined(rows.column(ID_COLUMN))
    if pc.count_distinct(ids).as_py() == len(ids):
        return rows, origin
    records = np.arange(len(ids)) if origin.records is None else origin.records
    newest_first = np.argsort(records, kind="stable")[::-1]
    encoded = ids.take(pa.array(newest_first)).dictionary_encode()
    _, firsts = np.unique(encoded.indices.to_numpy(), return_index=True)
    kept = np.sort(newest_first[firsts])
    return rows.take(pa.array(kept)), origin.take(kept)


def repeats(keys: pa.Array) -> tuple[Numbers, Numbers]:
    """Rows whose key (null is none) occurred before, and for each the row where it first did."""
    if len(keys) < 2 or pc.count_distinct(keys).as_py() + keys.null_count == len(keys):
        return _NONE, _NONE
    codes = keys.dictionary_encode().indices
    known = np.flatnonzero(pc.is_valid(codes).to_numpy(zero_copy_only=False))
    values = codes.drop_null().to_numpy(zero_copy_only=False)
    _, firsts, group = np.unique(values, return_index=True, return_inverse=True)
    first_of_row = firsts[group]
    later = np.flatnonzero(first_of_row != np.arange(len(values)))
    return known[later], known[first_of_row[later]]


_NONE: Numbers = np.empty(0, np.int64)
