"""Rows with complete blobs: bytes for stored blobs, references for external ones.

Lance can hand out blobs as bytes while it scans, but then it also fetches whatever a reference
leads to: from places that this process may not reach, and to be written back as bytes by whoever
only wanted to move the row. So rows are looked at first; where some hold references, their blobs
are fetched one column at a time, without those.

Guarantees: null, empty and non-empty blobs and references stay what they are; nothing outside of
the graph is read; rows come in the order of the scan.
Deliberately absent: parts of blobs (`blobs`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph import progress
from omnigraph.model.references import STORED, address_of, stored_reference
from omnigraph.storage.filters import scanner
from omnigraph.storage.membudget import held

ADDRESS = "_rowaddr"
# What a batch of a scan holds at most, if one row does not hold more.
BATCH_BYTES = 8 * 1024 * 1024
# Lance's number for a blob that lies elsewhere.
_EXTERNAL = 3


def read_whole(
    dataset: Any, columns: Sequence[str], *, proven: bool = False, **options: Any
) -> pa.Table:
    """All rows that a scan with these options gives, as one table. `proven`: the rows are to be
    written again, with references that are not admitted a second time."""
    blobs = _blobs(dataset, columns)
    if not _has_references(dataset, blobs, options):
        reader = _scanner(dataset, columns, blobs, options).to_reader()
        return pa.Table.from_batches(progress.counted(held(reader)), reader.schema)
    batches = _with_references(dataset, columns, blobs, options, proven)
    return pa.Table.from_batches(list(progress.counted(held(batches))))


def scan_whole(
    dataset: Any, columns: Sequence[str], *, proven: bool = False, **options: Any
) -> Iterator[pa.RecordBatch]:
    """The same in batches."""
    blobs = _blobs(dataset, columns)
    options = {"batch_size_bytes": BATCH_BYTES, **options}
    if _has_references(dataset, blobs, options):
        yield from _with_references(dataset, columns, blobs, options, proven)
    else:
        yield from _scanner(dataset, columns, blobs, options).to_batches()


def proven_rows(rows: pa.Table) -> pa.Table:
    """Rows that another process of ours read from a table, with proofs of this one."""
    for place, field in enumerate(rows.schema):
        if field.type != pa.large_binary():
            continue
        column = rows.column(place)
        if pc.any(pc.starts_with(column, pattern=STORED), min_count=0).as_py():
            values = [_proven(value) for value in column.to_pylist()]
            rows = rows.set_column(place, field, pa.array(values, field.type))
    return rows


def _proven(value: bytes | None) -> bytes | None:
    address = address_of(value)
    return value if address is None else stored_reference(address, proven=True)


def _blobs(dataset: Any, columns: Sequence[str]) -> list[str]:
    schema, wanted = dataset.schema, set(columns)
    return [f.name for f in schema if f.name in wanted and isinstance(f.type, pa.ExtensionType)]


def _scanner(
    dataset: Any, columns: Sequence[str], blobs: Sequence[str], options: dict[str, Any]
) -> Any:
    handling = "all_binary" if blobs else None
    return scanner(dataset, columns=list(columns), blob_handling=handling, **options)


def _has_references(dataset: Any, blobs: Sequence[str], options: dict[str, Any]) -> bool:
    if not blobs:
        return False
    plain = {name: value for name, value in options.items() if not name.startswith("with_")}
    for batch in scanner(dataset, columns=list(blobs), **plain).to_batches():
        for name in blobs:
            kinds = pc.struct_field(batch.column(name), "kind")
            if pc.any(pc.equal(kinds, _EXTERNAL), min_count=0).as_py():
                return True
    return False


def _with_references(
    dataset: Any,
    columns: Sequence[str],
    blobs: Sequence[str],
    options: dict[str, Any],
    proven: bool,
) -> Iterator[pa.RecordBatch]:
    asked = bool(options.get("with_row_address"))
    options = {**options, "with_row_address": True}
    described = scanner(dataset, columns=list(columns), **options).to_batches()
    for batch in (part for whole in described for part in _parts(whole, blobs)):
        addresses = batch.column(ADDRESS)
        for name in blobs:
            place = batch.schema.get_field_index(name)
            cells = _cells(dataset, name, batch.column(name), addresses, proven)
            batch = batch.set_column(place, pa.field(name, cells.type), cells)
        yield batch if asked else batch.drop_columns([ADDRESS])


def _parts(batch: pa.RecordBatch, blobs: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Slices whose blobs take no more than a batch may: Lance counted their descriptions only."""
    sizes = np.zeros(batch.num_rows, np.uint64)
    for name in blobs:
        sizes += pc.fill_null(pc.struct_field(batch.column(name), "size"), 0).to_numpy()
    begins = np.cumsum(sizes) - sizes
    cuts = np.flatnonzero(np.diff(begins // np.uint64(BATCH_BYTES))) + 1
    bounds = [0, *cuts.tolist(), batch.num_rows]
    for first, end in pairwise(bounds):
        yield batch.slice(first, end - first)


def _cells(
    dataset: Any, name: str, described: pa.Array, addresses: pa.Array, proven: bool
) -> pa.Array:
    """The values of one blob column, given what Lance says about each."""
    external = pc.fill_null(pc.equal(pc.struct_field(described, "kind"), _EXTERNAL), False)
    own = addresses.filter(pc.and_(pc.invert(external), pc.is_valid(described)))
    held = dict(dataset.read_blobs(name, addresses=own)) if len(own) else {}
    uris = pc.struct_field(described, "blob_uri").to_pylist()
    values = [
        stored_reference(uri, proven=proven) if elsewhere else held.get(address)
        for uri, elsewhere, address in zip(
            uris, external.to_pylist(), addresses.to_pylist(), strict=True
        )
    ]
    return pa.array(values, pa.large_binary())
