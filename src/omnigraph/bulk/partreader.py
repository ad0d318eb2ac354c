"""Reading one part of an input, in a task: bytes or columns in, blocks of rows out.

Guarantees: memory is bounded by a block (or a row group), whatever the size of the part; numbers of
lines and records count from the beginning of the part; rows keep the names of their properties.
Deliberately absent: checks, and knowledge of other parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph.bulk.splits import Split
from omnigraph.errors import InvalidDataError, Violation
from omnigraph.intake.buffers import refuse_repeated, sound_rows
from omnigraph.intake.csvrecords import Stretch, whole_records
from omnigraph.intake.delimited import read_cells, read_header, read_records
from omnigraph.intake.envelopes import BLOCK_BYTES, Block, Parsed, read_block
from omnigraph.intake.sources import SourceFormat, name_columns
from omnigraph.model.catalog import Catalog
from omnigraph.rows.checks import TableType
from omnigraph.rows.findings import Findings, Origin
from omnigraph.rows.identities import with_named_ends
from omnigraph.storage.inputs import open_input
from omnigraph.storage.lance_inputs import scan_part

BATCH_ROWS = 65_536
# So many refused records of a block are kept, for those who set them aside.
MOST_KEPT = 100_000
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_split(catalog: Catalog, split: Split) -> Iterator[tuple[Block, bytes | None]]:
    """The blocks of a part, each with its bytes if it is text."""
    if split.how.format is SourceFormat.JSONL:
        yield from _read_jsonl(catalog, split)
        return
    table = catalog.table(split.how.table_id or 0)
    assert table is not None  # the driver chose it from this very catalog
    read = _read_delimited if split.how.format is SourceFormat.CSV else _read_columns
    for block in read(table, split):
        yield block, None


def _read_jsonl(catalog: Catalog, split: Split) -> Iterator[tuple[Block, bytes]]:
    line, record = 1, 0
    for data in text_blocks(split):
        block = read_block(catalog, data, file=split.file, line=line, record=record)
        yield block, data
        line, record = line + block.lines, record + block.records


def text_blocks(split: Split) -> Iterator[bytes]:
    """Whole lines, about `BLOCK_BYTES` at a time."""
    with open_input(split.file) as handle, _decompressed(handle, split) as source:
        if split.how.compression is None:
            yield from lines_between(source, split.start, split.end)
        else:
            yield from lines_between(source, 0, None)


@contextmanager
def _decompressed(handle: Any, split: Split) -> Iterator[Any]:
    """The content of a file, which may be compressed as a whole."""
    if split.how.compression is None:
        yield handle
        return
    try:
        source = pa.PythonFile(handle, "r")
        with pa.CompressedInputStream(source, split.how.compression) as stream:
            yield stream
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(str(error).splitlines()[0], split) from error


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


# Delimited text.


def _read_delimited(table: TableType, split: Split) -> Iterator[Block]:
    delimiter, file = split.how.delimiter, _named(split)
    names: list[str] | None = None
    record = 0
    for found in whole_records(_text(split), delimiter, file):
        stretch: Stretch | None = found
        if names is None:
            names = read_header(found.first(), delimiter, file)
            refuse_repeated(table.name, names, file)
            stretch = found.without_first()
        if stretch is None:
            continue
        count = len(stretch.lines)
        origin = Origin(np.arange(record, record + count), stretch.lines, file)
        findings = Findings(MOST_KEPT)
        rows, good = read_records(table.name, names, stretch, delimiter, origin, findings)
        parsed = _parsed(table, split, rows, origin.take(good), findings)
        record += count
        yield Block(parsed, findings, count, count)
    if names is None:
        raise _unreadable("the file is empty", split)


def _text(split: Split) -> Iterator[bytes]:
    """The bytes of a file, `BLOCK_BYTES` at a time."""
    with open_input(split.file) as handle, _decompressed(handle, split) as source:
        while data := bytes(source.read(BLOCK_BYTES)):
            yield data


# Columns.


def _read_columns(table: TableType, split: Split) -> Iterator[Block]:
    record = 0
    for batch in _batches(split):
        origin = Origin(np.arange(record, record + batch.num_rows), None, _named(split))
        findings = Findings(MOST_KEPT)
        parsed = _parsed(table, split, pa.Table.from_batches([batch]), origin, findings)
        record += batch.num_rows
        yield Block(parsed, findings, batch.num_rows, batch.num_rows)


def _parsed(
    table: TableType, split: Split, rows: pa.Table, origin: Origin, findings: Findings
) -> tuple[Parsed, ...]:
    """Rows under the names of properties, without those that cannot be read."""
    rows, good = sound_rows(table.name, name_columns(rows, split.how.columns), origin, findings)
    origin = origin.take(good)
    rows = with_named_ends(table, rows)
    if split.how.format is SourceFormat.CSV:
        rows, good = read_cells(table, rows, origin, findings)
        origin = origin.take(good)
    return (Parsed(table, rows, origin),) if rows.num_rows else ()


def _named(split: Split) -> str | None:
    return None if split.scratch else split.file


def _batches(split: Split) -> Iterator[pa.RecordBatch]:
    try:
        if split.how.format is SourceFormat.LANCE:
            yield from scan_part(split.file, split.start, split.end or 0, BATCH_ROWS)
            return
        with open_input(split.file) as handle:
            yield from _READERS[split.how.format](handle, split)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(str(error).splitlines()[0], split) from error


def _unreadable(reason: str, split: Split) -> InvalidDataError:
    violation = Violation("file", f"the file cannot be read: {reason}", file=split.file)
    return InvalidDataError(f"{violation}.", violations=[violation])


def _parquet(handle: Any, split: Split) -> Iterator[pa.RecordBatch]:
    # Without reading ahead: a thread that still reads when the program ends would abort it.
    with pq.ParquetFile(handle, pre_buffer=False) as file:
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


_READERS = {SourceFormat.PARQUET: _parquet, SourceFormat.ARROW: _arrow}
