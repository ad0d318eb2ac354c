"""Export of a snapshot on executors: each task writes some files of one table.

Guarantees: rows do not pass through the driver; a task that is repeated writes the same file again;
rows are in table order, and parts are numbered in that order.
Deliberately absent: forms of rows (`intake.outputs`), and which snapshot.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph.bulk.runner import Measure, Runner
from omnigraph.bulk.stagedkeys import CommittedKeys, shares
from omnigraph.intake.outputs import output_columns, to_delimited, to_lines, to_named
from omnigraph.model.location import Location
from omnigraph.model.snapshot import Snapshot
from omnigraph.rows.checks import TableType
from omnigraph.storage.distributed import list_files, scan_files
from omnigraph.storage.inputs import write_output

# A part of an export holds about as many rows.
_PART_ROWS = 500_000


@dataclass(frozen=True)
class ExportTask:
    table: TableType
    source: CommittedKeys
    format: str
    address: str
    ids: pa.Array | None = None  # of the visible rows; None: all

    def run(self) -> Written:
        """Write one file."""
        batches = scan_files(
            self.source.location,
            self.source.version,
            [number for number, _ in self.source.files],
            output_columns(self.table),
            whole_blobs=bool(self.table.blob_properties),
            ids=self.ids,
        )
        data, rows = ENCODERS[self.format](self.table, batches)
        write_output(self.address, data)
        return Written(rows, len(data))


@dataclass(frozen=True, slots=True)
class Written:
    rows: int
    bytes: int


def _run(task: ExportTask) -> Written:
    return task.run()


def export_snapshot(
    runner: Runner,
    location: Location,
    snapshot: Snapshot,
    tables: Sequence[TableType],
    folder: str,
    format: str,
    visible: Callable[[TableType], pa.Array | None] = lambda table: None,
) -> dict[str, int]:
    """Write tables below a folder, each into a folder of its own name; rows by type. `visible`
    gives the ids of the visible rows of a table, or None for all."""
    tasks: list[ExportTask] = []
    for table in tables:
        version = snapshot.table(table.id)
        files = list_files(location, version) if version and version.rows else []
        most = max(runner.width, -(-sum(rows for _, rows in files) // _PART_ROWS))
        ids = visible(table)
        for number, share in enumerate(shares(files, _rows, most)):
            assert version is not None
            source = CommittedKeys(location, version, tuple(share))
            address = f"{folder}/{table.name}/part-{number:05d}.{format}"
            tasks.append(ExportTask(table, source, format, address, ids))
    measure = Measure(rows=attrgetter("rows"), bytes=attrgetter("bytes"), of_answers=True)
    written = runner.run(_run, tasks, "write files", measure)
    found = {table.name: 0 for table in tables}
    for task, file in zip(tasks, written, strict=True):
        found[task.table.name] += file.rows
    return found


def _rows(file: tuple[int, int]) -> int:
    return file[1]


Encoder = Callable[[TableType, Iterator[pa.RecordBatch]], tuple[bytes, int]]


def _jsonl(table: TableType, batches: Iterator[pa.RecordBatch]) -> tuple[bytes, int]:
    out, rows = bytearray(), 0
    for batch in batches:
        out += to_lines(table, pa.Table.from_batches([batch]))
        rows += batch.num_rows
    return bytes(out), rows


def _csv(table: TableType, batches: Iterator[pa.RecordBatch]) -> tuple[bytes, int]:
    out, rows = bytearray(), 0
    for number, batch in enumerate(batches):
        out += to_delimited(table, pa.Table.from_batches([batch]), header=number == 0)
        rows += batch.num_rows
    return bytes(out), rows


def _parquet(table: TableType, batches: Iterator[pa.RecordBatch]) -> tuple[bytes, int]:
    out, rows, writer = io.BytesIO(), 0, None
    for batch in batches:
        named = to_named(table, pa.Table.from_batches([batch]))
        if writer is None:
            writer = pq.ParquetWriter(out, named.schema, compression="zstd")
        writer.write_table(named)
        rows += batch.num_rows
    if writer is not None:
        writer.close()
    return out.getvalue(), rows


def _arrow(table: TableType, batches: Iterator[pa.RecordBatch]) -> tuple[bytes, int]:
    out, rows, writer = io.BytesIO(), 0, None
    for batch in batches:
        named = to_named(table, pa.Table.from_batches([batch]))
        if writer is None:
            writer = pa.ipc.new_file(out, named.schema)
        writer.write_table(named)
        rows += batch.num_rows
    if writer is not None:
        writer.close()
    return out.getvalue(), rows


ENCODERS: dict[str, Encoder] = {
    "jsonl": _jsonl,
    "csv": _csv,
    "parquet": _parquet,
    "arrow": _arrow,
}
