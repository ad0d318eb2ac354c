"""Loads and exports where inputs, graph and outputs all lie in an object store."""

from __future__ import annotations

import json
from typing import Any

from tests.spark.inputs import SCHEMA, content, knows, note, owns, person

import omnigraph
from omnigraph.storage.inputs import write_output


def test_everything_in_a_bucket(spark: Any, s3_root: str) -> None:
    """The virtual machine and its workers know nothing of the server: the driver tells them."""
    lines = "".join(
        f"{json.dumps(record)}\n"
        for record in (
            person("Ada", face="base64:AAEC", spot=[1, 2]),
            person("Bo", age=3),
            note("n1"),
            knows("Ada", "Bo", id="k1"),
            owns("Bo", "n1", id="o1"),
        )
    )
    write_output(f"{s3_root}/in/one.jsonl", lines.encode())
    graph = omnigraph.init(f"{s3_root}/graph", SCHEMA)
    assert graph.load(f"{s3_root}/in/*.jsonl").records == 5
    assert {row["name"] for row in content(graph)["Person"]} == {"Ada", "Bo"}
    # A frame is laid down in the bucket first; merged rows are marked there, too.
    frame = spark.createDataFrame([("Bo", 4), ("Cy", 5)], "name string, age int")
    graph.load(frame, "merge", type="Person")
    assert {r["name"]: r["age"] for r in content(graph)["Person"]} == {
        "Ada": None,
        "Bo": 4,
        "Cy": 5,
    }
    out = graph.export(f"{s3_root}/out", engine="spark", format="parquet")
    assert out.rows == {"Person": 3, "Note": 1, "Knows": 1, "Owns": 1}
    again = omnigraph.init(f"{s3_root}/again", SCHEMA)
    again.load([f"{s3_root}/out/{name}/*" for name in out.rows])
    assert content(again) == content(graph)
