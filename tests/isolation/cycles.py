"""Cycles of dependencies, and what each is called.

    G0              appends of two transactions in both orders: ww only
    G1c             circular information flow: ww and wr
    G-single        read skew: exactly one rw
    G-nonadjacent   several rw, none next to another: snapshot isolation forbids it
    G2              write skew, and every other cycle with rw

Each is looked for first among data dependencies alone, then with session edges ("-session"), then
with real-time edges ("-realtime"). The members of a cycle are reported once, under the first name
that fits: names go from the worst anomaly to the mildest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import networkx as nx
from tests.isolation.dependencies import CLOCK, RW, SESSION, TIME, WR, WW, Edges
from tests.isolation.history import Anomaly

G0, G1C, G_SINGLE, G_NONADJACENT, G2 = "G0", "G1c", "G-single", "G-nonadjacent", "G2"
ORDERED: dict[str, set[str]] = {"": set(), "-session": {SESSION}, "-realtime": {TIME}}
Digraph = Any
Cycle = list[str]


def find_cycles(edges: Edges) -> Iterator[Anomaly]:
    reported: set[str] = set()
    for suffix, ordering in ORDERED.items():
        graph = _labelled(edges, {WW, WR, RW} | ordering)
        for component in nx.strongly_connected_components(graph):
            if len(component) == 1 or component & reported:
                continue
            kind, cycle = _classify(graph.subgraph(component), ordering)
            reported |= component
            names = tuple(name for name in cycle if not name.startswith(CLOCK))
            yield Anomaly(kind + suffix, names, _describe(graph, cycle))


def _labelled(edges: Edges, allowed: set[str]) -> Digraph:
    graph = nx.DiGraph()
    for before, after in edges.items():
        for there, labels in after.items():
            if labels & allowed:
                graph.add_edge(before, there, labels=labels & allowed)
    return graph


def _classify(graph: Digraph, ordering: set[str]) -> tuple[str, Cycle]:
    writes = _only(graph, {WW} | ordering)
    flows = _only(graph, {WW, WR} | ordering)
    searches: tuple[tuple[str, Callable[[], Cycle | None]], ...] = (
        (G0, lambda: _any_cycle(writes)),
        (G1C, lambda: _any_cycle(flows)),
        (G_SINGLE, lambda: _through_rw(graph, flows)),
        (G_NONADJACENT, lambda: _nonadjacent(graph, flows)),
        (G2, lambda: _through_rw(graph, graph)),
    )
    for kind, search in searches:
        cycle = search()
        if cycle:
            return kind, cycle
    raise AssertionError("a strongly connected component without a cycle")


def _only(graph: Digraph, labels: set[str]) -> Digraph:
    return nx.subgraph_view(graph, filter_edge=lambda a, b: graph[a][b]["labels"] & labels)


def _any_cycle(graph: Digraph) -> Cycle | None:
    try:
        return [edge[0] for edge in nx.find_cycle(graph)]
    except nx.NetworkXNoCycle:
        return None


def _anti_dependencies(graph: Digraph) -> Iterator[tuple[str, str]]:
    return ((a, b) for a, b, labels in sorted(graph.edges(data="labels")) if RW in labels)


def _through_rw(graph: Digraph, rest: Digraph) -> Cycle | None:
    """A cycle of one rw edge and a path back over `rest`."""
    for a, b in _anti_dependencies(graph):
        if nx.has_path(rest, b, a):
            path: Cycle = nx.shortest_path(rest, b, a)
            return [a, *path[:-1]]
    return None


def _nonadjacent(graph: Digraph, flows: Digraph) -> Cycle | None:
    """A path back on which no rw follows another, nor the first one: each node is doubled, by
    whether it was reached by rw, and only the half that was not may be left by rw."""
    doubled = nx.DiGraph()
    for a, b in flows.edges:
        doubled.add_edge((a, False), (b, False))
        doubled.add_edge((a, True), (b, False))
    for a, b in _anti_dependencies(graph):
        doubled.add_edge((a, False), (b, True))
    for a, b in _anti_dependencies(graph):
        start, goal = (b, True), (a, False)
        if start in doubled and goal in doubled and nx.has_path(doubled, start, goal):
            return [a, *(node for node, _ in nx.shortest_path(doubled, start, goal)[:-1])]
    return None


def _describe(graph: Digraph, cycle: Cycle) -> str:
    following = [*cycle[1:], cycle[0]]
    return " ".join(
        "/".join(sorted(graph[a][b]["labels"])) for a, b in zip(cycle, following, strict=True)
    )
