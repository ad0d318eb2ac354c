"""Edges without ids: a merge that adds them says so, and with an edge key it recognizes them."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import omnigraph
from omnigraph.cli.main import app
from omnigraph.errors import InvalidArgumentError, InvalidDataError, KeyConflictError
from omnigraph.graph import Graph
from omnigraph.operations import load as loading
from omnigraph.operations.transfer import import_graph

SCHEMA = """
node P { name: String @key }
edge Knows: P -> P { since: Date?  how: String? }
edge Once: P -> P { @unique(src, dst) }
"""
PEOPLE = [{"type": "P", "data": {"name": name}} for name in ("ann", "bob", "cy")]
EDGES = [
    {"edge": "Knows", "from": "ann", "to": "bob", "data": {"how": "work"}},
    {"edge": "Knows", "from": "bob", "to": "cy", "data": {"how": "school"}},
]


@pytest.fixture
def graph(tmp_path) -> Graph:
    return omnigraph.init(str(tmp_path / "g"), SCHEMA)


@pytest.fixture(params=["ingest", "embedded", "spark"])
def merge(request, graph, tmp_path):
    """One way to merge records: all three must do the same."""

    def merge(records, mode="merge", **options):
        file = tmp_path / "data.jsonl"
        file.write_text("\n".join(json.dumps(record) for record in records))
        if request.param == "ingest":
            return graph.ingest(str(file), mode, **options)
        return graph.load(str(file), mode, engine=request.param, **options)

    return merge


def edges(graph: Graph) -> list[tuple]:
    found = graph.query(
        "query q() { match { $a: P  $b: P  $a $k:knows $b } return { $a.name, $b.name, $k.how } }"
    )
    return sorted(tuple(row.values()) for row in found)


def test_18_29_merging_edges_without_ids_says_that_they_are_new(graph, merge):
    first = merge([*PEOPLE, *EDGES])
    assert [notice.split()[:5] for notice in first.notices] == [
        ["2", "edges", "of", "Knows", "came"]
    ]
    second = merge(EDGES)
    assert second.notices
    assert "--edge-key src,dst" in second.notices[0]
    assert second.to_json()["notices"] == list(second.notices)
    assert len(edges(graph)) == 4


def test_18_29_edges_with_ids_and_appended_edges_need_no_notice(graph, merge):
    merge(PEOPLE)
    named = {**EDGES[0], "data": {"id": "e1", "how": "work"}}
    assert merge([named]).notices == ()
    assert merge([named]).notices == ()
    assert merge(EDGES, "append").notices == ()


def test_18_29_an_edge_key_recognizes_edges(graph, merge):
    merge([*PEOPLE, *EDGES], edge_key="src,dst")
    again = merge([{**EDGES[0], "data": {"how": "chess"}}, EDGES[1]], edge_key=("from", "to"))
    assert again.notices == ()
    assert again.affected["Knows"].updated == 2
    assert edges(graph) == [("ann", "bob", "chess"), ("bob", "cy", "school")]
    assert graph.verify().findings == []


def test_18_29_of_equal_edges_in_one_input_the_last_counts(graph, merge):
    merge([*PEOPLE, EDGES[0], {**EDGES[0], "data": {"how": "chess"}}], edge_key=("src", "dst"))
    assert edges(graph) == [("ann", "bob", "chess")]


def test_18_29_an_edge_key_may_name_properties(graph, merge):
    other = {**EDGES[0], "data": {"how": "chess"}}
    for _ in range(2):
        merge([*PEOPLE, *EDGES, other], edge_key=("src", "dst", "how"))
    assert len(edges(graph)) == 3
    with pytest.raises(InvalidDataError, match="part of the edge key"):
        merge([{**EDGES[0], "data": {}}], edge_key=("src", "dst", "how"))
    with pytest.raises(InvalidArgumentError, match="no property 'nope'"):
        merge(EDGES, edge_key=("src", "nope"))


def test_18_29_an_edge_key_makes_append_strict(graph, merge):
    merge([*PEOPLE, *EDGES], "append", edge_key=("src", "dst"))
    with pytest.raises(KeyConflictError):
        merge(EDGES, "append", edge_key=("src", "dst"))
    assert len(edges(graph)) == 2


def test_18_29_the_program_says_it_too(graph, tmp_path):
    (tmp_path / "d.jsonl").write_text("\n".join(json.dumps(r) for r in [*PEOPLE, *EDGES]))
    words = ["ingest", graph.uri, "--data", str(tmp_path / "d.jsonl")]
    told = CliRunner().invoke(app, words)
    assert told.exit_code == 0
    assert "Notice: 2 edges of Knows came without an id" in told.output
    quiet = CliRunner().invoke(app, [*words, "--edge-key", "src,dst", "--json"])
    assert json.loads(quiet.stdout)["notices"] == []
    load = ["load", graph.uri, "--data", str(tmp_path / "d.jsonl"), "--mode", "merge"]
    again = CliRunner().invoke(app, [*load, "--edge-key", "src,dst", "--engine", "embedded"])
    assert again.exit_code == 0
    assert "2 updated" in again.output


def test_18_27_an_export_beyond_the_bound_is_imported(graph, tmp_path, monkeypatch):
    many = [{"type": "P", "data": {"name": f"p{n}"}} for n in range(3_000)]
    graph.ingest([*PEOPLE, *EDGES, *many])
    graph.export(str(tmp_path / "out"))
    monkeypatch.setattr(loading, "MOST_BYTES", 10_000)
    monkeypatch.setattr("omnigraph.operations.embeddedload.MOST_BYTES", 10_000)
    done = import_graph(str(tmp_path / "copy"), str(tmp_path / "out"), SCHEMA)
    copy = omnigraph.open(str(tmp_path / "copy"))
    assert edges(copy) == edges(graph)
    assert done.loaded.affected["P"].inserted == 3_003
    assert next(iter(copy.commits())).details["engine"] == "embedded"
    assert copy.verify().findings == []
