"""Work on rows that are in the graph already, done by executors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.support import schemachanges
from tests.unit.operations.test_embed import SCHEMA as DOCS
from tests.unit.operations.test_embed import doc, docs, made
from tests.unit.writes.test_requestkinds import overtaken

import omnigraph

SCHEMA = """
node Doc {
    slug: String @key
    body: String @index
    size: I64 @index
}
"""

pytestmark = pytest.mark.usefixtures("spark")


def test_executors_embed_what_is_missing_or_stale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    graph = omnigraph.init(str(tmp_path / "g"), DOCS)
    given = [1.0] + [0.0] * 7
    rows = [doc("a", text="red", face="base64:AAEC"), doc("b", text="blue", vec=given), doc("c")]
    graph.ingest(rows)
    done = graph.embed(engine="spark")
    assert done.rows == {"Doc": 1}
    assert done.commit is not None
    assert done.commit.details["embedding"]["provider"] == "mock"
    found = docs(graph)
    assert (found["a"]["vec"], found["a"]["face"]) == (made("red"), b"\0\1\2")
    assert (found["b"]["vec"], found["c"]["vec"]) == (given, None)
    graph.mutate('query q() { update Doc set { text: "green" } where slug = "a" }')
    assert graph.embed(engine="spark").rows == {"Doc": 1}
    assert docs(graph)["a"]["vec"] == made("green")
    assert graph.embed(engine="spark").commit is None
    assert graph.embed(engine="spark", clean=True).rows == {"Doc": 2}
    assert [row["vec"] for row in docs(graph).values()] == [None] * 3


def test_20_04_executors_embed_again_when_a_text_changed_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    graph = omnigraph.init(str(tmp_path / "g"), DOCS)
    graph.ingest([doc("a", text="red"), doc("b", text="blue")])
    text = 'query q() { update Doc set { text: "green" } where slug = "a" }'
    other = omnigraph.open(graph.uri)
    with overtaken(lambda: other.mutate(text)) as tries:
        done = graph.embed(engine="spark")
    assert len(tries) == 2
    assert done.rows == {"Doc": 2}
    assert [docs(graph)[slug]["vec"] for slug in "ab"] == [made("green"), made("blue")]


# ledger: T02
def test_executors_give_tables_their_columns(tmp_path: Path) -> None:
    here, there = (schemachanges.new_graph(str(tmp_path / name)) for name in ("here", "there"))
    for name in ("several at once", "drop a property for good"):
        change = schemachanges.CHANGES[name]
        for graph, engine in ((here, "embedded"), (there, "spark")):
            graph.create_branch(name.replace(" ", "-"))
            branch = graph.on(name.replace(" ", "-"))
            loss = change.allow_data_loss
            assert branch.apply_schema(change.schema, allow_data_loss=loss, engine=engine).commit
        assert schemachanges.content(branch) == schemachanges.content(here.on(branch.branch_name))
        assert branch.apply_schema(change.schema, engine="spark").commit is None
    assert there.verify().is_clean


def test_executors_compact_and_build_indexes(tmp_path: Path) -> None:
    graph = omnigraph.init(str(tmp_path / "g"), SCHEMA)
    for number in range(5):
        rows: list[dict[str, Any]] = [
            {"slug": f"{number}-{n}", "body": f"word{n}", "size": n} for n in range(20)
        ]
        graph.ingest(rows, type="Doc")
    done = graph.optimize(engine="spark")
    (table,) = done.tables
    assert table.files_moved == 5
    assert {index.property for index in table.built} >= {"body", "size"}
    text = 'query q() { match { $d: Doc search($d.body, "word7") } return { $d.slug } }'
    assert len(list(graph.query(text).rows())) == 5
    assert graph.optimize(engine="spark").is_empty
    assert graph.verify().is_clean
