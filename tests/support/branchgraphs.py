"""Graphs with branches for tests of diff, merge and the change feed.

`put` and `take_away` write through staging and the door as every operation does, without a query
language; `content` reads a whole state back as plain values, by type and property name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from tests.support.doorgraph import commit

from omnigraph.history.refs import MAIN, read_branch
from omnigraph.history.resolve import Target, resolve
from omnigraph.model.commit import Commit, CommitKind, Proposal
from omnigraph.model.snapshot import Snapshot
from omnigraph.operations.context import Context
from omnigraph.operations.lifecycle import init_graph
from omnigraph.rows.checks import logical_schema
from omnigraph.storage.stagedwrites import NO_ROWS, Stager
from omnigraph.storage.table import open_table
from omnigraph.storage.versiondiff import row_addresses, rows_by_id

SCHEMA = """
node Person {
  name: String @key
  age: I32? @range(0..200)
  city: String?
  email: String? @unique
  score: F64?
  tags: [String]?
  face: Vector(2)?
  photo: Blob?
}

node Company {
  name: String @key
}

edge Knows: Person -> Person {
  since: I32?
}

edge WorksAt: Person -> Company @card(0..1) {
  role: String?
}
"""

Rows = Sequence[Mapping[str, Any]]
ACTOR = "act-anna"


def new_graph(uri: str, schema: str = SCHEMA) -> Context:
    return init_graph(uri, schema, actor=ACTOR)


def put(
    context: Context,
    tables: Mapping[str, Rows],
    branch: str = MAIN,
    removed: Mapping[str, Iterable[str]] | None = None,
    message: str = "",
) -> Commit:
    """Upsert rows (`id`, for edges `src` and `dst`, and properties by name) and remove ids, in
    one commit."""
    root = context.root
    base = resolve(root, Target(branch))
    stager = Stager(root, read_branch(root, branch).id)
    gone = {name: list(ids) for name, ids in (removed or {}).items()}
    staged = []
    for name in dict.fromkeys([*tables, *gone]):
        table = base.catalog.node(name) or base.catalog.edge(name)
        assert table is not None, name
        version = base.table(table.id)
        columns = {item.name: item.column for item in table.properties}
        rows = [
            {columns.get(key, key): value for key, value in row.items()}
            for row in tables.get(name, ())
        ]
        data = pa.Table.from_pylist(rows, schema=logical_schema(table))
        doomed = NO_ROWS
        if version is not None:
            ids = [*data.column("id").to_pylist(), *gone.get(name, [])]
            found = rows_by_id(root, version, ids, ["id"])
            doomed = row_addresses(root, version, found.column("_rowid").to_numpy())
        staged.append(stager.change(table, version, data, doomed))
    return commit(root, Proposal(base, tuple(staged), context.actor, CommitKind.MUTATE, message))


def person(name: str, **properties: Any) -> dict[str, Any]:
    return {"id": name, "name": name, **properties}


def company(name: str) -> dict[str, Any]:
    return {"id": name, "name": name}


def edge(id_: str, src: str, dst: str, **properties: Any) -> dict[str, Any]:
    return {"id": id_, "src": src, "dst": dst, **properties}


def content(context: Context, where: str | Snapshot = MAIN) -> dict[str, dict[str, dict[str, Any]]]:
    """Everything that a branch or snapshot holds: type, id, values. Null values are left out."""
    shown = resolve(context.root, Target(where)) if isinstance(where, str) else where
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for table in shown.catalog.tables():
        version = shown.table(table.id)
        if version is None or version.rows == 0:
            continue
        names = {item.column: item.name for item in table.properties}
        opened = open_table(context.root.location, version)
        there = [name for name in logical_schema(table).names if name in opened.schema.names]
        rows = opened.read(there, whole_blobs=True).to_pylist()
        assert len(rows) == version.rows, f"the row count of {table.name} is wrong"
        found[table.name] = {
            row["id"]: {
                names.get(key, key): value
                for key, value in row.items()
                if key != "id" and value is not None
            }
            for row in sorted(rows, key=lambda row: row["id"])
        }
        assert len(found[table.name]) == len(rows), f"ids repeat in {table.name}"
    return found
