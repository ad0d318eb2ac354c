"""References of blobs on Spark: refused when new, kept when stored."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.schemachanges import content

import omnigraph
import omnigraph.spark
from omnigraph.errors import OmniGraphError
from omnigraph.graph import Graph
from omnigraph.model.references import GIVEN, STORED, address_of
from omnigraph.operations.lifecycle import init_graph

SCHEMA = """
node Doc { key: String @key
    title: String?
    scan: Blob? }
"""
PLACE = "s3://assets/scans"
SECRET = b"file:///etc/passwd"


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    opened = Graph(init_graph(str(tmp_path / "g"), SCHEMA, external_blobs=[PLACE]))
    opened.ingest([{"type": "Doc", "data": {"key": "a", "scan": f"{PLACE}/a"}}])
    return omnigraph.open(opened.uri)


def scans(graph: Graph) -> dict[str, Any]:
    rows = {row["key"]: row["scan"] for row in content(graph)["Doc"]}
    return {key: address_of(value) or value for key, value in rows.items()}


@pytest.mark.parametrize("mark", [GIVEN, STORED])
def test_18_21_a_load_on_spark_brings_no_reference(
    graph: Graph, tmp_path: Path, spark: Any, mark: bytes
) -> None:
    value = "base64:" + base64.b64encode(mark + SECRET).decode()
    record = {"type": "Doc", "data": {"key": "b", "scan": value}}
    (tmp_path / "in.jsonl").write_text(json.dumps(record) + "\n")
    with pytest.raises(OmniGraphError, match="may not refer"):
        graph.load(str(tmp_path / "in.jsonl"), engine="spark")
    assert scans(graph) == {"a": f"{PLACE}/a"}


@pytest.mark.parametrize("mark", [GIVEN, STORED])
def test_18_21_a_sink_brings_no_reference(graph: Graph, spark: Any, mark: bytes) -> None:
    omnigraph.spark.register(spark)
    frame = spark.createDataFrame([("b", bytearray(mark + SECRET))], "key string, scan binary")
    writer = frame.write.format("omnigraph").option("graph", graph.uri).option("type", "Doc")
    with pytest.raises(Exception, match="may not refer"):
        writer.mode("append").save()
    assert scans(graph) == {"a": f"{PLACE}/a"}


def test_18_21_a_merge_compared_on_spark_keeps_references(graph: Graph, spark: Any) -> None:
    graph.create_branch("f")
    side = omnigraph.open(graph.uri, external_blobs=[PLACE]).on("f")
    side.ingest([{"type": "Doc", "data": {"key": "s", "scan": f"{PLACE}/s"}}])
    side.mutate('query u() { update Doc set { title: "x" } where key = "a" }')
    graph.ingest([{"type": "Doc", "data": {"key": "m"}}])
    graph.merge("f", engine="spark")
    assert scans(graph) == {"a": f"{PLACE}/a", "s": f"{PLACE}/s", "m": None}


def test_18_21_a_schema_change_on_spark_keeps_references(graph: Graph, spark: Any) -> None:
    wider = SCHEMA.replace("title: String?", 'title: String?\n    kind: String @default("x")')
    graph.apply_schema(wider, engine="spark")
    sized = wider.replace("title: String?", "title: String?\n    size: I32?")
    graph.apply_schema(sized, engine="spark")
    graph.apply_schema(sized.replace("I32?", "I64?"), engine="spark")
    assert scans(graph) == {"a": f"{PLACE}/a"}
