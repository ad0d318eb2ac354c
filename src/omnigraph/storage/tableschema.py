"""The physical Arrow schema of a table, and data brought into it.

`id` (and `src`, `dst`) come first and are never null; every property has its column, marked with
the property's id. Property columns are nullable on disk whatever the schema says, so that making a
property optional touches no data; the integrity checks hold the promise.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import lance
import pyarrow as pa

from omnigraph.errors import InvariantViolationError
from omnigraph.model.catalog import (
    DST_COLUMN,
    ID_COLUMN,
    SRC_COLUMN,
    EdgeType,
    NodeType,
    Property,
    TableKind,
)
from omnigraph.model.references import address_of, is_proven
from omnigraph.model.types import Kind
from omnigraph.storage.blobpolicy import NOWHERE, AllowList

PROPERTY_KEY = b"omnigraph:property"
# Blob columns need this file format.
FILE_FORMAT = "2.2"
# Rows per file: an update rewrites per-row metadata of the whole file it touches.
ROWS_PER_FILE = 100_000


@lru_cache(maxsize=1024)
def physical_schema(table: NodeType | EdgeType) -> pa.Schema:
    names = [ID_COLUMN]
    if table.kind is TableKind.EDGE:
        names += [SRC_COLUMN, DST_COLUMN]
    fields = [pa.field(name, pa.string(), nullable=False) for name in names]
    return pa.schema([*fields, *(physical_field(item) for item in table.properties)])


def physical_field(item: Property) -> pa.Field:
    if item.type.kind is Kind.BLOB:
        field = lance.blob_field(item.column)
    else:
        field = pa.field(item.column, item.type.to_arrow())
    metadata = {**(field.metadata or {}), PROPERTY_KEY: str(item.id).encode()}
    return field.with_metadata(metadata)


def to_physical(
    table: NodeType | EdgeType, data: pa.Table, allowed: AllowList = NOWHERE
) -> pa.Table:
    """Put columns in physical order; blobs may come as plain binary."""
    return as_physical(physical_schema(table), data, allowed)


def as_physical(schema: pa.Schema, data: pa.Table, allowed: AllowList = NOWHERE) -> pa.Table:
    """The same for any schema. All rows that are written to a table come through here, and it is
    here that references are checked: they must be `allowed`, or have been in a table before."""
    arrays = [_physical_column(data.column(field.name), field, allowed) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def _physical_column(column: pa.ChunkedArray, field: pa.Field, allowed: AllowList) -> Any:
    if isinstance(field.type, pa.ExtensionType):
        if column.type == field.type:
            _refuse_unchecked(column)
            return column
        return lance.blob_array([_physical_blob(value, allowed) for value in column.to_pylist()])
    return column if column.type == field.type else column.cast(field.type)


def _refuse_unchecked(column: pa.ChunkedArray) -> None:
    """Lance's own form of a blob has the address inside, where nothing has checked it."""
    if len(column):
        raise InvariantViolationError("Blobs are written from bytes and references only.")


def _physical_blob(value: bytes | None, allowed: AllowList) -> Any:
    address = address_of(value)
    if value is None or address is None:
        return value
    return lance.Blob.from_uri(address if is_proven(value) else allowed.admit(address))
