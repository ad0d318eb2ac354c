"""Scenes of schema changes and maintenance, run by name in children of the nursery."""

from __future__ import annotations

from datetime import timedelta

from tests.support.schemachanges import CHANGES, apply, new_graph

import omnigraph
from omnigraph.graph import Graph

MAINTENANCE = ("optimize", "ensure indices", "cleanup", "repair")


def evolve(name: str, uri: str) -> str:
    apply(uri, name)
    return "done"


def keep_up(name: str, uri: str) -> str:
    maintain(omnigraph.open(uri), name)
    return "done"


def maintain(graph: Graph, name: str) -> None:
    if name == "optimize":
        graph.optimize()
    elif name == "ensure indices":
        graph.ensure_indices()
    elif name == "cleanup":
        graph.cleanup(keep=1, grace=timedelta(0), confirm=True)
    else:
        graph.repair(confirm=True)


def untidy_graph(uri: str, *, drift: bool = False) -> Graph:
    """A graph with small files, deleted rows, old versions, a fork and a deleted branch."""
    import lance

    graph = new_graph(uri)
    for n in range(5):
        graph.ingest([{"type": "City", "data": {"id": f"n{n}", "title": f"t{n}"}}], "merge")
    graph.mutate('query d() { delete City where title = "city 1" }')
    graph.create_branch("side").ingest([{"type": "City", "data": {"id": "s", "title": "s"}}])
    graph.create_branch("gone").ingest([{"type": "City", "data": {"id": "g", "title": "g"}}])
    graph.delete_branch("gone")
    if drift:
        snapshot = graph.snapshot()
        table = snapshot.catalog.node("City")
        assert table is not None
        version = snapshot.tables[table.id]
        lance.dataset(f"{uri}/{version.path}").create_scalar_index("size", "BTREE")
    return graph


NAMES = tuple(CHANGES)
