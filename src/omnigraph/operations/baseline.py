"""A whole state as records, to begin a change feed with.

    {"type": "Person", "data": {"id": "anna", "name": "anna", "age": 30}}
    {"edge": "Knows", "from": "anna", "to": "bob", "data": {"id": "01J…"}}
    {"baseline": {"snapshot_commit_id": "01J…", "resume_cursor": "…"}}

The records are those that `load` reads. The last one is written only after all others, so that a
stream that broke off never gives a cursor.

Guarantees: one state, pinned; `install` leaves either the whole file or none.
Deliberately absent: the feed itself (`changes`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from omnigraph.engines.snapshotreader import visible_table
from omnigraph.merges.resolutions import plain
from omnigraph.model.catalog import DST_COLUMN, ID_COLUMN, SRC_COLUMN, EdgeType, NodeType
from omnigraph.model.change import EVERYTHING, ChangeFilter
from omnigraph.model.snapshot import Snapshot
from omnigraph.model.temporal import python_rows
from omnigraph.operations.changes import Baseline
from omnigraph.operations.context import Context
from omnigraph.operations.requests import CaptureBaseline, InstallBaseline, StreamBaseline
from omnigraph.operations.verbs import run
from omnigraph.rows.checks import logical_schema
from omnigraph.storage.failures import translated
from omnigraph.storage.inputs import output_address
from omnigraph.storage.root import GraphRoot

_BATCH = 4096


def stream_baseline(context: Context, request: StreamBaseline) -> Iterator[dict[str, Any]]:
    """Every entity of the branch's newest state, then the cursor that goes on from there."""
    captured = run(context, CaptureBaseline(request.branch, request.filter))
    yield from records(context.root, captured.snapshot, request.filter)
    yield terminal(captured)


def records(
    root: GraphRoot, snapshot: Snapshot, filter: ChangeFilter = EVERYTHING
) -> Iterator[dict[str, Any]]:
    """Every entity of a state, nodes before edges. Operations in the filter do not matter here."""
    for table in snapshot.catalog.tables():
        version = snapshot.table(table.id)
        if version is None or not filter.wants_type(table.kind, table.name):
            continue
        opened = visible_table(snapshot, table)
        assert opened is not None
        columns = [name for name in logical_schema(table).names if name in opened.schema.names]
        for batch in opened.scan(columns, batch_rows=_BATCH, whole_blobs=True):
            yield from (_record(table, row) for row in python_rows(batch))


def terminal(captured: Baseline) -> dict[str, Any]:
    return {
        "baseline": {
            "snapshot_commit_id": captured.snapshot.commit_id,
            "resume_cursor": captured.cursor,
        }
    }


def install(context: Context, request: InstallBaseline) -> Baseline:
    """Write the state to a file, durably and in one step; only then is the cursor handed out."""
    target = Path(output_address(str(request.path)))
    captured = run(context, CaptureBaseline(request.branch, request.filter))
    with translated("write", str(target)):
        _write_durably(target, records(context.root, captured.snapshot, request.filter))
    return captured


def _write_durably(target: Path, found: Iterator[dict[str, Any]]) -> None:
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        with partial.open("w", encoding="utf-8") as file:
            for record in found:
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
            file.flush()
            os.fsync(file.fileno())
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    _sync_directory(target.parent)


def _sync_directory(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _record(table: NodeType | EdgeType, row: dict[str, Any]) -> dict[str, Any]:
    names = {item.column: item.name for item in table.properties}
    ends = (SRC_COLUMN, DST_COLUMN) if isinstance(table, EdgeType) else ()
    data = {ID_COLUMN: row[ID_COLUMN]}
    for key, value in row.items():
        if key not in (ID_COLUMN, *ends) and value is not None:
            data[names[key]] = plain(value)
    if isinstance(table, EdgeType):
        return {"edge": table.name, "from": row[SRC_COLUMN], "to": row[DST_COLUMN], "data": data}
    return {"type": table.name, "data": data}
