"""Ways in which a reference to a place outside of the graph could get into it, and marks that
somebody could forge. Without an allow-list, no way may let one in."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import lance
import pyarrow as pa
import pyarrow.parquet as pq
from tests.support.schemachanges import content

import omnigraph
from omnigraph.errors import ExternalBlobError
from omnigraph.graph import Graph
from omnigraph.merges import resolutions
from omnigraph.model.references import GIVEN, STORED, address_of, stored_reference
from omnigraph.operations.lifecycle import init_graph
from omnigraph.rows import columns, propertyvalues

Way = Callable[[Graph, bytes, Path], None]
SCHEMA = """
node Doc { key: String @key
    title: String?
    scan: Blob? }
"""
PLACE = "s3://assets/scans"
SECRET = "file:///etc/passwd"
FORGED = [
    GIVEN + SECRET.encode(),
    STORED + SECRET.encode(),
    STORED + SECRET.encode() + b"\0" + bytes(16),
    # The proof of another address.
    STORED + SECRET.encode() + stored_reference(f"{PLACE}/a", proven=True)[-17:],
]


def closed_graph(folder: Path) -> Graph:
    """A graph without an allow-list, in which a reference is stored."""
    opened = Graph(init_graph(str(folder / "g"), SCHEMA, external_blobs=[PLACE]))
    opened.ingest([{"type": "Doc", "data": {"key": "a", "scan": f"{PLACE}/a"}}])
    return omnigraph.open(opened.uri)


@contextmanager
def blinded() -> Iterator[None]:
    """Readers of inputs that take every mark at its word."""
    with (
        patch.object(propertyvalues, "as_given", lambda value: value),
        patch.object(resolutions, "as_given", lambda value: value),
        patch.object(columns, "STORED", b"\xffno such mark"),
    ):
        yield


def scans(graph: Graph) -> dict[str, Any]:
    rows = {row["key"]: row["scan"] for row in content(graph)["Doc"]}
    return {key: address_of(value) or value for key, value in rows.items()}


def text(value: bytes) -> str:
    return "base64:" + base64.b64encode(value).decode()


def record(value: bytes) -> dict[str, Any]:
    return {"type": "Doc", "data": {"key": "b", "scan": text(value)}}


def frame(value: bytes) -> pa.Table:
    return pa.table({"key": ["b"], "scan": pa.array([value], pa.large_binary())})


def mutate(graph: Graph, value: bytes, _: Path) -> None:
    graph.mutate('query i($s: Blob) { insert Doc { key: "b", scan: $s } }', params={"s": value})


def update(graph: Graph, value: bytes, _: Path) -> None:
    text_ = 'query u($s: Blob) { update Doc set { scan: $s } where key = "a" }'
    graph.mutate(text_, params={"s": value})


def ingest(graph: Graph, value: bytes, _: Path) -> None:
    graph.ingest([record(value)])


def ingest_over(graph: Graph, value: bytes, _: Path) -> None:
    graph.ingest([{"type": "Doc", "data": {"key": "a", "scan": text(value)}}], "merge")


def overwrite(graph: Graph, value: bytes, _: Path) -> None:
    graph.ingest([record(value)], "overwrite")


def ingest_arrow(graph: Graph, value: bytes, _: Path) -> None:
    graph.ingest(frame(value), type="Doc")


def load_lines(graph: Graph, value: bytes, folder: Path) -> None:
    (folder / "in.jsonl").write_text(json.dumps(record(value)) + "\n")
    graph.load(str(folder / "in.jsonl"), engine="embedded")


def load_parquet(graph: Graph, value: bytes, folder: Path) -> None:
    pq.write_table(frame(value), folder / "in.parquet")
    graph.load(str(folder / "in.parquet"), type="Doc", engine="embedded")


def load_lance(graph: Graph, value: bytes, folder: Path) -> None:
    lance.write_dataset(frame(value), str(folder / "in.lance"))
    graph.load(str(folder / "in.lance"), type="Doc", engine="embedded")


def resolve(graph: Graph, value: bytes, _: Path) -> None:
    side = graph.create_branch("f")
    for branch, data in ((side, b"1"), (graph, b"2")):
        branch.ingest([{"type": "Doc", "data": {"key": "a", "scan": data}}], "merge")
    coded = base64.b64encode(value).decode()
    graph.merge(
        "f", resolutions=json.dumps({"type": "Doc", "id": "a", "resolution": {"scan": coded}})
    )


WAYS = [
    mutate, update, ingest, ingest_over, overwrite, ingest_arrow,
    load_lines, load_parquet, load_lance, resolve,
]  # fmt: skip


def play(seed: int, folder: Path) -> None:
    """Try some ways with some marks, past the readers of inputs and without them."""
    folder.mkdir(parents=True)
    chosen = random.Random(seed)
    graph = closed_graph(folder)
    for way in chosen.sample(WAYS, 4):
        value = chosen.choice(FORGED)
        with suppress(ExternalBlobError), blinded() if chosen.random() < 0.5 else nullcontext():
            way(graph, value, folder)
        assert SECRET not in scans(graph).values(), f"{way.__name__} let a reference in"
