"""Vectors of `@embed` properties: made while loading, and for rows that are there already."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.cli.main import run
from omnigraph.embedding.mock import mock_vector
from omnigraph.errors import EmbeddingError, InvalidArgumentError
from omnigraph.graph import Graph
from omnigraph.storage.table import open_table

SCHEMA = """
node Doc {
    slug: String @key
    text: String?
    title: String?
    vec: Vector(8)? @embed("text")
    head: Vector(4)? @embed("title")
    face: Blob?
}
node Plain { name: String @key }
"""


@pytest.fixture(autouse=True)
def _mock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")


def doc(slug: str, **data: Any) -> dict[str, Any]:
    return {"type": "Doc", "data": {"slug": slug, **data}}


def docs(graph: Graph) -> dict[str, dict[str, Any]]:
    snapshot = graph.snapshot()
    table = snapshot.catalog.node("Doc")
    assert table is not None
    version = snapshot.table(table.id)
    assert version is not None
    opened = open_table(snapshot.location, version)
    return {r["slug"]: r for r in opened.read(opened.schema.names, whole_blobs=True).to_pylist()}


def made(text: str, dim: int = 8) -> Any:
    return pytest.approx(mock_vector(text, dim).tolist(), abs=1e-6)


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = omnigraph.init(str(tmp_path / "g"), SCHEMA)
    given = [1.0] + [0.0] * 7
    graph.ingest(
        [doc("a", text="red", face="base64:AAEC"), doc("b", text="blue", vec=given), doc("c")]
    )
    return graph


def test_missing_vectors_are_made_and_others_kept(graph: Graph) -> None:
    done = graph.embed()
    assert done.rows == {"Doc": 1}
    rows = docs(graph)
    assert rows["a"]["vec"] == made("red")
    assert rows["a"]["face"] == b"\0\1\2"
    assert rows["b"]["vec"] == [1.0] + [0.0] * 7
    assert rows["c"]["vec"] is None
    assert done.commit is not None
    said = done.commit.details["embedding"]
    assert said["provider"] == "mock"
    assert sorted(said["properties"].values()) == ["head", "vec"]
    assert graph.embed().commit is None  # nothing left to do


def test_a_changed_text_makes_its_vector_stale(graph: Graph) -> None:
    graph.embed()
    graph.mutate('query q() { update Doc set { text: "green" } where slug = "a" }')
    graph.mutate('query q() { update Doc set { title: "T" } where slug = "b" }')
    assert graph.count_embed() == {"Doc": 2}
    assert graph.embed().rows == {"Doc": 2}
    rows = docs(graph)
    assert rows["a"]["vec"] == made("green")
    assert rows["b"]["vec"] == [1.0] + [0.0] * 7
    assert rows["b"]["head"] == made("T", 4)
    assert graph.embed().commit is None


def test_a_text_that_came_with_its_vector_is_not_stale(graph: Graph) -> None:
    given = [0.0, 1.0] + [0.0] * 6
    graph.ingest([doc("b", text="teal", vec=given)], "merge")
    graph.embed()
    assert docs(graph)["b"]["vec"] == given


def test_a_change_before_the_first_run_counts_too(graph: Graph) -> None:
    graph.mutate('query q() { update Doc set { text: "teal" } where slug = "b" }')
    assert graph.embed().rows == {"Doc": 2}
    assert docs(graph)["b"]["vec"] == made("teal")


def test_all_are_made_anew_or_taken_away_on_request(graph: Graph) -> None:
    assert graph.embed(everything=True).rows == {"Doc": 2}
    assert docs(graph)["b"]["vec"] == made("blue")
    assert graph.embed(clean=True).rows == {"Doc": 2}
    assert [row["vec"] for row in docs(graph).values()] == [None] * 3
    with pytest.raises(InvalidArgumentError, match="not both"):
        graph.embed(clean=True, everything=True)


def test_rows_can_be_selected(graph: Graph) -> None:
    assert graph.embed(everything=True, select=("Doc:slug=b",)).rows == {"Doc": 1}
    assert docs(graph)["a"]["vec"] is None
    for wrong in ("Doc:slug", "Doc:nothing=1"):
        with pytest.raises(InvalidArgumentError, match="Type:property=value"):
            graph.embed(select=(wrong,))
    with pytest.raises(InvalidArgumentError, match="Plain has no property with @embed"):
        graph.embed(types=("Plain",))


def test_models_are_not_mixed(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBED_MODEL", "one")
    graph.embed()
    graph.ingest([doc("d", text="d")])
    monkeypatch.setenv("OMNIGRAPH_EMBED_MODEL", "two")
    with pytest.raises(EmbeddingError, match="were made by the model 'one'"):
        graph.embed()
    assert graph.embed(everything=True).model == "two"
    assert graph.embed().commit is None


def test_a_recorded_model_is_required(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = 'node Doc { text: String vec: Vector(4)? @embed("text", model="right") }'
    graph = omnigraph.init(str(tmp_path / "g"), schema)
    graph.ingest([{"type": "Doc", "data": {"text": "x"}}])
    monkeypatch.setenv("OMNIGRAPH_EMBED_MODEL", "wrong")
    with pytest.raises(EmbeddingError, match="right"):
        graph.embed(everything=True)
    monkeypatch.setenv("OMNIGRAPH_EMBED_MODEL", "right")
    assert graph.embed().rows == {"Doc": 1}


def test_a_branch_is_embedded_alone(graph: Graph) -> None:
    branch = graph.create_branch("try")
    assert branch.embed().rows == {"Doc": 1}
    assert docs(graph)["a"]["vec"] is None
    assert branch.embed().commit is None


def test_who_comes_between_is_not_overwritten(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are chosen again, and no text is sent twice."""
    from omnigraph.embedding import EmbeddingClient

    sent: list[str] = []
    real = EmbeddingClient.embed_documents

    def slow(self: EmbeddingClient, texts: Any, dim: int) -> Any:
        if not sent:
            graph.mutate('query q() { update Doc set { title: "late" } where slug = "a" }')
        sent.extend(texts)
        return real(self, texts, dim)

    monkeypatch.setattr(EmbeddingClient, "embed_documents", slow)
    graph.embed()
    row = docs(graph)["a"]
    assert (row["title"], row["vec"], row["head"]) == ("late", made("red"), made("late", 4))
    assert sorted(sent) == ["late", "red"]


def test_a_load_in_this_process_makes_vectors(graph: Graph, tmp_path: Path) -> None:
    file = tmp_path / "in.jsonl"
    given = [0.0, 1.0] + [0.0] * 6
    lines = [doc("x", text="same"), doc("y", text="same", vec=given), doc("z")]
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    done = graph.load(str(file), engine="embedded", embed=True)
    rows = docs(graph)
    assert rows["x"]["vec"] == made("same")
    assert rows["y"]["vec"] == given
    assert rows["z"]["vec"] is None
    assert done.commit is not None
    assert done.commit.details["embedding"]["provider"] == "mock"


def test_the_command_tells_what_it_did(
    graph: Graph, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBED_MODEL", "words")
    assert run(["embed", graph.uri, "--dry-run"]) == 0
    assert capsys.readouterr().out == "Doc: 1 to embed\n"
    assert run(["embed", graph.uri, "--type", "Doc"]) == 0
    assert "Doc: 1 updated" in (said := capsys.readouterr().out)
    assert said.endswith("model words\n")
    assert run(["embed", graph.uri, "--clean", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == {"Doc": 2}
    assert run(["embed", graph.uri, "--engine", "steam"]) == 2


# Files: records that are in no graph yet.


def lines_of(file: Path) -> list[str]:
    return file.read_text().splitlines()


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.pg").write_text(SCHEMA)
    given = json.dumps([1.0] + [0.0] * 7)
    (tmp_path / "in.jsonl").write_text(
        '{"type": "Doc", "data": {"slug": "a", "text": "red", "title": "R"}}\n'
        '{"type":"Plain",  "data":{"name":"x"}}\n'
        "\n"
        f'{{"type": "Doc", "data": {{"slug": "b", "text": "red", "vec": {given}}}}}\n'
        '{"type": "Doc", "data": {"slug": "c", "text": "red", "vec": []}}\n'
        '{"type": "Doc", "data": {"slug": "d"}}'
    )
    return tmp_path


def fill(*words: str) -> int:
    return run(["embed", "--schema", "s.pg", "--input", "in.jsonl", *words])


def test_records_of_a_file_get_the_vectors_they_lack(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = lines_of(files / "in.jsonl")
    assert fill("--output", "out.jsonl", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["records"], told["rows"]) == (5, {"Doc": 2})
    after = lines_of(files / "out.jsonl")
    assert [after[n] for n in (1, 2, 3, 5)] == [before[n] for n in (1, 2, 3, 5)]
    first, third = json.loads(after[0])["data"], json.loads(after[4])["data"]
    assert first == {"slug": "a", "text": "red", "title": "R"} | {
        "vec": made("red"),
        "head": made("R", 4),
    }
    assert third["vec"] == made("red")
    # A graph takes the file as it is.
    graph = omnigraph.init(str(files / "g"), SCHEMA)
    graph.ingest(files / "out.jsonl")
    assert docs(graph)["a"]["vec"] == made("red")


def test_records_can_be_embedded_anew_narrowed_counted_and_cleaned(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fill("--dry-run") == 0
    assert capsys.readouterr().out == "Doc: 2 to embed\n"
    assert fill("--reembed-all", "--select", "Doc:slug=b", "--output", "b.jsonl") == 0
    second = json.loads(lines_of(files / "b.jsonl")[3])["data"]
    assert second["vec"] == made("red")
    assert lines_of(files / "b.jsonl")[0] == lines_of(files / "in.jsonl")[0]
    assert fill("--clean", "--output", "clean.jsonl") == 0
    assert json.loads(lines_of(files / "clean.jsonl")[3])["data"]["vec"] is None
    capsys.readouterr()


def test_a_file_with_lines_that_cannot_be_used_is_refused_before_anybody_is_asked(
    files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from omnigraph.embedding import EmbeddingClient

    monkeypatch.setattr(EmbeddingClient, "embed_documents", lambda *_: pytest.fail("asked"))
    good = (files / "in.jsonl").read_text()
    bad = ["no json", '{"type": "Dog"}', '{"type": "Doc", "data": {"text": 3}}', "[]"]
    bad.append('{"type": "Doc", "data": {"vec": [1, 2]}}')
    (files / "in.jsonl").write_text("\n".join([good, *bad]))
    assert fill("--output", "out.jsonl", "--json") != 0
    failure = json.loads(capsys.readouterr().err)["error"]
    assert [each["line"] for each in failure["details"]["violations"]] == [7, 8, 9, 10, 11]
    assert not (files / "out.jsonl").exists()


def test_an_output_appears_whole_or_not_at_all(
    files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from omnigraph.embedding import EmbeddingClient
    from omnigraph.operations import embed_file

    monkeypatch.setattr(embed_file, "_AT_ONCE", 2)
    real, calls = EmbeddingClient.embed_documents, []

    def fail_later(self: Any, texts: Any, dim: int) -> Any:
        calls.append(texts)
        if len(calls) == 3:
            raise EmbeddingError("The provider went away.")
        return real(self, texts, dim)

    monkeypatch.setattr(EmbeddingClient, "embed_documents", fail_later)
    assert fill("--output", "out.jsonl") != 0
    assert sorted(p.name for p in files.iterdir()) == ["in.jsonl", "s.pg"]
    calls[:] = [None] * 5
    assert fill("--output", "out.jsonl") == 0
    assert fill("--output", "out.jsonl") != 0  # it is there
    assert "--overwrite" in capsys.readouterr().err
    kept = (files / "out.jsonl").read_bytes()
    assert fill("--output", "out.jsonl", "--overwrite", "--reembed-all") == 0
    assert (files / "out.jsonl").read_bytes() != kept
    assert fill() != 0
    assert fill("--output", "x", "--engine", "spark") != 0
    monkeypatch.delenv("OMNIGRAPH_EMBEDDINGS_MOCK")
    (files / "s.pg").write_text("node Doc { slug: String @key }")
    capsys.readouterr()
    assert fill("--output", "x") != 0
    assert "@embed" in capsys.readouterr().err  # rather than a key that nobody needs
