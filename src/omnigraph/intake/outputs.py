"""Rows of a type as they leave the graph: envelopes, columns by name, delimited text.

Guarantees: what comes out can be loaded again and gives the same rows, ids included; equal rows
give equal bytes. Null is left out of envelopes and is an empty cell in text.
Deliberately absent: files, and the order of rows.
"""

from __future__ import annotations

import base64
import io
from datetime import date
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.csv as pacsv

from omnigraph.model.catalog import DST_COLUMN, ID_COLUMN, SRC_COLUMN, EdgeType
from omnigraph.model.references import address_of
from omnigraph.model.temporal import iso, python_values
from omnigraph.model.types import Kind
from omnigraph.rows.checks import TableType, system_columns
from omnigraph.rows.columns import combined
from omnigraph.rows.identities import ENDS
from omnigraph.rows.propertyvalues import BASE64_PREFIX

_END_OF = {column: end for end, column in ENDS.items()}


def output_columns(table: TableType) -> list[str]:
    """The physical columns that leave the graph."""
    return [*system_columns(table), *(item.column for item in table.properties)]


def to_named(table: TableType, rows: pa.Table) -> pa.Table:
    """Columns under the names by which they are loaded: properties, `id`, `from` and `to`."""
    names = [_end_name(table, name) for name in system_columns(table)]
    names += [item.name for item in table.properties]
    columns = [rows.column(column) for column in output_columns(table)]
    # Without what storage notes about its columns: that is not data, and has no fixed order.
    return pa.table(columns, names=names)


def _end_name(table: TableType, column: str) -> str:
    end = _END_OF.get(column, column)
    return column if end in table.by_name else end


def to_lines(table: TableType, rows: pa.Table) -> bytes:
    """JSONL envelopes."""
    named = [
        (item.name, _json_column(combined(rows.column(item.column)), item.type.kind))
        for item in table.properties
    ]
    ids = rows.column(ID_COLUMN).to_pylist()
    # The id of a node with a key is what its key spells.
    if not getattr(table, "key", ()):
        named.insert(0, (ID_COLUMN, ids))
    key = "edge" if isinstance(table, EdgeType) else "type"
    heads: list[dict[str, Any]] = [{key: table.name} for _ in ids]
    if isinstance(table, EdgeType):
        ends = (rows.column(SRC_COLUMN).to_pylist(), rows.column(DST_COLUMN).to_pylist())
        for head, src, dst in zip(heads, *ends, strict=True):
            head["from"], head["to"] = src, dst
    out = bytearray()
    names = [name for name, _ in named]
    for head, values in zip(heads, zip(*(v for _, v in named), strict=True), strict=True):
        head["data"] = {n: v for n, v in zip(names, values, strict=True) if v is not None}
        out += orjson.dumps(head)
        out += b"\n"
    return bytes(out)


def _json_column(column: pa.Array, kind: Kind) -> list[Any]:
    values = python_values(column)
    if kind is Kind.BLOB:
        return [None if v is None else _blob(v) for v in values]
    if kind in (Kind.DATETIME, Kind.LIST):
        return [_plain(v) for v in values]
    return values


def _plain(value: Any) -> Any:
    if isinstance(value, date):
        return iso(value)
    if isinstance(value, bytes):
        return _blob(value)
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _blob(value: bytes) -> str:
    address = address_of(value)
    return address or BASE64_PREFIX + base64.b64encode(value).decode("ascii")


def to_delimited(table: TableType, rows: pa.Table, *, header: bool = True) -> bytes:
    """CSV; lists and vectors as JSON text."""
    named = to_named(table, rows)
    first = len(system_columns(table))
    for place, item in enumerate(table.properties, first):
        column = combined(named.column(place))
        if item.type.kind in (Kind.LIST, Kind.VECTOR, Kind.BLOB, Kind.DATETIME):
            named = named.set_column(place, item.name, _text_column(column))
    out = io.BytesIO()
    pacsv.write_csv(named, out, pacsv.WriteOptions(include_header=header))
    return out.getvalue()


def _text_column(column: pa.Array) -> pa.Array:
    texts = []
    for value in python_values(column):
        plain = _plain(value)
        texts.append(orjson.dumps(plain).decode() if isinstance(plain, list) else plain)
    return pa.array(texts, pa.string())
