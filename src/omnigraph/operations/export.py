"""Writing a snapshot out as files that can be loaded again.

    export(context, "shop.jsonl")                     one file: nodes, then edges
    export(context, "out/", format="parquet")         one file for each type
    export(context, "s3://b/out", engine="spark")     folders of parts, written by executors

Guarantees: one snapshot, pinned at the beginning; the embedded engine orders rows by id, so equal
graphs give equal files; loading an export into an empty graph gives the same rows and ids.
Deliberately absent: history. An export is one state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa

from omnigraph import progress
from omnigraph.bulk.export import ENCODERS, export_snapshot
from omnigraph.engines.snapshotreader import SnapshotReader, visible_ids, visible_table
from omnigraph.engines.spark.jobevents import ProgressEvent, Watch
from omnigraph.engines.spark.session import get_session
from omnigraph.engines.spark.settings import SparkSettings
from omnigraph.engines.spark.sparkrunner import SparkRunner
from omnigraph.errors import AlreadyExistsError, InvalidArgumentError
from omnigraph.intake.outputs import output_columns, to_lines
from omnigraph.intake.typedrows import find_type
from omnigraph.model.catalog import ID_COLUMN, Catalog
from omnigraph.model.snapshot import Snapshot, TableVersion
from omnigraph.operations.context import Context
from omnigraph.operations.requests import Export, ExportLines
from omnigraph.rows.checks import TableType
from omnigraph.storage.inputs import open_output, output_address, output_exists, write_output
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.versiondiff import ROW_ID, take_rows

SPARK, EMBEDDED = "spark", "embedded"
_BATCH_ROWS = 65_536
# Larger tables are not held whole; fetching rows by their number takes longer than reading all.
_WHOLE_ROWS, _WHOLE_BLOB_ROWS = 2_000_000, 20_000
_BLOB_ROWS = 4096


@dataclass(frozen=True)
class ExportOptions:
    """`types` empty: all. `overwrite`: the place need not be empty."""

    format: str | None = None
    types: tuple[str, ...] = ()
    engine: str = EMBEDDED
    overwrite: bool = False
    spark: SparkSettings | None = None
    progress: Callable[[ProgressEvent], None] | None = None


@dataclass(frozen=True)
class ExportResult:
    """The result of an export: rows by type, the commit, and the target."""

    commit_id: str
    place: str
    rows: dict[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {"commit": self.commit_id, "place": self.place, "rows": self.rows}


def export(context: Context, request: Export) -> ExportResult:
    """Write a snapshot to a file or a folder."""
    chosen = request.options or ExportOptions()
    format_, single = _form(request.place, chosen)
    address = output_address(request.place)
    if output_exists(address) and not chosen.overwrite:
        raise AlreadyExistsError(
            f"{request.place} exists already.",
            hint="Name another place, or allow it to be overwritten.",
        )
    snapshot = context.snapshot(request.target)
    tables = _tables(snapshot.catalog, chosen.types)
    if chosen.engine == SPARK:
        rows = _on_spark(context, snapshot, tables, address, format_, chosen)
    elif single:
        rows = _to_file(snapshot, tables, address)
    else:
        rows = _to_folder(snapshot, tables, address, format_)
    return ExportResult(snapshot.commit_id, request.place, rows)


def lines(context: Context, request: ExportLines) -> Iterator[bytes]:
    """A snapshot as JSONL, piece by piece: nodes before edges, each by type and id."""
    snapshot = context.snapshot(request.target)
    for _, _, text in _as_lines(snapshot, _tables(snapshot.catalog, request.types)):
        yield text


def _form(place: str, options: ExportOptions) -> tuple[str, bool]:
    """The format, and whether the place is one file."""
    single = place.lower().endswith((".jsonl", ".ndjson"))
    format_ = options.format or "jsonl"
    if format_ not in ENCODERS:
        raise InvalidArgumentError(
            f"There is no format {format_!r}.", hint=f"Use one of {', '.join(ENCODERS)}."
        )
    if options.engine not in (SPARK, EMBEDDED):
        raise InvalidArgumentError(
            f"There is no engine {options.engine!r}.", hint=f"Use {SPARK} or {EMBEDDED}."
        )
    if single and (format_ != "jsonl" or options.engine == SPARK):
        raise InvalidArgumentError(
            "Only JSONL from the embedded engine goes into one file.",
            hint="Name a folder instead.",
        )
    return format_, single


def _tables(catalog: Catalog, types: Sequence[str]) -> list[TableType]:
    if not types:
        return list(catalog.tables())
    return [find_type(catalog, name) for name in types]


def _on_spark(
    context: Context,
    snapshot: Snapshot,
    tables: Sequence[TableType],
    address: str,
    format_: str,
    options: ExportOptions,
) -> dict[str, int]:
    runner = SparkRunner(get_session(options.spark), Watch(options.progress))
    return export_snapshot(
        runner,
        context.root.location,
        snapshot,
        tables,
        address.rstrip("/"),
        format_,
        partial(visible_ids, snapshot),
    )


def _to_file(snapshot: Snapshot, tables: Sequence[TableType], address: str) -> dict[str, int]:
    rows = {table.name: 0 for table in tables}
    with open_output(address) as out:
        for name, count, text in _as_lines(snapshot, tables):
            out.write(text)
            rows[name] += count
    return rows


def _as_lines(snapshot: Snapshot, tables: Sequence[TableType]) -> Iterator[tuple[str, int, bytes]]:
    """Pieces of JSONL, each with its type and how many rows it holds."""
    total, done, size = _count(snapshot, tables), 0, 0
    for table in tables:
        for batch in _sorted_rows(snapshot, table):
            text = to_lines(table, batch)
            yield table.name, batch.num_rows, text
            done, size = done + batch.num_rows, size + len(text)
            progress.report("export", done, total, rows=done, bytes=size)


def _to_folder(
    snapshot: Snapshot, tables: Sequence[TableType], address: str, format_: str
) -> dict[str, int]:
    rows: dict[str, int] = {}
    total = _count(snapshot, tables)
    for table in tables:
        done = sum(rows.values())
        progress.report("export", done, total, rows=done)
        batches = (b for rows in _sorted_rows(snapshot, table) for b in rows.to_batches())
        data, rows[table.name] = ENCODERS[format_](table, batches)
        if rows[table.name]:
            write_output(f"{address.rstrip('/')}/{table.name}.{format_}", data)
    return rows


def _count(snapshot: Snapshot, tables: Sequence[TableType]) -> int:
    reader = SnapshotReader(snapshot)
    return sum(reader.count(table) for table in tables)


def _sorted_rows(snapshot: Snapshot, table: TableType) -> Iterator[pa.Table]:
    version = snapshot.table(table.id)
    if version is None or version.rows == 0:
        return
    blobs = bool(table.blob_properties)
    if version.rows > (_WHOLE_BLOB_ROWS if blobs else _WHOLE_ROWS):
        yield from _sorted_pieces(snapshot, table, version, _BLOB_ROWS if blobs else _BATCH_ROWS)
        return
    opened = visible_table(snapshot, table)
    assert opened is not None
    rows = opened.read(output_columns(table), whole_blobs=blobs)
    rows = rows.sort_by(ID_COLUMN).combine_chunks()
    for first in range(0, rows.num_rows, _BATCH_ROWS):
        yield rows.slice(first, _BATCH_ROWS)


def _sorted_pieces(
    snapshot: Snapshot, table: TableType, version: TableVersion, size: int
) -> Iterator[pa.Table]:
    """The same for tables that would not fit: the order is found first, then rows are fetched."""
    opened, columns = visible_table(snapshot, table), output_columns(table)
    assert opened is not None
    order = opened.read([ID_COLUMN], with_row_id=True).sort_by(ID_COLUMN)
    numbers = order.column(ROW_ID).to_numpy()
    root = GraphRoot(snapshot.location)
    for first in range(0, len(numbers), size):
        rows = take_rows(root, version, numbers[first : first + size], columns)
        yield rows.select(columns).sort_by(ID_COLUMN)
