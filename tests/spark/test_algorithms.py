"""Algorithms against networkx on random graphs."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import networkx as nx
import pytest
from networkx.algorithms.link_analysis.pagerank_alg import _pagerank_python

import omnigraph
from omnigraph.errors import InvalidArgumentError
from omnigraph.graph import Graph
from omnigraph.operations.algorithm import AlgorithmOptions

SCHEMA = """
node City {
    name: String @key
    score: F64?
    size: I32?
}
edge Road: City -> City {
    length: F64
}
"""
NODES = 30


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, spark: Any) -> tuple[Graph, Any]:
    chance = random.Random(3)
    names = [f"c{number:02d}" for number in range(NODES)]
    roads = [(chance.choice(names[:24]), chance.choice(names[:24])) for _ in range(55)]
    roads += [("c25", "c26"), ("c27", "c27"), ("c01", "c02"), ("c01", "c02")]
    graph = omnigraph.init(str(tmp_path_factory.mktemp("algorithms") / "g"), SCHEMA)
    peer = nx.MultiDiGraph()
    peer.add_nodes_from(names)
    records: list[Any] = [{"type": "City", "data": {"name": name}} for name in names]
    for src, dst in roads:
        length = float(chance.randrange(1, 9))
        peer.add_edge(src, dst, weight=length)
        records.append({"edge": "Road", "from": src, "to": dst, "data": {"length": length}})
    graph.ingest(records)
    return graph, peer


def values(graph: Graph, name: str, column: str, **options: Any) -> dict[str, Any]:
    rows = graph.algorithm(name, AlgorithmOptions(**options)).collect()
    assert {row["type"] for row in rows} == {"City"}
    assert len(rows) == NODES
    return {row["id"]: row[column] for row in rows}


def simple(peer: Any) -> Any:
    plain = nx.Graph(peer.to_undirected())
    plain.remove_edges_from(list(nx.selfloop_edges(plain)))
    return plain


def test_degrees_and_triangles_and_cores(made: tuple[Graph, Any]) -> None:
    graph, peer = made
    assert values(graph, "degree", "degree") == dict(peer.degree())
    assert values(graph, "degree", "in_degree") == dict(peer.in_degree())
    assert values(graph, "triangles", "triangles") == nx.triangles(simple(peer))
    assert values(graph, "core", "core") == nx.core_number(simple(peer))


def test_components(made: tuple[Graph, Any]) -> None:
    graph, peer = made
    expected = {
        node: f"City/{min(part)}" for part in nx.weakly_connected_components(peer) for node in part
    }
    assert values(graph, "components", "component") == expected


def test_pagerank(made: tuple[Graph, Any]) -> None:
    graph, peer = made
    for weighted in (False, True):
        plain = nx.DiGraph()
        plain.add_nodes_from(peer)
        for src, dst, data in peer.edges(data=True):
            more = data["weight"] if weighted else 1.0
            held = plain.get_edge_data(src, dst, {"weight": 0.0})["weight"]
            plain.add_edge(src, dst, weight=held + more)
        # The public function of networkx needs scipy; this is the same in plain Python.
        assert power(plain, 200) == pytest.approx(_pagerank_python(plain, tol=1e-10), abs=1e-8)
        options = {"weight": "length"} if weighted else {}
        found = values(graph, "pagerank", "pagerank", tolerance=0.0, rounds=5, **options)
        assert found == pytest.approx(power(plain, 5), abs=1e-12)


def power(graph: Any, rounds: int) -> dict[str, float]:
    """So many rounds of PageRank from equal ranks on."""
    ranks = dict.fromkeys(graph, 1.0 / len(graph))
    out = {node: sum(d["weight"] for _, _, d in graph.out_edges(node, data=True)) for node in graph}
    for _ in range(rounds):
        loose = sum(rank for node, rank in ranks.items() if not out[node])
        after = dict.fromkeys(graph, (0.15 + 0.85 * loose) / len(graph))
        for src, dst, data in graph.edges(data=True):
            after[dst] += 0.85 * ranks[src] * data["weight"] / out[src]
        ranks = after
    return ranks


def test_shortest_paths(made: tuple[Graph, Any]) -> None:
    graph, peer = made
    hops = nx.single_source_shortest_path_length(peer, "c01")
    found = values(graph, "paths", "distance", sources=("City/c01",))
    assert {k: v for k, v in found.items() if v is not None} == hops
    lengths = nx.single_source_dijkstra_path_length(peer.to_undirected(), "c01")
    found = values(
        graph, "paths", "distance", sources=("City/c01",), weight="length", directed=False
    )
    assert {k: v for k, v in found.items() if v is not None} == lengths
    with pytest.raises(InvalidArgumentError, match="start from"):
        graph.algorithm("paths")


def favourite(votes: Counter[str]) -> str | None:
    return min(((-count, label) for label, count in votes.items()), default=(0, None))[1]


def test_labels(made: tuple[Graph, Any]) -> None:
    graph, peer = made
    plain = simple(peer)
    labels = {node: f"City/{node}" for node in plain}
    for _ in range(4):
        votes = {n: Counter(labels[m] for m in plain[n]) for n in plain}
        labels = {n: favourite(votes[n]) or labels[n] for n in plain}
    assert values(graph, "labels", "label", rounds=4) == labels


def test_results_are_kept_in_one_commit(made: tuple[Graph, Any]) -> None:
    graph, peer = made
    branch = graph.create_branch("scored")
    before = len(list(branch.commits()))
    result = branch.write_algorithm("degree", "score")
    assert result.affected["City"].updated == NODES
    assert len(list(branch.commits())) == before + 1
    question = "query q() { match { $c: City } return { $c.name, $c.score } }"
    rows = branch.query(question).rows()
    found = {
        row["c.name"] if "c.name" in row else row["name"]: list(row.values())[1] for row in rows
    }
    assert found == {name: float(degree) for name, degree in peer.degree()}
    with pytest.raises(InvalidArgumentError, match="No node type"):
        branch.write_algorithm("degree", "nothing")
    with pytest.raises(InvalidArgumentError, match=r"gives texts, and City.score is F64"):
        branch.write_algorithm("components", "score")
    with pytest.raises(InvalidArgumentError, match=r"gives fractions, and City.size is I32"):
        branch.write_algorithm("pagerank", "size")
    assert branch.write_algorithm("triangles", "size").affected["City"].updated == NODES
    with pytest.raises(InvalidArgumentError, match="no algorithm"):
        branch.algorithm("magic")
