"""Reading one part of an input, in a task: bytes or columns in, blocks of rows out.

Guarantees: memory is bounded by a block (or a row group), whatever the size of the part; numbers of
lines and records count from the beginning of the part; rows keep the names of their properties.
Deliberately absent: checks, and knowledge of other parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from omnigraph.engines.spark.splits import Split
from omnigraph.errors import InvalidDataError, Violation
from omnigraph.model.catalog import Catalog
from omnigraph.plan.checks import TableType
from omnigraph.plan.delimited import read_cells
from omnigraph.plan.envelopes import BLOCK_BYTES, Block, Parsed, read_block
from omnigraph.plan.findings import Findings, Origin
from omnigraph.plan.identities import with_named_ends
from omnigraph.plan.sources import SourceFormat, name_columns
from omnigraph.storage.inputs import open_input
from omnigraph.storage.lance_inputs import scan_part

BATCH_ROWS = 65_536
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_split(catalog: Catalog, split: Split) -> Iterator[tuple[Block, bytes | None]]:
    """The blocks of a part, each with its bytes if it is text."""
    if split.how.format is SourceFormat.JSONL:
        yield from _read_jsonl(catalog, split)
        return
    table = catalog.table(split.how.table_id or 0)
    assert table is not None  # the driver chose it from this very catalog
    for block in _read_columns(table, split):
        yield block, None


def _read_jsonl(catalog: Catalog, split: Split) -> Iterator[tuple[Block, bytes]]:
    line, record = 1, 0
    for data in text_blocks(split):
        block = read_block(catalog, data, file=split.file, line=line, record=record)
        yield block, data
        line, record = line + block.lines, record + block.records


def text_blocks(split: Split) -> Iterator[bytes]:
    """Whole lines, about `BLOCK_BYTES` at a time."""
    with open_input(split.file) as handle:
        if split.how.compression is None:
            yield from lines_between(handle, split.start, split.end)
        else:
            with pa.CompressedInputStream(
                pa.PythonFile(handle, "r"), split.how.compression
            ) as stream:
                yield from lines_between(stream, 0, None)


def lines_between(
    handle: Any, start: int, end: int | None, size: int = BLOCK_BYTES
) -> Iterator[bytes]:
    """The lines that begin at `start` or later and before `end`."""
    at = max(0, start - 1)  # a line begins at `start` if the byte before it ends one
    if at:
        handle.seek(at)
    held, skipping = b"", start > 0
    while True:
        more = bytes(handle.read(size))
        held += more
        if skipping:
            first = held.find(b"\n")
            if first < 0:
                at, held = at + len(held), b""
                if not more:
                    return
                continue
            at, held, skipping = at + first + 1, held[first + 1 :], False
        if end is not None and at >= end:
            return
        cut = held.find(b"\n", max(0, end - 1 - at)) if end is not None else -1
        if cut >= 0 or not more:
            yield from _not_empty(held[: cut + 1] if cut >= 0 else held, at)
            return
        whole = held.rfind(b"\n") + 1
        if whole:
            yield from _not_empty(held[:whole], at)
            at, held = at + whole, held[whole:]


def _not_empty(data: bytes, at: int) -> Iterator[bytes]:
    data = data.removeprefix(_BYTE_ORDER_MARK) if at == 0 else data
    if data:
        yield data


# Columns.


def _read_columns(table: TableType, split: Split) -> Iterator[Block]:
    record = 0
    is_text = split.how.format is SourceFormat.CSV
    for batch in _batches(split):
        rows = name_columns(pa.Table.from_batches([batch]), split.how.columns)
        rows = with_named_ends(table, rows)
        numbers = np.arange(record, record + rows.num_rows)
        # A header is the first line; cells that span lines make later numbers too small.
        origin = Origin(numbers, numbers + 2 if is_text else None, _named(split))
        findings = Findings()
        if is_text:
            rows, good = read_cells(table, rows, origin, findings)
            origin = origin.take(good)
        record += batch.num_rows
        parsed = (Parsed(table, rows, origin),) if rows.num_rows else ()
        yield Block(parsed, findings, batch.num_rows, batch.num_rows)


def _named(split: Split) -> str | None:
    return None if split.scratch else split.file


def _batches(split: Split) -> Iterator[pa.RecordBatch]:
    try:
        if split.how.format is SourceFormat.LANCE:
            yield from scan_part(split.file, split.start, split.end or 0, BATCH_ROWS)
            return
        with open_input(split.file) as handle:
            yield from _READERS[split.how.format](handle, split)
    except pa.ArrowInvalid as error:
        reason = str(error).splitlines()[0]
        violation = Violation("file", f"the file cannot be read: {reason}", file=split.file)
        raise InvalidDataError(f"{violation}.", violations=[violation]) from error


def _parquet(handle: Any, split: Split) -> Iterator[pa.RecordBatch]:
    file = pq.ParquetFile(handle)
    groups = range(split.start, file.num_row_groups if split.end is None else split.end)
    yield from file.iter_batches(batch_size=BATCH_ROWS, row_groups=list(groups))


def _arrow(handle: Any, split: Split) -> Iterator[pa.RecordBatch]:
    magic = bytes(handle.read(6))
    handle.seek(0)
    if magic == b"ARROW1":
        reader = pa.ipc.open_file(handle)
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number)
    else:
        yield from pa.ipc.open_stream(handle)


def _csv(handle: Any, split: Split) -> Iterator[pa.RecordBatch]:
    source = handle
    if split.how.compression is not None:
        source = pa.CompressedInputStream(pa.PythonFile(handle, "r"), split.how.compression)
    with source:
        names = _header(split)
        yield from pacsv.open_csv(
            source,
            read_options=pacsv.ReadOptions(block_size=BLOCK_BYTES),
            parse_options=pacsv.ParseOptions(
                delimiter=split.how.delimiter, newlines_in_values=True
            ),
            convert_options=pacsv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )


def _header(split: Split) -> list[str]:
    """The names of the columns; every column is read as text."""
    with open_input(split.file) as handle:
        source = handle
        if split.how.compression is not None:
            source = pa.CompressedInputStream(pa.PythonFile(handle, "r"), split.how.compression)
        with source:
            reader = pacsv.open_csv(
                source,
                parse_options=pacsv.ParseOptions(
                    delimiter=split.how.delimiter, newlines_in_values=True
                ),
            )
            return list(reader.schema.names)


_READERS = {SourceFormat.PARQUET: _parquet, SourceFormat.ARROW: _arrow, SourceFormat.CSV: _csv}
