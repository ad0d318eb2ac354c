"""Small graphs for query tests: a schema, rows by type, and a snapshot that engines can read.

`write_graph` writes Lance datasets directly, without commits, so that thousands of graphs can be
made; `Shape` says how the same rows lie in storage: in how many files, after updates and deletes,
compacted, indexed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

from omnigraph.lang.pg import compile_schema
from omnigraph.model.catalog import Catalog, EdgeType, NodeType
from omnigraph.model.keys import composite_key
from omnigraph.model.snapshot import Snapshot, TableVersion
from omnigraph.model.types import Kind
from omnigraph.storage.location import parse_location

Rows = Sequence[Mapping[str, Any]]
Data = Mapping[str, Rows]


@dataclass(frozen=True)
class Shape:
    """How rows lie in storage. `scarred`: with rows that were rewritten and rows that are gone."""

    files: int = 1
    scarred: bool = False
    compacted: bool = False
    indexed: bool = False

    def __str__(self) -> str:
        marks = [name for name in ("scarred", "compacted", "indexed") if getattr(self, name)]
        return "-".join([f"{self.files}-files", *marks])


PLAIN = Shape()
SHAPES = (
    PLAIN,
    Shape(files=3),
    Shape(files=2, indexed=True),
    Shape(files=2, scarred=True),
    Shape(files=3, scarred=True, compacted=True, indexed=True),
)


def write_graph(root: Path, schema: str | Catalog, data: Data, shape: Shape = PLAIN) -> Snapshot:
    """A graph with these rows. Node ids are their `id`, or the value of their single key."""
    catalog = compile_schema(schema) if isinstance(schema, str) else schema
    tables: dict[int, TableVersion] = {}
    for table in catalog.tables():
        if table.name in data:
            rows = [_with_id(table, row, n) for n, row in enumerate(data[table.name])]
            tables[table.id] = _write(root, table, rows, shape)
    return Snapshot(parse_location(root), "main", f"commit-{root.name}", 1, catalog, tables)


def typed_data(catalog: Catalog, data: Data) -> dict[str, list[dict[str, Any]]]:
    """Rows from JSON or YAML with days and instants as Python values."""
    found: dict[str, list[dict[str, Any]]] = {}
    for table in catalog.tables():
        kinds = {p.name: p.type.kind for p in table.properties}
        found[table.name] = [
            {name: _typed(kinds.get(name), value) for name, value in row.items()}
            for row in data.get(table.name, [])
        ]
    return found


def _typed(kind: Kind | None, value: Any) -> Any:
    if kind is Kind.DATE and isinstance(value, str):
        return date.fromisoformat(value)
    if kind is Kind.DATETIME and isinstance(value, str):
        return datetime.fromisoformat(value)
    if kind is Kind.F32 and value is not None:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    return value


def _with_id(table: NodeType | EdgeType, row: Mapping[str, Any], number: int) -> dict[str, Any]:
    found = dict(row)
    if isinstance(table, EdgeType):
        found.setdefault("id", f"{table.name.lower()}-{number:04d}")
        found["src"], found["dst"] = found.pop("from"), found.pop("to")
    elif "id" not in found:
        kinds = [table.by_name[name].type.kind for name in table.key]
        found["id"] = composite_key([found[name] for name in table.key], kinds)
    return found


def table_schema(table: NodeType | EdgeType) -> pa.Schema:
    fields = [pa.field("id", pa.string(), nullable=False)]
    if isinstance(table, EdgeType):
        fields += [pa.field(name, pa.string(), nullable=False) for name in ("src", "dst")]
    fields += [
        pa.field(p.column, p.type.to_arrow()) for p in table.properties if p.type.kind != Kind.BLOB
    ]
    return pa.schema(fields)


def _write(
    root: Path, table: NodeType | EdgeType, rows: list[dict[str, Any]], shape: Shape
) -> TableVersion:
    schema = table_schema(table)
    path = f"{table.directory}"
    uri = str(root / path)
    by_column = [{_column(table, name): value for name, value in row.items()} for row in rows]
    parts = list(_parts(by_column, shape.files))
    dataset = None
    for part in parts or [[]]:
        written = pa.Table.from_pylist(part, schema=schema)
        mode = "create" if dataset is None else "append"
        dataset = lance.write_dataset(written, uri, mode=mode, enable_stable_row_ids=True)
    assert dataset is not None
    if shape.scarred:
        dataset = _scar(dataset, by_column, schema)
    if shape.compacted:
        dataset.optimize.compact_files()
    if shape.indexed and by_column:
        _index(dataset, table)
    rows_found = dataset.count_rows()
    assert rows_found == len(rows)
    return TableVersion(table.id, path, None, dataset.version, 1, rows_found)


def _column(table: NodeType | EdgeType, name: str) -> str:
    found = table.get(name)
    return name if found is None else found.column


def _parts(rows: list[dict[str, Any]], files: int) -> Iterator[list[dict[str, Any]]]:
    size = max(1, -(-len(rows) // files))
    for first in range(0, len(rows), size):
        yield rows[first : first + size]


def _scar(dataset: Any, rows: list[dict[str, Any]], schema: pa.Schema) -> Any:
    """Rewrite every third row in place, and add rows that are deleted again."""
    again = rows[::3]
    ghosts = [{**row, "id": f"ghost-{row['id']}"} for row in rows[:2]]
    for change in (again, ghosts):
        if change:
            (
                dataset.merge_insert("id")
                .when_matched_update_all()
                .when_not_matched_insert_all()
                .execute(pa.Table.from_pylist(change, schema=schema))
            )
    dataset.delete("id LIKE 'ghost-%'")
    return dataset


def _index(dataset: Any, table: NodeType | EdgeType) -> None:
    dataset.create_scalar_index("id", "BTREE")
    if isinstance(table, EdgeType):
        dataset.create_scalar_index("src", "BTREE")
        dataset.create_scalar_index("dst", "BTREE")
    for prop in table.properties:
        if prop.type.is_orderable:
            dataset.create_scalar_index(prop.column, "BTREE")
