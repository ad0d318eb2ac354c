"""An in-memory text index of rows that no stored index covers, cached between searches.

Lance also searches text without an index, but then it splits words by other rules (no stemming, no
stop words), and it never matches fuzzily outside an index. So the uncovered rows are copied into a
dataset of their own, in memory, and indexed there the usual way: the same rows match before and
after an index is built.

Guarantees: an entry describes exactly the rows of the fragments it was made from; it is found again
as long as their metadata is the same, whatever the table's version, and never otherwise. The kept
entries stay within a byte budget; what is larger is built on disk and dropped after use.
Deliberately absent: writing anything beside the graph's own files.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.caches import Cache
from omnigraph.model.catalog import ID_COLUMN
from omnigraph.storage.analysis import TEXT_INDEX_OPTIONS
from omnigraph.storage.filters import scanner
from omnigraph.storage.indexhealth import filtered_batches
from omnigraph.storage.rowsets import RowIds
from omnigraph.storage.table import ROW_ID, Table

TEXT = "text"
ROW = "row"

_KEPT_BYTES = 256 << 20
_IN_MEMORY_ROWS = 2_000_000
_FIELDS = pa.schema([(ROW, pa.uint64()), (ID_COLUMN, pa.string()), (TEXT, pa.string())])

Key = tuple[int, str]


@dataclass(frozen=True)
class Scratch:
    """Indexed copies of rows. `row_ids[i]` is the table's row id of the row with id i here."""

    dataset: Any
    row_ids: RowIds
    bytes: int
    # Held so that the files live as long as the entry; removed when it is collected.
    folder: tempfile.TemporaryDirectory[str] | None = field(default=None, repr=False)

    def positions(self, allowed: RowIds) -> RowIds:
        """The row ids, here, of those allowed rows that are here."""
        return np.flatnonzero(np.isin(self.row_ids, allowed)).astype(np.uint64)


class ScratchIndexes:
    """Entries by content."""

    def __init__(self, budget_bytes: int = _KEPT_BYTES) -> None:
        self._entries: Cache[Key, Scratch] = Cache(budget_bytes)

    def get(self, table: Table, column: str, fragments: Sequence[Any]) -> Scratch:
        key = scratch_key(table, column, fragments)
        return self._entries.get(
            key, lambda: _build(table, column, fragments), lambda made: made.bytes
        )

    def clear(self) -> None:
        self._entries.clear()


def scratch_key(table: Table, column: str, fragments: Sequence[Any]) -> Key:
    """The field, and a digest of all that Lance's manifest says of the fragments: names of data
    and deletion files, which are random and never reused, and the row ids. A column that is added
    again under its old name is another field."""
    digest = sha256()
    for fragment in fragments:
        digest.update(json.dumps(fragment.metadata.to_json(), sort_keys=True).encode())
    return int(table.dataset.lance_schema.field(column).id()), digest.hexdigest()


def _build(table: Table, column: str, fragments: Sequence[Any]) -> Scratch:
    rows = sum(fragment.count_rows() for fragment in fragments)
    folder = None if rows <= _IN_MEMORY_ROWS else tempfile.TemporaryDirectory("-omnigraph-text")
    row_ids: list[RowIds] = []
    sizes: list[int] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in _texts(table, column, fragments):
            row_ids.append(batch.column(ROW).to_numpy())
            sizes.append(batch.nbytes)
            yield batch

    dataset = lance.write_dataset(
        pa.RecordBatchReader.from_batches(_FIELDS, batches()),
        "memory://" if folder is None else folder.name,
        mode="create" if folder is None else "overwrite",
        enable_stable_row_ids=True,  # so that row ids here count from 0
    )
    if row_ids:
        dataset.create_scalar_index(TEXT, "INVERTED", **TEXT_INDEX_OPTIONS)
    known = np.concatenate(row_ids) if row_ids else np.empty(0, dtype=np.uint64)
    # The index takes about as much room again as the text.
    kept = 2 * sum(sizes) if folder is None else _KEPT_BYTES + 1
    return Scratch(dataset, known, kept, folder)


def _texts(table: Table, column: str, fragments: Sequence[Any]) -> Iterator[pa.RecordBatch]:
    asked: dict[str, Any] = {
        "columns": [ID_COLUMN, column],
        "filter": pc.field(column).is_valid(),
        "with_row_id": True,
        "fragments": list(fragments),
    }

    def batches(options: dict[str, Any]) -> Iterator[pa.RecordBatch]:
        return iter(scanner(table.dataset, **asked, **options).to_batches())

    for batch in filtered_batches(table.dataset, table.version.path, batches):
        if batch.num_rows:
            columns = [batch.column(ROW_ID), batch.column(ID_COLUMN), batch.column(column)]
            yield pa.RecordBatch.from_arrays(columns, schema=_FIELDS)
