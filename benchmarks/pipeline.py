"""What is loaded on Spark, and the same work by Spark alone: parse, and write Parquet by type."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

SCHEMA = """
node Person {
    name: String @key
    age: I32?
    born: Date?
}
edge Knows: Person -> Person {
    since: I32?
}
"""
_PLAIN = (
    "type string, edge string, `from` string, `to` string, "
    "data struct<name: string, age: int, born: string, since: int>"
)


# Inputs.


def write_jsonl(file: Path, nodes: int, edges: int) -> None:
    with file.open("w") as out:
        for n in range(nodes):
            day = f"19{n % 90 + 10}-0{n % 9 + 1}-1{n % 9}"
            out.write(
                f'{{"type":"Person","data":{{"name":"p{n}","age":{n % 90},"born":"{day}"}}}}\n'
            )
        for n in range(edges):
            src, dst = n * 7919 % nodes, n * 104729 % nodes
            out.write(
                f'{{"edge":"Knows","from":"p{src}","to":"p{dst}","data":{{"since":{n % 30}}}}}\n'
            )


def write_parquet(folder: Path, nodes: int, edges: int) -> None:
    folder.mkdir()
    people = {"name": [f"p{n}" for n in range(nodes)], "age": [n % 90 for n in range(nodes)]}
    pq.write_table(pa.table(people), folder / "Person.parquet")
    links = {
        "from": [f"p{n * 7919 % nodes}" for n in range(edges)],
        "to": [f"p{n * 104729 % nodes}" for n in range(edges)],
        "since": pa.array([n % 30 for n in range(edges)], pa.int32()),
    }
    pq.write_table(pa.table(links), folder / "Knows.parquet", row_group_size=100_000)


# The same by Spark alone.


def plain_jsonl(spark: Any, file: Path, out: Path) -> None:
    rows = spark.read.schema(_PLAIN).json(str(file))
    people = rows.where("type is not null").select("data.name", "data.age", "data.born")
    people.write.parquet(str(out / "Person"))
    links = rows.where("edge is not null").select("from", "to", "data.since")
    links.write.parquet(str(out / "Knows"))


def plain_parquet(spark: Any, folder: Path, out: Path) -> None:
    for name in ("Person", "Knows"):
        spark.read.parquet(str(folder / f"{name}.parquet")).write.parquet(str(out / name))
