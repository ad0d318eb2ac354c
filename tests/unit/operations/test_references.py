"""Blobs whose bytes lie outside of the graph: admitted by an allow-list, kept as they are."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.support.schemachanges import content

import omnigraph
from omnigraph.errors import ExternalBlobError, InvalidArgumentError, InvalidDataError
from omnigraph.graph import Graph
from omnigraph.model.references import GIVEN, STORED, address_of
from omnigraph.operations.lifecycle import init_graph, open_graph
from omnigraph.storage.blobpolicy import AllowList
from omnigraph.storage.table import open_table

SCHEMA = """
node Doc { key: String @key
    title: String?
    scan: Blob? }
edge Cites: Doc -> Doc { proof: Blob? }
"""
ASSETS = "s3://assets/scans"


def text(data: bytes) -> str:
    return "base64:" + base64.b64encode(data).decode()


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    place = tmp_path / "outside"
    place.mkdir()
    bases = [ASSETS, place.as_uri()]
    return Graph(init_graph(str(tmp_path / "g"), SCHEMA, external_blobs=bases))


def put(graph: Graph, mode: str = "append", **scans: Any) -> None:
    graph.ingest([{"type": "Doc", "data": {"key": k, "scan": v}} for k, v in scans.items()], mode)


def scans(graph: Graph) -> dict[str, Any]:
    """Values, and for references their addresses."""
    rows = {row["key"]: row["scan"] for row in content(graph)["Doc"]}
    return {key: address_of(value) or value for key, value in rows.items()}


def test_texts_in_queries_mean_what_they_mean_in_inputs(graph: Graph) -> None:
    graph.mutate(f'query i() {{ insert Doc {{ key: "a", scan: "{text(b"abc")}" }} }}')
    given = 'query i($s: Blob) { insert Doc { key: "b", scan: $s } }'
    graph.mutate(given, params={"s": text(b"")})
    graph.mutate(given.replace('"b"', '"c"'), params={"s": b"raw"})
    assert scans(graph) == {"a": b"abc", "b": b"", "c": b"raw"}
    for value in (text(b"new"), f"{ASSETS}/new.pdf"):
        graph.mutate(f'query u() {{ update Doc set {{ scan: "{value}" }} where key = "a" }}')
        assert scans(graph)["a"] == (b"new" if value.startswith("base64:") else value)
    with pytest.raises(InvalidDataError, match="base 64"):
        graph.mutate('query i() { insert Doc { key: "d", scan: "just words" } }')
    with pytest.raises(InvalidDataError, match="base 64"):
        graph.mutate('query u() { update Doc set { scan: "base64:?" } where key = "a" }')


def test_blobs_beside_references_are_fetched_in_parts_that_fit(graph: Graph) -> None:
    values = [bytes([n]) * 1024 * 1024 for n in range(20)]
    blobs: dict[str, Any] = {f"k{n:02}": value for n, value in enumerate(values)}
    put(graph, "append", ref=f"{ASSETS}/a.pdf", **blobs)
    (version,) = graph.snapshot().tables.values()
    batches = list(open_table(graph.snapshot().location, version).scan(["scan"], whole_blobs=True))
    assert max(batch.nbytes for batch in batches) <= 9 * 1024 * 1024
    found = pa.Table.from_batches(batches)["scan"].to_pylist()
    assert address_of(found[0]) == f"{ASSETS}/a.pdf"
    assert found[1:] == values


def test_nothing_is_allowed_unless_somebody_said_so(graph: Graph, tmp_path: Path) -> None:
    put(graph, a=f"{ASSETS}/a.pdf")
    closed = omnigraph.open(graph.uri)
    before = graph.snapshot().commit_id
    for value in (f"{ASSETS}/b.pdf", GIVEN + b"s3://x/y", STORED + b"s3://x/y"):
        with pytest.raises(ExternalBlobError):
            put(closed, b=value)
        if isinstance(value, bytes):  # the marks are nothing that one could smuggle in
            with pytest.raises(ExternalBlobError):
                put(closed, b=text(value))
            data = pa.table({"key": ["b"], "scan": pa.array([value], pa.large_binary())})
            with pytest.raises(ExternalBlobError):
                closed.ingest(data, type="Doc")
    with pytest.raises(ExternalBlobError):
        closed.mutate(f'query u() {{ update Doc set {{ scan: "{ASSETS}/b" }} where key = "a" }}')
    assert graph.snapshot().commit_id == before
    # What was admitted once stays, whoever moves the row.
    closed.mutate('query u() { update Doc set { title: "x" } where key = "a" }')
    assert scans(closed) == {"a": f"{ASSETS}/a.pdf"}


def test_the_environment_may_name_places(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_EXTERNAL_BLOBS", f"s3://other/ {ASSETS}")
    put(omnigraph.open(graph.uri), a=f"{ASSETS}/a.pdf", b="s3://other/b")
    assert scans(graph) == {"a": f"{ASSETS}/a.pdf", "b": "s3://other/b"}
    with pytest.raises(ExternalBlobError):
        put(Graph(open_graph(graph.uri, external_blobs=())), c="s3://other/c")


REFUSED = [
    "s3://assets/scansalike/x",
    "s3://assets/scans",
    "s3://assets/scans/../other/x",
    "s3://assets/scans/%2e%2e/x",
    "s3://assets/scans/x?version=1",
    "s3://user:secret@assets/scans/x",
    "s3://ASSETS/scans/x",
    "https://assets/scans/x",
    "file:///etc/passwd",
    "file://host/etc/passwd",
]


@pytest.mark.parametrize("address", REFUSED)
def test_places_are_compared_part_by_part(address: str) -> None:
    with pytest.raises(ExternalBlobError) as caught:
        AllowList.of([ASSETS, "file:///srv"]).admit(address)
    assert "secret" not in str(caught.value.details)


def test_local_files_are_followed_to_where_they_are(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "f").write_bytes(b"x")
    (inside / "way out").symlink_to(outside / "f")
    (inside / "alias").symlink_to(inside / "f")
    allowed = AllowList.of([inside.as_uri()])
    assert allowed.admit(f"file://{inside}/alias") == f"file://{inside}/f"
    for name in ("way out", "nothing", "../out/f"):
        with pytest.raises(ExternalBlobError):
            allowed.admit(f"file://{inside}/{name}")
    with pytest.raises(InvalidArgumentError):
        AllowList.of(["https://nowhere/"])


# ledger: S06
def test_references_survive_whatever_happens_to_their_rows(graph: Graph, tmp_path: Path) -> None:
    """Also when what they lead to is gone: nobody follows them."""
    file = tmp_path / "outside" / "f"
    file.write_bytes(b"outside")
    put(graph, a=f"{ASSETS}/a", b=text(b"own"), c=None, d=text(b""), e=file.as_uri())
    file.unlink()
    want = {"a": f"{ASSETS}/a", "b": b"own", "c": None, "d": b"", "e": file.as_uri()}
    assert scans(graph) == want
    graph.ingest([{"edge": "Cites", "from": "a", "to": "b", "data": {"proof": f"{ASSETS}/p"}}])
    for n in range(40):  # enough for small files to be folded
        graph.mutate(f'query u() {{ update Doc set {{ title: "{n}" }} where key = "a" }}')
    graph.optimize()
    assert scans(graph) == want
    branch = graph.create_branch("b")
    branch.mutate('query u() { update Doc set { title: "on b" } where key = "e" }')
    graph.mutate('query u() { update Doc set { title: "on main" } where key = "d" }')
    (change,) = [c for c in graph.diff("main", "b") if c.id == "e"]
    assert change.after is not None
    assert address_of(change.after["scan"]) == file.as_uri()
    graph.merge("b")
    assert scans(graph) == want
    graph.apply_schema(SCHEMA.replace("title: String?", "title: String?\n    size: I32?"))
    graph.apply_schema(SCHEMA.replace("title: String?", "title: String?\n    size: I64?"))
    assert scans(graph) == want
    assert graph.verify().findings == []
    shown = graph.blob_stat("Doc", "e", "scan").to_dict()
    assert (shown["kind"], shown["uri"]) == ("external", file.as_uri())
    with pytest.raises(InvalidArgumentError, match="outside the graph"):
        next(graph.blob("Doc", "e", "scan"))


@pytest.mark.parametrize("format_", ["jsonl", "parquet", "arrow"])
def test_an_export_brings_references_to_a_graph_that_allows_them(
    graph: Graph, tmp_path: Path, format_: str
) -> None:
    put(graph, a=f"{ASSETS}/a", b=text(b"own"), c=None)
    graph.export(str(tmp_path / "out"), format=format_)
    for bases in ((), (ASSETS,)):
        uri = str(tmp_path / f"copy {len(bases)}")
        copy = Graph(init_graph(uri, SCHEMA, external_blobs=bases))
        if bases:
            copy.load(str(tmp_path / "out"), engine="embedded")
            assert scans(copy) == scans(graph)
        else:
            with pytest.raises(ExternalBlobError):
                copy.load(str(tmp_path / "out"), engine="embedded")


@pytest.mark.parametrize("mark", [GIVEN, STORED])
def test_18_21_a_resolution_cannot_refer_to_what_is_not_allowed(graph: Graph, mark: bytes) -> None:
    put(graph, a=f"{ASSETS}/1.pdf")
    side = graph.create_branch("f")
    put(side, "merge", a=f"{ASSETS}/2.pdf")
    put(graph, "merge", a=f"{ASSETS}/3.pdf")

    def decided(address: str) -> str:
        value = base64.b64encode(mark + address.encode()).decode()
        return json.dumps({"type": "Doc", "id": "a", "resolution": {"scan": value}})

    with pytest.raises(ExternalBlobError):
        graph.merge("f", resolutions=decided("file:///etc/passwd"))
    assert scans(graph) == {"a": f"{ASSETS}/3.pdf"}
    # What a side holds already may be kept, also by somebody who may not refer to new places.
    omnigraph.open(graph.uri).merge("f", resolutions=decided(f"{ASSETS}/2.pdf"))
    assert scans(graph) == {"a": f"{ASSETS}/2.pdf"}
