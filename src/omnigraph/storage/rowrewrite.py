"""One Lance transaction that adds rows, deletes rows and compacts small files.

Every write adds a file, and a table's manifest lists all of them; without folding, the thousandth
small commit would cost more than the tenth. So when enough files of about one size lie there, a
write replaces them by one. Sizes go up by `_FOLD` each time, so a row is moved a few times at most.

Guarantees: one transaction, whatever the mix; the rows of folded files are unchanged (their row
ids are new, which a diff sees through by comparing images).
Deliberately absent: committing, and compaction of large files (maintenance does that).
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance.dataset import Transaction
from lance.fragment import write_fragments

from omnigraph import progress
from omnigraph.storage.blobrows import read_whole
from omnigraph.storage.tableschema import FILE_FORMAT, ROWS_PER_FILE, as_physical

ROW_ADDRESS = "_rowaddr"
# So many files of about one size are folded into one.
_FOLD = 32
_LARGEST_FOLDED = _FOLD**3

_WRITTEN_AT_ONCE = 32_768

Addresses = npt.NDArray[np.uint64]


def build_change(dataset: Any, schema: pa.Schema, rows: pa.Table, doomed: Addresses) -> Transaction:
    """A transaction that adds `rows` (physical columns) and removes the rows at `doomed`."""
    folded = _files_to_fold(dataset, len(rows) > 0)
    if not folded and len(doomed) == 0:
        return _append(dataset, rows)
    kept = _read_kept(dataset, schema, folded, doomed)
    updated, removed = _delete_rows(dataset, doomed, {file.fragment_id for file in folded})
    operation = lance.LanceOperation.Update(
        removed_fragment_ids=[*removed, *(file.fragment_id for file in folded)],
        updated_fragments=updated,
        new_fragments=_write(dataset, schema, pa.concat_tables([kept, rows])),
        fields_modified=[],
    )
    return Transaction(read_version=dataset.version, operation=operation)


def _append(dataset: Any, rows: pa.Table) -> Transaction:
    return write_fragments(
        counted(rows),
        dataset,
        mode="append",
        return_transaction=True,
        data_storage_version=FILE_FORMAT,
        max_rows_per_file=ROWS_PER_FILE,
        enable_stable_row_ids=True,
        allow_external_blob_outside_bases=True,
    )


def counted(rows: pa.Table) -> pa.Table | pa.RecordBatchReader:
    """The rows, in batches if progress is reported."""
    if not progress.is_tallied():
        return rows
    pieces = progress.counted(rows.to_batches(max_chunksize=_WRITTEN_AT_ONCE))
    return pa.RecordBatchReader.from_batches(rows.schema, pieces)


def _files_to_fold(dataset: Any, adding: bool) -> list[Any]:
    """The files of the smallest size of which there are too many."""
    files = dataset.get_fragments() if adding else []
    if len(files) < _FOLD:
        return []
    sizes: dict[int, list[Any]] = {}
    for file in files:
        rows = file.metadata.num_rows
        if rows < _LARGEST_FOLDED:
            sizes.setdefault(_tier(rows), []).append(file)
    crowded = [tier for tier in sorted(sizes) if len(sizes[tier]) >= _FOLD]
    return sizes[crowded[0]] if crowded else []


def _tier(rows: int) -> int:
    tier = 0
    while rows >= _FOLD:
        rows //= _FOLD
        tier += 1
    return tier


def _read_kept(
    dataset: Any, schema: pa.Schema, files: Sequence[Any], doomed: Addresses
) -> pa.Table:
    """The rows of files that are folded, without those that go."""
    if not files:
        return schema.empty_table()
    rows = read_whole(
        dataset,
        schema.names,
        proven=True,
        fragments=list(files),
        with_row_address=True,
        scan_in_order=True,
    )
    if len(doomed):
        stays = ~np.isin(rows.column(ROW_ADDRESS).to_numpy(), doomed)
        rows = rows.filter(pa.array(stays))
    return as_physical(schema, rows)


def _delete_rows(dataset: Any, doomed: Addresses, folded: set[int]) -> tuple[list[Any], list[int]]:
    """Mark rows as deleted in their files. Returns the files that keep rows, and the ids of
    those that keep none."""
    owners = doomed >> np.uint64(32)
    files = [int(number) for number in np.unique(owners) if int(number) not in folded]

    def delete(number: int) -> Any:
        chosen = ",".join(map(str, doomed[owners == number].tolist()))
        return dataset.get_fragment(number).delete(f"{ROW_ADDRESS} IN ({chosen})")

    if len(files) < 2:
        found = [delete(number) for number in files]
    else:
        with ThreadPoolExecutor(max_workers=4) as pool:  # Lance deletes on the caller's thread
            found = list(pool.map(delete, files))
    removed = [number for number, left in zip(files, found, strict=True) if left is None]
    return [left for left in found if left is not None], removed


def _write(dataset: Any, schema: pa.Schema, rows: pa.Table) -> list[Any]:
    if rows.num_rows == 0:
        return []
    return list(
        write_fragments(
            counted(rows),
            dataset,
            schema=schema,
            data_storage_version=FILE_FORMAT,
            max_rows_per_file=ROWS_PER_FILE,
            allow_external_blob_outside_bases=True,
        )
    )
