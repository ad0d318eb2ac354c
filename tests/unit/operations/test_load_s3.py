"""Inputs of every form are read from an object store as from a disk."""

from __future__ import annotations

import gzip
import io
import json

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph.operations.load import LoadOptions
from omnigraph.operations.requests import Load
from omnigraph.operations.verbs import run
from omnigraph.storage.inputs import write_output

ROWS = pa.table({"name": [f"p{n}" for n in range(300)], "age": pa.array(range(300), pa.int32())})


def _jsonl() -> bytes:
    rows = ({"type": "Person", "data": row} for row in ROWS.to_pylist())
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def _parquet() -> bytes:
    out = io.BytesIO()
    pq.write_table(ROWS, out, row_group_size=100)
    return out.getvalue()


def _arrow() -> bytes:
    out = io.BytesIO()
    with pa.ipc.new_file(out, ROWS.schema) as writer:
        writer.write_table(ROWS)
    return out.getvalue()


def _csv() -> bytes:
    out = io.BytesIO()
    pacsv.write_csv(ROWS, out)
    return out.getvalue()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("in.jsonl", _jsonl()),
        ("in.jsonl.gz", gzip.compress(_jsonl())),
        ("Person.parquet", _parquet()),
        ("Person.arrow", _arrow()),
        ("Person.csv", _csv()),
        ("Person.csv.gz", gzip.compress(_csv())),
    ],
)
def test_a_form_is_read_from_a_bucket(s3_root: str, name: str, data: bytes) -> None:
    write_output(f"{s3_root}/in/{name}", data)
    graph = omnigraph.init(f"{s3_root}/graph", "node Person { name: String @key age: I32 }")
    done = run(graph._context, Load(f"{s3_root}/in/", options=LoadOptions(here=True)))
    assert done.records == 300
    text = "query q() { match { $p: Person } return { sum($p.age) as total } }"
    assert next(iter(graph.query(text).rows()))["total"] == 299 * 150
