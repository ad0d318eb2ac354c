"""Graphs for tests of writing: a schema with every kind of constraint, and ways to look at it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import omnigraph
from omnigraph.engines.embedded.view import View
from omnigraph.graph import Graph
from omnigraph.storage.root import GraphRoot

SCHEMA = """
node Person {
    name: String @key
    age: I32?
    email: String? @unique
    mood: enum(glad, sad) @default("glad")
    @range(age, 0..150)
}
node Event {
    day: Date
    slot: I32
    title: String?
    at: DateTime?
    @key(day, slot)
}
node Counter { number: I64 @key
    value: I64 @default(0) }
node Note {
    text: String
    stars: F32?
    photo: Blob?
    place: String?
    floor: I32?
    @unique(place, floor)
}
edge Knows: Person -> Person { since: Date?
    how: String? @unique }
edge Wrote: Person -> Note @card(0..2)
edge Attends: Person -> Event @card(1..3)
edge Counts: Person -> Counter
"""


def new_graph(path: Path, schema: str = SCHEMA, actor: str = "act-anna") -> Graph:
    return omnigraph.init(str(path / "graph"), schema, actor=actor)


def another(graph: Graph) -> Graph:
    """A second handle that shares nothing with the first but the files."""
    return omnigraph.open(graph.uri, actor=graph.actor)


def rows(graph: Graph, type_name: str) -> list[dict[str, Any]]:
    """Every row of a type, by id, without properties that are null."""
    snapshot = graph.snapshot()
    table = snapshot.catalog.node(type_name) or snapshot.catalog.edge(type_name)
    assert table is not None
    found = View(GraphRoot.at(graph.uri), snapshot).select(table).to_pylist()
    plain = [{k: v for k, v in row.items() if v is not None} for row in found]
    return sorted(plain, key=lambda row: str(row["id"]))


def values(graph: Graph, type_name: str, name: str) -> dict[str, Any]:
    """One property of every row, by id."""
    return {row["id"]: row.get(name) for row in rows(graph, type_name)}


def ids(graph: Graph, type_name: str) -> list[str]:
    return [row["id"] for row in rows(graph, type_name)]


def heads(graph: Graph) -> dict[str, tuple[int, int]]:
    """Version and row count of every table that was ever written."""
    snapshot = graph.snapshot()
    return {
        table.name: (version.version, version.rows)
        for table in snapshot.catalog.tables()
        if (version := snapshot.table(table.id)) is not None
    }
