"""JSONL envelopes: bytes in, Arrow batches per type and violations out.

Lines are routed by the type that they begin with, and each type's lines go through Arrow's JSON
reader with the type's own schema, which is strict and fast. Only lines that it refuses are read
one by one (`records`), for the field and the reason.

Guarantees: pure functions of bytes and catalog, so that a file may be cut at line ends and its
parts read anywhere; record and line numbers are exact; both ways of reading give the same rows.
Deliberately absent: rules of the schema (`rows.checks`); rows come out with properties by name,
some of them (dates, vectors, blobs) still in the form that JSON gives them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from omnigraph.intake.records import Record, read_line, unknown_type
from omnigraph.model.catalog import DST_COLUMN, ID_COLUMN, SRC_COLUMN, Catalog, EdgeType
from omnigraph.model.types import FLOAT_KINDS, Kind, ValueType
from omnigraph.rows.checks import TableType
from omnigraph.rows.columns import combined
from omnigraph.rows.findings import Findings, Numbers, Origin

BLOCK_BYTES = 8 << 20
_READ_BYTES = 1 << 20
# More kinds of beginnings than this in one block: the rest is read line by line.
_MOST_BEGINNINGS = 256
_BEGINNING = re.compile(rb'\{\s*"(type|edge)"\s*:\s*"([^"\\]*)"')
_NEWLINE, _RETURN, _OPEN, _CLOSE = b"\n\r{}"
_TEXT = pa.string()
_BLANK = b" \t\r\n"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Parsed:
    """Rows of one type with their properties by name, and where each of them came from."""

    table: TableType
    rows: pa.Table
    origin: Origin


@dataclass(frozen=True)
class Block:
    """What a stretch of whole lines holds."""

    parsed: tuple[Parsed, ...]
    findings: Findings
    lines: int
    records: int


def read_blocks(
    catalog: Catalog, data: bytes | memoryview, file: str | None = None, *, numbered: bool = True
) -> Iterator[Block]:
    """The whole of an input, block by block. Without `numbered`, its lines have no numbers."""
    line, record = 1, 0
    for part in split_lines(data):
        first_line = line if numbered else None
        block = read_block(catalog, part, file=file, line=first_line, record=record)
        yield block
        line, record = line + block.lines, record + block.records


def split_lines(data: bytes | memoryview, size: int = BLOCK_BYTES) -> Iterator[bytes]:
    """Cut at line ends, into parts of about `size` bytes."""
    whole = bytes(data) if isinstance(data, memoryview) else data
    at = len(_BYTE_ORDER_MARK) if whole.startswith(_BYTE_ORDER_MARK) else 0
    while at < len(whole):
        end = whole.find(b"\n", at + size - 1)
        end = len(whole) if end < 0 else end + 1
        yield whole[at:end]
        at = end


def read_block(
    catalog: Catalog,
    block: bytes,
    *,
    file: str | None = None,
    line: int | None = 1,
    record: int = 0,
) -> Block:
    """A stretch of whole lines, the first of which has these numbers in the whole input."""
    lines = _Lines(block, file, line, record)
    reader = _BlockReader(catalog, lines)
    reader.read()
    return Block(tuple(reader.parsed), reader.findings, lines.count, lines.records)


class _Lines:
    """The lines of a block as an Arrow array over its bytes, and what numbers they have."""

    def __init__(self, block: bytes, file: str | None, line: int | None, record: int) -> None:
        if not block.endswith(b"\n"):
            block += b"\n"
        content = np.frombuffer(block, np.uint8)
        ends = np.flatnonzero(content == _NEWLINE)
        starts = np.concatenate([[0], ends[:-1] + 1])
        offsets = pa.py_buffer(np.concatenate([starts, [len(block)]]).astype(np.int32))
        self.count = len(ends)
        self.text = pa.Array.from_buffers(
            pa.binary(), self.count, [None, offsets, pa.py_buffer(block)]
        )
        # A line that is one object from its first byte to its last can be read fast.
        last = ends - 1 - ((ends > starts) & (content[ends - 1] == _RETURN))
        self.plain = (content[starts] == _OPEN) & (content[np.maximum(last, starts)] == _CLOSE)
        blank = np.zeros(self.count, bool)
        for at in np.flatnonzero(~self.plain):
            blank[at] = not block[starts[at] : ends[at]].strip(_BLANK)
        self.odd = ~self.plain & ~blank
        self.records = int(np.count_nonzero(~blank))
        self._record_of = record + np.cumsum(~blank) - 1
        self._first_line = line
        self._file = file
        self._longest = int((ends - starts).max()) if self.count else 0

    @property
    def read_bytes(self) -> int:
        """How much the JSON reader must take at a time to hold any line whole."""
        return max(_READ_BYTES, self._longest + 2)

    def origin(self, places: Numbers) -> Origin:
        lines = None if self._first_line is None else places + self._first_line
        return Origin(self._record_of[places], lines, self._file)


class _BlockReader:
    def __init__(self, catalog: Catalog, lines: _Lines) -> None:
        self._catalog = catalog
        self._lines = lines
        self.parsed: list[Parsed] = []
        self.findings = Findings()

    def read(self) -> None:
        rest = np.flatnonzero(self._lines.plain)
        text = self._lines.text.take(pa.array(rest))
        strange: list[Numbers] = [np.flatnonzero(self._lines.odd)]
        for _ in range(_MOST_BEGINNINGS):
            if not len(rest):
                break
            beginning = _BEGINNING.match(text[0].as_py())
            if beginning is None:
                strange.append(rest[:1])
                rest, text = rest[1:], text[1:]
                continue
            alike = pc.starts_with(text, pattern=beginning.group(0))
            chosen = alike.to_numpy(zero_copy_only=False)
            key, name = beginning.group(1).decode(), beginning.group(2)
            self._read_type(key, name, rest[chosen], text.filter(alike))
            rest, text = rest[~chosen], text.filter(pc.invert(alike))
        strange.append(rest)
        self._read_each(np.sort(np.concatenate(strange)))

    def _read_type(self, key: str, name: bytes, places: Numbers, text: pa.Array) -> None:
        """Lines that begin with one type."""
        try:
            spelled = name.decode("utf-8")
        except UnicodeDecodeError:
            self._read_each(places)
            return
        table = self._catalog.node(spelled) if key == "type" else self._catalog.edge(spelled)
        if table is None:
            violation = unknown_type(self._catalog, key, spelled)
            # One of them may be broken in other ways too; that it has no type is enough.
            origin = self._lines.origin(places)
            self.findings.add_each(np.arange(len(places)), origin, violation)
            return
        rows = _read_fast(table, text, self._lines.read_bytes)
        if rows is None or not self._leaves_data_out(rows, text):
            self._read_each(places)
            return
        self.parsed.append(Parsed(table, _flattened(table, rows), self._lines.origin(places)))

    def _leaves_data_out(self, rows: pa.Table, text: pa.Array) -> bool:
        """Whether lines without data say nothing of it. Arrow does not tell that from null."""
        data = rows.column("data")
        if not data.null_count:
            return True
        bare = text.filter(combined(pc.is_null(data)))
        named = pc.or_(pc.match_substring(bare, '"data"'), pc.match_substring(bare, "\\"))
        return all(
            isinstance(read_line(self._catalog, line), Record)
            for line in bare.filter(named).to_pylist()
        )

    def _read_each(self, places: Numbers) -> None:
        """Line by line."""
        found: dict[int, list[tuple[int, Record]]] = {}
        for place in places.tolist():
            line = self._lines.text[place].as_py().rstrip(b"\r\n")
            outcome = read_line(self._catalog, line)
            if isinstance(outcome, Record):
                found.setdefault(outcome.table.id, []).append((place, outcome))
                continue
            origin = self._lines.origin(np.array([place]))
            for violation in outcome:
                self.findings.add_each([0], origin, violation)
        for records in found.values():
            origin = self._lines.origin(np.array([place for place, _ in records], np.int64))
            self.parsed.append(_tabulated([record for _, record in records], origin))


def _tabulated(records: list[Record], origin: Origin) -> Parsed:
    table = records[0].table
    names = {name for record in records for name in record.values}
    columns = {
        name: pa.array([record.values.get(name) for record in records], _column_type(table, name))
        for name in sorted(names)
    }
    # A table without columns would forget how many rows it has.
    columns.setdefault(ID_COLUMN, pa.nulls(len(records), pa.string()))
    return Parsed(table, pa.table(columns), origin)


def _column_type(table: TableType, name: str) -> pa.DataType:
    item = table.by_name.get(name)
    return pa.string() if item is None else item.type.to_arrow()


def _read_fast(table: TableType, text: pa.Array, read_bytes: int) -> pa.Table | None:
    """Lines of one type through Arrow's reader, with dates as texts or as numbers throughout; None
    when it refuses one of them."""
    found = _read_by(_envelope_schema(table), text, read_bytes)
    if found is None and any(_holds_dates(item.type) for item in table.properties):
        found = _read_by(_envelope_schema(table, dates=pa.int64()), text, read_bytes)
    return found


def _holds_dates(type_: ValueType) -> bool:
    return (type_.item or type_.kind) in (Kind.DATE, Kind.DATETIME)


def _read_by(schema: pa.Schema, text: pa.Array, read_bytes: int) -> pa.Table | None:
    buffers = text.buffers()
    size = pa.Array.from_buffers(pa.int32(), len(text) + 1, [None, buffers[1]])[-1].as_py()
    try:
        found = pj.read_json(
            pa.BufferReader(buffers[2].slice(0, size)),
            read_options=pj.ReadOptions(block_size=read_bytes),
            parse_options=pj.ParseOptions(
                explicit_schema=schema,
                newlines_in_values=False,
                unexpected_field_behavior="error",
            ),
            # Arrow's usual pool would keep what the reader's threads took and gave back: more than
            # the rows themselves take.
            memory_pool=pa.system_memory_pool(),
        )
        found.validate(full=True)  # texts are checked to be UTF-8 here and nowhere before
    except pa.ArrowInvalid:
        return None
    # Each line is one object at both ends, so as many rows as lines means one row per line.
    return found if found.num_rows == len(text) else None


def _flattened(table: TableType, found: pa.Table) -> pa.Table:
    data = found.column("data")
    names = [ID_COLUMN, *table.by_name]
    parts = [chunk.flatten() for chunk in data.chunks]
    columns: dict[str, Any] = {
        name: pa.chunked_array([part[at] for part in parts]) for at, name in enumerate(names)
    }
    if isinstance(table, EdgeType):
        columns[SRC_COLUMN] = found.column("from")
        columns[DST_COLUMN] = found.column("to")
    return pa.table(columns)


@lru_cache(maxsize=1024)
def _envelope_schema(table: TableType, dates: pa.DataType = _TEXT) -> pa.Schema:
    fields = [pa.field(ID_COLUMN, pa.string())]
    fields += [pa.field(item.name, _json_type(item.type, dates)) for item in table.properties]
    data = pa.field("data", pa.struct(fields))
    if isinstance(table, EdgeType):
        ends = [pa.field("from", pa.string()), pa.field("to", pa.string())]
        return pa.schema([pa.field("edge", pa.string()), *ends, data])
    return pa.schema([pa.field("type", pa.string()), data])


def _json_type(type_: ValueType, dates: pa.DataType) -> pa.DataType:
    """What to read a property as. Doubles are narrowed later, so that both ways round alike."""
    if type_.kind is Kind.VECTOR:
        return pa.list_(pa.float64())
    if type_.kind is Kind.LIST:
        assert type_.item is not None
        return pa.list_(_json_scalar(type_.item, dates))
    return _json_scalar(type_.kind, dates)


def _json_scalar(kind: Kind, dates: pa.DataType) -> pa.DataType:
    if kind in FLOAT_KINDS:
        return pa.float64()
    if kind in (Kind.DATE, Kind.DATETIME):
        return dates
    if kind is Kind.BLOB:
        return pa.string()
    return ValueType(kind).to_arrow()


def join_lines(lines: Iterable[str | bytes]) -> bytes:
    """Envelopes that come one by one, as one input."""
    encoded = (line.encode() if isinstance(line, str) else bytes(line) for line in lines)
    return b"\n".join(line.rstrip(b"\r\n") for line in encoded)
