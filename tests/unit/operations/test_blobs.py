"""Blobs: managed bytes, ranges, etags, and the difference between null and empty."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.errors import InvalidArgumentError, NotFoundError, TypeNotFoundError
from omnigraph.graph import Graph
from omnigraph.storage.blobs import CHUNK_BYTES

LARGE = bytes(range(256)) * (CHUNK_BYTES // 128)


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = omnigraph.init(
        str(tmp_path / "g"), "node Doc { key: String @key\n scan: Blob?\n note: String? }"
    )
    data = pa.table(
        {
            "key": ["small", "empty", "null", "large"],
            "scan": pa.array([b"hello", b"", None, LARGE], pa.large_binary()),
        }
    )
    graph.ingest(data, type="Doc")
    return graph


def test_all_of_it_or_a_range(graph: Graph) -> None:
    assert b"".join(graph.blob("Doc", "small", "scan")) == b"hello"
    assert b"".join(graph.blob("Doc", "small", "scan", offset=1, length=3)) == b"ell"
    assert b"".join(graph.blob("Doc", "small", "scan", offset=3, length=99)) == b"lo"
    assert b"".join(graph.blob("Doc", "empty", "scan")) == b""
    pieces = list(graph.blob("Doc", "large", "scan"))
    assert len(pieces) == 2
    assert b"".join(pieces) == LARGE
    far = CHUNK_BYTES + 5
    assert b"".join(graph.blob("Doc", "large", "scan", offset=far, length=4)) == LARGE[far:][:4]


def test_stat_and_etag(graph: Graph) -> None:
    before = graph.blob_stat("Doc", "small", "scan")
    assert (before.kind, before.size) == ("managed", 5)
    graph.optimize()
    assert graph.blob_stat("Doc", "small", "scan").etag == before.etag
    other = graph.blob_stat("Doc", "large", "scan")
    assert other.etag != before.etag
    changed = {"key": "small", "scan": "base64:d29ybGQ="}
    graph.ingest([{"type": "Doc", "data": changed}], "merge")
    after = graph.blob_stat("Doc", "small", "scan")
    assert after.etag != before.etag
    assert b"".join(graph.blob("Doc", "small", "scan")) == b"world"
    old = graph.blob_stat("Doc", "small", "scan", commit=before.commit_id)
    assert old.etag == before.etag
    assert set(old.to_dict()) == {
        "type", "id", "property", "graph_commit_id", "kind", "size", "etag",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("where", "error"),
    [
        (("Nobody", "small", "scan"), TypeNotFoundError),
        (("Doc", "nobody", "scan"), NotFoundError),
        (("Doc", "null", "scan"), NotFoundError),
        (("Doc", "small", "note"), InvalidArgumentError),
        (("Doc", "small", "nothing"), InvalidArgumentError),
    ],
)
def test_what_is_not_there(graph: Graph, where: tuple[str, str, str], error: type) -> None:
    with pytest.raises(error):
        graph.blob_stat(*where)


@pytest.mark.parametrize(("offset", "length"), [(-1, None), (0, 0), (5, None), (99, 1)])
def test_ranges_that_make_no_sense(graph: Graph, offset: int, length: int | None) -> None:
    with pytest.raises(InvalidArgumentError):
        graph.blob("Doc", "small", "scan", offset=offset, length=length)
