"""Blobs of one table version: metadata, and ranges of bytes.

Null, empty and non-empty are distinct; a range is read without the rest; looking at a blob reads
none of its bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b

import pyarrow.compute as pc

from omnigraph.model.catalog import ID_COLUMN
from omnigraph.storage.table import ROW_ID, Table
from omnigraph.storage.versionreads import version_read

# At most so many bytes are in memory at once.
CHUNK_BYTES = 4 << 20
_UPDATED = "_row_last_updated_at_version"


@dataclass(frozen=True, slots=True)
class StoredBlob:
    """One blob. `uri` is set for one whose bytes lie outside the graph; then `size` may be 0."""

    row_id: int
    column: str
    size: int
    etag: str
    uri: str | None = None


def find_blob(table: Table, entity_id: str, column: str) -> tuple[bool, StoredBlob | None]:
    """Whether the entity exists, and its blob unless that is null."""
    wanted = pc.field(ID_COLUMN) == entity_id
    found = table.read([ID_COLUMN, column, _UPDATED], filter=wanted, with_row_id=True)
    if found.num_rows == 0:
        return False, None
    row = found.to_pylist()[0]
    described = row[column]
    if described is None:
        return True, None
    row_id, size = int(row[ROW_ID]), int(described.get("size") or 0)
    uri = described.get("blob_uri") or None
    return True, StoredBlob(row_id, column, size, _etag(table, row, column, size), uri)


def read_blob(table: Table, blob: StoredBlob, start: int, end: int) -> Iterator[bytes]:
    """The bytes from `start` up to `end`, piece by piece."""
    at = start
    while at < end:
        length = min(CHUNK_BYTES, end - at)
        with version_read(table.dataset, "read", table.version.path):
            parts = table.dataset.read_blob_ranges(
                blob.column, [(blob.row_id, at, length)], selector="ids"
            )
        yield bytes(parts[0][2])
        at += length


def _etag(table: Table, row: dict[str, object], column: str, size: int) -> str:
    """The same as long as the row is not written again; compaction does not change it."""
    version = table.version
    parts = (version.path, version.epoch, row[ROW_ID], row[_UPDATED], column, size)
    return blake2b(repr(parts).encode(), digest_size=16).hexdigest()
