"""From an input to rows of the graph's types, each checked by itself and given its id.

Guarantees: every way in ends in the same strict checks (`rows.checks`), and every violation says
which record it is about, counted from 0 over the whole input.
Deliberately absent: other rows, committed or not (`rows.setchecks`).
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, TypeAlias

import numpy as np
import orjson
import pyarrow as pa

from omnigraph import headroom, progress
from omnigraph.errors import TypeNotFoundError, Violation
from omnigraph.intake.buffers import sound_rows
from omnigraph.intake.envelopes import BLOCK_BYTES, read_blocks
from omnigraph.intake.inputforms import Columns, Lines, Part, Records, refuse_more
from omnigraph.model.catalog import Catalog, EdgeType
from omnigraph.rows.checks import TYPE, TableType, check_rows
from omnigraph.rows.findings import Findings, Origin
from omnigraph.rows.identities import (
    ENDS,
    count_unnamed,
    identify,
    is_made,
    with_named_ends,
)
from omnigraph.rows.propertyvalues import BASE64_PREFIX

_OPTIONS = orjson.OPT_SERIALIZE_NUMPY
# orjson ends the process if it gets no memory; so often it is made sure that there is some.
_LINES_PER_LOOK = 1024


@dataclass(frozen=True)
class TypeRows:
    """Rows of one type. `fresh`: no id came along with them, all were made. `unnamed`: how many are
    edges that loading them again would not recognize."""

    table: TableType
    rows: pa.Table
    origin: Origin
    fresh: bool
    unnamed: int = 0


# Fills in what can be made from other values, before rows are checked.
EmbedRows: TypeAlias = Callable[[TableType, pa.Table], pa.Table]


def shape(
    catalog: Catalog,
    parts: Sequence[Part],
    findings: Findings,
    most_bytes: int,
    embed: EmbedRows | None = None,
    edge_key: Sequence[str] = (),
) -> dict[int, TypeRows]:
    """The rows of an input, by type."""
    shaper = _Shaper(catalog, findings, most_bytes, embed, edge_key)
    for part in parts:
        shaper.add(part)
    return shaper.finish()


def find_type(catalog: Catalog, name: str) -> TableType:
    found = catalog.node(name) or catalog.edge(name)
    if found is None:
        near = get_close_matches(name, [t.name for t in catalog.tables()], n=1)
        hint = f"Did you mean {near[0]}?" if near else None
        raise TypeNotFoundError(f"The graph has no type {name!r}.", hint=hint)
    return found


class _Shaper:
    def __init__(
        self,
        catalog: Catalog,
        findings: Findings,
        most_bytes: int,
        embed: EmbedRows | None,
        edge_key: Sequence[str],
    ) -> None:
        self._edge_key = edge_key
        self._catalog = catalog
        self._embed = embed
        self._findings = findings
        self._most_bytes = most_bytes
        self._records = 0
        self._pieces: dict[int, list[TypeRows]] = {}

    def add(self, part: Part) -> None:
        if isinstance(part, Columns):
            self._add_columns(part)
        elif isinstance(part, Records):
            self._add_lines(Lines(self._written(part)), numbered=False)
        else:
            self._add_lines(part, numbered=True)

    def finish(self) -> dict[int, TypeRows]:
        return {table_id: _joined(pieces) for table_id, pieces in self._pieces.items()}

    def _add_columns(self, part: Columns) -> None:
        table = find_type(self._catalog, part.type_name)
        first, self._records = self._records, self._records + part.rows.num_rows
        origin = Origin(np.arange(first, self._records))
        rows, good = sound_rows(table.name, part.rows, origin, self._findings)
        self._add_rows(table, with_named_ends(table, rows), origin.take(good))

    def _add_lines(self, part: Lines, *, numbered: bool) -> None:
        start, total = self._records, len(part.data)
        blocks = read_blocks(self._catalog, part.data, part.file, numbered=numbered)
        for number, block in enumerate(blocks, 1):
            headroom.require(BLOCK_BYTES, "input")
            seen = min(number * BLOCK_BYTES, total)  # all blocks but the last are of this size
            progress.report("read", seen, total, rows=self._records + block.records, bytes=seen)
            self._findings.merge(block.findings.moved(start))
            self._records += block.records
            for parsed in block.parsed:
                self._add_rows(parsed.table, parsed.rows, parsed.origin.moved(start))

    def _add_rows(self, table: TableType, data: pa.Table, origin: Origin) -> None:
        findings = Findings()
        data = data if self._embed is None else self._embed(table, data)
        rows = check_rows(table, data, origin, findings)
        made = is_made(table, rows, self._edge_key)
        unnamed = count_unnamed(table, rows, self._edge_key)
        if not findings:
            rows = identify(table, rows, origin, findings, self._edge_key)
        self._findings.merge(findings)
        if not findings:
            piece = TypeRows(table, rows, origin, made, unnamed)
            self._pieces.setdefault(table.id, []).append(piece)

    def _written(self, part: Records) -> bytes:
        """Dicts as lines, so that there is one way to read them."""
        table = None if part.type_name is None else find_type(self._catalog, part.type_name)
        lines: list[bytes] = []
        size = 0
        for number, item in enumerate(part.items, self._records):
            line = self._write(table, item, number)
            size += len(line) + 1
            refuse_more(size, self._most_bytes)
            if number % _LINES_PER_LOOK == 0:
                headroom.require(0, "input")
            lines.append(line)
        headroom.require(size, "input")
        return b"\n".join(lines)

    def _write(self, table: TableType | None, item: Mapping[str, Any], number: int) -> bytes:
        envelope = item if table is None else _envelope(table, item)
        try:
            _refuse_endless(envelope.get("data"))
            return orjson.dumps(envelope, default=_plain, option=_OPTIONS)
        except (TypeError, ValueError) as error:
            name = None if table is None else table.name
            violation = Violation(TYPE, f"a value cannot be read: {error}", name, record=number)
            self._findings.add(violation)
            # An empty object in its place keeps the count of records right; the input is refused.
            return b"{}"


def _envelope(table: TableType, row: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(table, EdgeType):
        return {"type": table.name, "data": row}
    data = dict(row)
    ends = {
        end: data.pop(end if end in data and end not in table.by_name else column, None)
        for end, column in ENDS.items()
    }
    return {"edge": table.name, **ends, "data": data}


def _refuse_endless(data: Any) -> None:
    # orjson would write them as null, and a mistake would pass for nothing.
    values: Iterable[Any] = data.values() if isinstance(data, Mapping) else ()
    for value in values:
        if isinstance(value, float) and math.isinf(value):
            raise ValueError("numbers must be finite")


def _plain(value: Any) -> Any:
    """What orjson does not know itself."""
    if isinstance(value, bytes | bytearray | memoryview):
        return BASE64_PREFIX + base64.b64encode(value).decode("ascii")
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, frozenset | set):
        raise TypeError("a set has no order; give a list")
    raise TypeError(f"{type(value).__name__} is no type of a property")


def _joined(pieces: Sequence[TypeRows]) -> TypeRows:
    first = pieces[0]
    return TypeRows(
        first.table,
        pa.concat_tables([piece.rows for piece in pieces]),
        Origin.joined([piece.origin for piece in pieces]),
        all(piece.fresh for piece in pieces),
        sum(piece.unnamed for piece in pieces),
    )
