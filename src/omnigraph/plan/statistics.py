"""Statistics for the planner: row counts and indexed properties.

Counts are rounded before any rule sees them, so that a few new rows change no plan and a cached
plan is the plan that planning again would give; equal statistics compare equal.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from omnigraph.model.catalog import Catalog, NodeType
from omnigraph.model.snapshot import Snapshot

# Steps per doubling: counts within about 19 % of each other look the same to the planner.
_STEPS = 4


@dataclass(frozen=True)
class Statistics:
    """Rounded row counts by type name, and (type name, property name) pairs with an index."""

    nodes: tuple[tuple[str, int], ...]
    edges: tuple[tuple[str, int], ...]
    indexed: frozenset[tuple[str, str]] = frozenset()

    def node_rows(self, types: Iterable[str]) -> int:
        known = dict(self.nodes)
        return sum(known.get(name, 0) for name in types)

    def edge_rows(self, name: str) -> int:
        return dict(self.edges).get(name, 0)

    def has_index(self, types: Iterable[str], name: str) -> bool:
        return all((type_name, name) in self.indexed for type_name in types)


def rounded(rows: int) -> int:
    """The nearest of a few numbers per doubling; zero stays zero."""
    if rows <= 0:
        return 0
    return max(1, round(2 ** (round(math.log2(rows) * _STEPS) / _STEPS)))


def from_counts(
    nodes: Mapping[str, int],
    edges: Mapping[str, int],
    indexed: Iterable[tuple[str, str]] = (),
) -> Statistics:
    return Statistics(
        tuple((name, rounded(rows)) for name, rows in nodes.items()),
        tuple((name, rounded(rows)) for name, rows in edges.items()),
        frozenset(indexed),
    )


def from_snapshot(snapshot: Snapshot, indexed: Iterable[tuple[str, str]] = ()) -> Statistics:
    """Statistics from the row counts that a snapshot carries itself."""
    return from_counts(
        {t.name: _rows(snapshot, t.id) for t in snapshot.catalog.nodes},
        {t.name: _rows(snapshot, t.id) for t in snapshot.catalog.edges},
        indexed,
    )


def declared_indexes(catalog: Catalog) -> frozenset[tuple[str, str]]:
    """The indexes that a schema asks for: ids, edge ends, and what it marks itself."""
    found: set[tuple[str, str]] = set()
    for table in catalog.tables():
        found.add((table.name, "id"))
        found |= {(table.name, names[0]) for names in (*table.indexes, *table.uniques)}
        if isinstance(table, NodeType):
            found |= {(table.name, name) for name in table.key}
        else:
            found |= {(table.name, "src"), (table.name, "dst")}
    return frozenset(found)


def _rows(snapshot: Snapshot, table_id: int) -> int:
    version = snapshot.table(table_id)
    return 0 if version is None else version.rows
