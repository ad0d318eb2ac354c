"""A schema with every kind of rule, and inputs for it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from omnigraph.graph import Graph
from omnigraph.storage.table import open_table

SCHEMA = """
node Person {
    name: String @key
    age: I32? @range(0..150)
    email: String? @unique
    level: enum(low, high)?
    born: Date?
    seen: DateTime?
    tags: [String]?
    face: Blob?
    spot: Vector(2)?
    rank: I32 @default(7)
}
node Note {
    text: String
}
edge Knows: Person -> Person {
    since: Date?
}
edge Owns: Person -> Note @card(0..2) {
    share: F64?
}
"""


def person(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "Person", "data": {"name": name, **more}}


def note(id_: str, text: str = "…") -> dict[str, Any]:
    return {"type": "Note", "data": {"id": id_, "text": text}}


def knows(src: str, dst: str, **data: Any) -> dict[str, Any]:
    return {"edge": "Knows", "from": src, "to": dst, "data": data}


def owns(src: str, dst: str, **data: Any) -> dict[str, Any]:
    return {"edge": "Owns", "from": src, "to": dst, "data": data}


def write_lines(file: Path, records: Iterable[Mapping[str, Any] | str]) -> str:
    lines = (r if isinstance(r, str) else json.dumps(r) for r in records)
    file.write_text("".join(f"{line}\n" for line in lines))
    return str(file)


def content(graph: Graph) -> dict[str, list[dict[str, Any]]]:
    """Everything that a graph holds; ids that were made are left out."""
    snapshot = graph.snapshot()
    found = {}
    for table in snapshot.catalog.tables():
        version = snapshot.table(table.id)
        if version is None:
            continue
        opened = open_table(snapshot.location, version)
        rows = opened.read(opened.schema.names, whole_blobs=True).to_pylist()
        ids = [row["id"] for row in rows]
        assert len(ids) == len(set(ids)) == version.rows
        for row in rows:
            if len(row["id"]) == 26:
                del row["id"]
        if rows:
            found[table.name] = sorted(rows, key=repr)
    return found
