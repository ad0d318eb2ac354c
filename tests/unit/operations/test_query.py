"""Asking through `Graph`: one snapshot, typed refusals, texts that are embedded by themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import InvalidArgumentError, QueryError

SCHEMA = """
node Doc {
    slug: String @key
    body: String @index
    vec: Vector(4)? @embed("body") @index
}
"""
COUNT = "query q() { match { $d: Doc } return { count($d) as n } }"


@pytest.fixture
def graph(tmp_path: Path) -> omnigraph.Graph:
    made = omnigraph.init(str(tmp_path / "g"), SCHEMA)
    rows = [
        {"slug": f"d{i}", "body": f"hello graph {i}", "vec": [1.0, i / 10, 0.0, 0.0]}
        for i in range(5)
    ]
    made.ingest(rows, type="Doc")
    return made


def test_a_result_names_the_commit_it_was_read_at(graph: omnigraph.Graph) -> None:
    # ledger: C02
    result = graph.query(COUNT)
    graph.ingest([{"slug": "late", "body": "x"}], type="Doc")
    assert result.rows() == [{"n": 5}]
    assert result.commit_id == next(iter(graph.on("main").commits())).parents[0]
    assert graph.query(COUNT, commit=result.commit_id).rows() == [{"n": 5}]
    assert graph.query(COUNT).rows() == [{"n": 6}]


def test_a_text_is_embedded_by_what_the_environment_configures(
    graph: omnigraph.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "mock")
    rows = graph.query(
        "query q($t: String) { match { $d: Doc }"
        " return { $d.slug as slug, rank(nearest($d.vec, $t)) as place }"
        " order { nearest($d.vec, $t) } limit 3 }",
        params={"t": "graph"},
    ).rows()
    assert [row["place"] for row in rows] == [1, 2, 3]


def test_a_mutation_is_not_a_query(graph: omnigraph.Graph) -> None:
    with pytest.raises(InvalidArgumentError, match="changes the graph"):
        graph.query('query q() { insert Doc { slug: "x", body: "y" } }')


def test_a_text_that_does_not_compile_says_where(graph: omnigraph.Graph) -> None:
    with pytest.raises(QueryError) as raised:
        graph.query("query q() { match { $d: Dok } return { $d.slug } }")
    finding = raised.value.diagnostics[0]
    assert (finding.line, finding.hint) != (None, None)
    assert "Doc" in str(finding.hint)
