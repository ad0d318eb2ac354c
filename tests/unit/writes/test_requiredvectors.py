"""Types whose vectors may not be missing: written from their texts where a provider is there."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import omnigraph
from omnigraph.cli.main import app
from omnigraph.embedding.mock import mock_vector
from omnigraph.errors import EmbeddingError, InvalidDataError
from omnigraph.graph import Graph

SCHEMA = """
node Doc {
    slug: String @key
    text: String
    title: String?
    vec: Vector(8) @embed("text")
    head: Vector(4)? @embed("title")
}
"""
INSERT = "query add($s: String, $t: String) { insert Doc { slug: $s, text: $t } }"
READ = "query q() { match { $d: Doc } return { $d.slug, $d.vec, $d.head } }"


@pytest.fixture
def graph(tmp_path) -> Graph:
    return omnigraph.init(str(tmp_path / "g"), SCHEMA)


@pytest.fixture
def provider(monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")


@pytest.fixture
def nobody(monkeypatch):
    for name in ("OMNIGRAPH_EMBEDDINGS_MOCK", "OMNIGRAPH_EMBED_PROVIDER", "OPENROUTER_API_KEY",
                 "OPENAI_API_KEY", "OMNIGRAPH_EMBED_BASE_URL"):  # fmt: skip
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def broken(monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "openai-compatible")
    monkeypatch.setenv("OMNIGRAPH_EMBED_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("OMNIGRAPH_EMBED_RETRY_ATTEMPTS", "1")


def envelope(slug: str, text: str, **data: object) -> str:
    return json.dumps({"type": "Doc", "data": {"slug": slug, "text": text, **data}})


def by_mutate(graph: Graph, tmp_path) -> None:
    graph.mutate(INSERT, params={"s": "a", "t": "red"})


def by_upsert(graph: Graph, tmp_path) -> None:
    graph.mutate('query q() { upsert Doc { slug: "a", text: "red" } on conflict replace }')


def by_ingest(graph: Graph, tmp_path) -> None:
    graph.ingest(envelope("a", "red", title="x"))


def by_load(graph: Graph, tmp_path) -> None:
    (tmp_path / "a.jsonl").write_text(envelope("a", "red", title="x"))
    graph.load(str(tmp_path / "a.jsonl"), engine="embedded")


def by_bulk(graph: Graph, tmp_path) -> None:
    (tmp_path / "a.jsonl").write_text(envelope("a", "red", title="x"))
    graph.load(str(tmp_path / "a.jsonl"))  # so small that it needs no session


WAYS = [by_mutate, by_upsert, by_ingest, by_load, by_bulk]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.usefixtures("provider")
def test_18_26_a_required_vector_is_made_on_the_way_in(graph, tmp_path, way):
    way(graph, tmp_path)
    (row,) = graph.query(READ)
    assert row["d.vec"] == pytest.approx(mock_vector("red", 8).tolist(), abs=1e-6)
    assert row["d.head"] is None  # optional: `embed` makes it
    assert graph.verify().findings == []


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.usefixtures("nobody")
def test_18_26_without_a_provider_the_refusal_says_the_way_out(graph, tmp_path, way):
    before = graph.snapshot()
    with pytest.raises(InvalidDataError, match="OMNIGRAPH_EMBED_PROVIDER"):
        way(graph, tmp_path)
    assert graph.snapshot() == before


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.usefixtures("broken")
def test_18_26_a_provider_that_fails_fails_the_write(graph, tmp_path, way):
    before = graph.snapshot()
    with pytest.raises(EmbeddingError):
        way(graph, tmp_path)
    assert graph.snapshot() == before
    assert graph.verify().findings == []


@pytest.mark.usefixtures("provider")
def test_18_26_given_vectors_are_kept_and_the_model_is_recorded(graph):
    given = [1.0] + [0.0] * 7
    graph.ingest(envelope("a", "red", vec=given) + "\n" + envelope("b", "blue"))
    rows = {row["d.slug"]: row["d.vec"] for row in graph.query(READ)}
    assert rows["a"] == given
    assert rows["b"] == pytest.approx(mock_vector("blue", 8).tolist(), abs=1e-6)
    assert next(iter(graph.commits())).details["embedding"]["provider"] == "mock"


@pytest.mark.usefixtures("nobody")
def test_18_26_lint_refuses_what_no_provider_can_embed(tmp_path, monkeypatch):
    (tmp_path / "s.pg").write_text(SCHEMA)
    (tmp_path / "q.gq").write_text(INSERT)
    words = ["lint", str(tmp_path / "s.pg"), str(tmp_path / "q.gq")]
    refused = CliRunner().invoke(app, words)
    assert refused.exit_code != 0
    assert "L210" in refused.output
    assert "vec: Vector(8)?" in refused.output
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    assert CliRunner().invoke(app, words).exit_code == 0
