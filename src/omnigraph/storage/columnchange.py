"""Changes the columns of a table: one Lance transaction that adds columns or rewrites all rows.

Guarantees: columns without values are metadata alone; columns with a value for existing rows are
written and no other is touched; rows in a new shape are streamed, never held whole; a column never
gets the number of one that lies in some file.
Deliberately absent: when columns go. A dropped property is simply no longer read, until maintenance
takes its column away.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import lance
import numpy as np
import pyarrow as pa
from lance.dataset import Transaction
from lance.schema import LanceSchema

from omnigraph.model.catalog import ID_COLUMN
from omnigraph.storage import protobuf
from omnigraph.storage.blobrows import scan_whole
from omnigraph.storage.rowrewrite import ROW_ADDRESS, Addresses
from omnigraph.storage.tableschema import as_physical

# Rows in memory at once; they may carry large blobs.
_BATCH_ROWS = 4096
# Where Lance keeps the name, the number and the parent's number of a column.
_NAME, _ID, _PARENT = 2, 3, 4
_NONE: Addresses = np.empty(0, np.uint64)


def build_columns(
    dataset: Any, fields: Sequence[pa.Field], fills: Mapping[str, Any]
) -> Transaction:
    """A transaction that adds `fields`; `fills` gives the value of existing rows, if any."""
    files = dataset.get_fragments()
    if files and any(fills.get(field.name) is not None for field in fields):
        fragments, schema = fill_files(files, fields, fills)
    else:
        fragments, schema = [fragment.metadata for fragment in files], _extended(dataset, fields)
    operation = lance.LanceOperation.Merge(fragments, schema)
    return Transaction(read_version=dataset.version, operation=operation)


def fill_files(
    files: Sequence[Any], fields: Sequence[pa.Field], fills: Mapping[str, Any]
) -> tuple[list[Any], Any]:
    """Write columns beside those of some files: what the files are then, and the schema."""
    filler = _filler(fields, fills)
    merged = [fragment.merge_columns(filler, columns=[ID_COLUMN]) for fragment in files]
    return [fragment for fragment, _ in merged], merged[0][1]


def _extended(dataset: Any, fields: Sequence[pa.Field]) -> Any:
    """The dataset's schema with more fields, numbered above all that any file has. Lance itself
    would number the existing fields again, and confuse columns."""
    make, (meta, *there) = dataset.lance_schema.__reduce__()
    made: Any = LanceSchema.from_pyarrow(pa.schema(fields))
    _, (_, *new) = made.__reduce__()
    first = int(dataset.max_field_id) + 1
    return make(meta, *there, *(_renumbered(proto, first) for proto in new))


def _renumbered(proto: bytes, first: int) -> bytes:
    """A column, and the column that it is a part of, moved up by `first` numbers."""
    found: dict[int, Any] = {number: value for number, value, _ in protobuf.fields(proto)}
    parent = protobuf.signed(int(found.get(_PARENT, 0)))
    numbers = {_ID: int(found.get(_ID, 0)) + first, _PARENT: parent + first if parent >= 0 else -1}
    return protobuf.with_numbers(proto, numbers)


def drop_transaction(dataset: Any, version: int, columns: Collection[str]) -> Transaction | None:
    """A transaction that takes columns out of the schema, None when it has none of them. Their
    bytes stay in the files until the files are rewritten."""
    make, (meta, *protos) = dataset.lance_schema.__reduce__()
    kept, gone = [], set()
    for proto in protos:
        found: dict[int, Any] = {number: value for number, value, _ in protobuf.fields(proto)}
        parent = protobuf.signed(int(found.get(_PARENT, 0)))
        if parent in gone or (parent < 0 and found[_NAME].decode() in columns):
            gone.add(found.get(_ID, 0))
        else:
            kept.append(proto)
    if not gone:
        return None
    operation = lance.LanceOperation.Project(make(meta, *kept))
    return Transaction(read_version=version, operation=operation)


def _filler(
    fields: Sequence[pa.Field], fills: Mapping[str, Any]
) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    def fill(batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = [_repeated(fills.get(field.name), field, batch.num_rows) for field in fields]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    return fill


def _repeated(value: Any, field: pa.Field, count: int) -> pa.Array:
    if isinstance(field.type, pa.ExtensionType):  # blobs have no default
        return lance.blob_array([None] * count)
    return pa.repeat(pa.scalar(value, field.type), count)


def reshaped(
    dataset: Any,
    schema: pa.Schema,
    fills: Mapping[str, Any],
    doomed: Addresses = _NONE,
    files: Sequence[Any] | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of a dataset, or of some of its files, but those at `doomed`, in the columns of
    `schema`; `fills` gives the value of new ones."""
    there = set(dataset.schema.names)
    new = [field for field in schema if field.name not in there]
    columns = [field.name for field in schema if field.name in there]
    options: dict[str, Any] = {"batch_size": _BATCH_ROWS, "scan_in_order": True}
    options |= {"with_row_address": True, "fragments": files}
    for batch in scan_whole(dataset, columns, proven=True, **options):
        rows = pa.Table.from_batches([batch])
        if len(doomed):
            goes = np.isin(rows.column(ROW_ADDRESS).to_numpy(), doomed)
            rows = rows.filter(pa.array(~goes))
        for field in new:
            kind = pa.large_binary() if isinstance(field.type, pa.ExtensionType) else field.type
            value = pa.scalar(fills.get(field.name), kind)
            rows = rows.append_column(field.name, pa.repeat(value, rows.num_rows))
        yield from as_physical(schema, rows).combine_chunks().to_batches()
