"""Staging of a table by several processes, and reading the staged rows.

A driver prepares a `Target`, workers write rows to it (`write_rows`) or mark rows as gone
(`remove_rows`), and the driver makes one staged write of what they report. Targets and reports are
plain values that may travel.

Guarantees: nothing here moves a table's head; files of a worker that failed or came second are
litter, because only files reported to the driver become part of the staged write; a table's rows
are never read whole, only the columns that are asked for.
Deliberately absent: Spark, and checks of any rule.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance.dataset import Transaction
from lance.file import LanceFileReader
from lance.fragment import FragmentMetadata, write_fragments

from omnigraph.model.catalog import ID_COLUMN, EdgeType, NodeType
from omnigraph.model.commit import StagedWrite
from omnigraph.model.location import Location
from omnigraph.model.snapshot import TableVersion
from omnigraph.storage.blobrows import BATCH_BYTES, scan_whole
from omnigraph.storage.failures import translated
from omnigraph.storage.filters import scanner
from omnigraph.storage.indexhealth import filtered_batches
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.rowrewrite import ROW_ADDRESS, Addresses
from omnigraph.storage.table import open_dataset
from omnigraph.storage.tableforks import Prepared, line_path, new_path, open_line, writable_line
from omnigraph.storage.tableschema import FILE_FORMAT, ROWS_PER_FILE, physical_schema, to_physical
from omnigraph.storage.versionreads import version_read

# Rows on their way into tables: DataFrames that are being loaded.
SCRATCH = "__staging"

TableType = NodeType | EdgeType

# A batch ends after so many rows or after `BATCH_BYTES`. Lance's own 8,192 rows make many small
# batches of narrow rows, which cost Spark more than they hold, and 100 MB of texts with vectors.
# A scan with a filter keeps Lance's rows: it counts the bytes of what it filters by, and fetches
# the other columns of the rows that pass afterwards.
_BATCH_ROWS = 65_536


@dataclass(frozen=True)
class Target:
    """Where the new rows of one table go. `base` None: the table is born here."""

    location: Location
    table: TableType
    path: str
    fork: str | None
    base: TableVersion | None
    replaces: bool

    @property
    def uri(self) -> str:
        return self.location.lance_uri(line_path(self.path, self.fork))


@dataclass(frozen=True, slots=True)
class StagedFile:
    """Rows of one table in one file that nothing points to yet."""

    fragment: str  # as JSON
    rows: int

    @property
    def name(self) -> str:
        return str(json.loads(self.fragment)["files"][0]["path"])


@dataclass(frozen=True, slots=True)
class Removed:
    """Rows marked as gone: files that keep others, and the ids of files that keep none."""

    rows: int = 0
    updated: tuple[str, ...] = ()
    emptied: tuple[int, ...] = ()


def prepare_target(
    root: GraphRoot, branch_id: str, table: TableType, base: TableVersion | None, *, replaces: bool
) -> Target:
    """Choose the line that a write lands on; forks the table if the branch has none yet."""
    if base is None:
        return Target(root.location, table, new_path(table, branch_id), None, None, replaces)
    fork, _ = writable_line(root, base, branch_id)
    return Target(root.location, table, base.path, fork, base, replaces)


# On workers.


def write_rows(target: Target, rows: pa.Table) -> list[StagedFile]:
    """Write rows in physical columns to files of their own."""
    if rows.num_rows == 0:
        return []
    appends = target.base is not None and not target.replaces
    with translated("stage", target.path):
        written = write_fragments(
            to_physical(target.table, rows),
            _open(target) if appends else target.uri,
            mode="append" if appends else "create" if target.base is None else "overwrite",
            data_storage_version=FILE_FORMAT,
            max_rows_per_file=ROWS_PER_FILE,
            enable_stable_row_ids=True,
            storage_options=dict(target.location.storage_options) or None,
        )
    return [StagedFile(json.dumps(f.to_json()), int(f.physical_rows)) for f in written]


def read_staged(target: Target, file: StagedFile, columns: Sequence[str]) -> pa.Table:
    """Columns of a staged file, in the order in which its rows were written."""
    path = f"{target.uri}/data/{file.name}"
    with translated("read", path):
        reader = LanceFileReader(
            path,
            storage_options=dict(target.location.storage_options) or None,
            columns=list(columns),
        )
        return reader.read_all().to_table().select(list(columns))


def remove_rows(target: Target, addresses: Addresses) -> Removed:
    """Mark committed rows as gone, by their row addresses."""
    if len(addresses) == 0:
        return Removed()
    dataset = _open(target)
    updated, emptied = [], []
    owners = addresses >> np.uint64(32)
    with translated("stage", target.path):
        for fragment_id in np.unique(owners):
            chosen = ",".join(str(address) for address in addresses[owners == fragment_id])
            left = dataset.get_fragment(int(fragment_id)).delete(f"{ROW_ADDRESS} IN ({chosen})")
            if left is None:
                emptied.append(int(fragment_id))
            else:
                updated.append(json.dumps(left.to_json()))
    return Removed(len(addresses), tuple(updated), tuple(emptied))


def list_files(location: Location, version: TableVersion) -> list[tuple[int, int]]:
    """The files of a committed version: their ids and how many rows each holds."""
    with translated("read", version.path):
        fragments = open_dataset(location, version).get_fragments()
        return [(fragment.fragment_id, fragment.count_rows()) for fragment in fragments]


def scan_files(
    location: Location,
    version: TableVersion,
    files: Sequence[int],
    columns: Sequence[str],
    *,
    filter: Any = None,
    with_address: bool = False,
    whole_blobs: bool = False,
    ids: pa.Array | None = None,
) -> Iterator[pa.RecordBatch]:
    """Batches of some files of a committed version, in table order. `ids`: only these rows."""
    if ids is not None:
        options = {"filter": filter, "with_address": with_address, "whole_blobs": whole_blobs}
        wanted = list(dict.fromkeys((*columns, ID_COLUMN)))
        for batch in scan_files(location, version, files, wanted, **options):
            kept = batch.filter(pc.is_in(batch.column(ID_COLUMN), value_set=ids))
            yield kept if ID_COLUMN in columns else kept.select(list(columns))
        return
    dataset = open_dataset(location, version)
    asked: dict[str, Any] = {
        "filter": filter,
        "fragments": [dataset.get_fragment(number) for number in files],
        "with_row_address": with_address,
        "scan_in_order": True,
        "batch_size": _BATCH_ROWS if filter is None else None,
        "batch_size_bytes": BATCH_BYTES,
    }

    def batches(options: dict[str, Any]) -> Iterator[pa.RecordBatch]:
        if whole_blobs:
            return scan_whole(dataset, columns, **asked, **options)
        return iter(scanner(dataset, columns=list(columns), **asked, **options).to_batches())

    if filter is not None:
        yield from filtered_batches(dataset, version.path, batches)
        return
    with version_read(dataset, "scan", version.path):
        yield from batches({})


def _open(target: Target) -> Any:
    base = target.base
    assert base is not None
    return open_line(GraphRoot(target.location), target.path, target.fork, base.version)


# On the driver again.


def finish_target(
    target: Target, files: Sequence[StagedFile], removed: Sequence[Removed] = ()
) -> StagedWrite:
    """One staged write of all that workers reported."""
    added = [FragmentMetadata.from_json(file.fragment) for file in files]
    rows = sum(file.rows for file in files)
    if target.base is None or target.replaces:
        return _whole(target, added, rows)
    dataset = _open(target)
    gone = sum(part.rows for part in removed)
    operation: Any
    if gone:
        operation = lance.LanceOperation.Update(
            removed_fragment_ids=[number for part in removed for number in part.emptied],
            updated_fragments=[
                FragmentMetadata.from_json(text) for part in removed for text in part.updated
            ],
            new_fragments=added,
            fields_modified=[],
        )
    else:
        operation = lance.LanceOperation.Append(added)
    prepared = Prepared(Transaction(read_version=dataset.version, operation=operation), dataset)
    after = target.base.rows + rows - gone
    return StagedWrite(target.table.id, target.path, target.fork, target.base, prepared, after)


def _whole(target: Target, added: list[Any], rows: int) -> StagedWrite:
    dataset = None if target.base is None else _open(target)
    with translated("stage", target.path):
        # An empty write gives Lance's own form of the schema.
        empty = write_fragments(
            physical_schema(target.table).empty_table(),
            target.uri if dataset is None else dataset,
            mode="create" if dataset is None else "overwrite",
            return_transaction=True,
            data_storage_version=FILE_FORMAT,
            enable_stable_row_ids=True,
            storage_options=dict(target.location.storage_options) or None,
        )
    schema = empty.operation.new_schema  # type: ignore[attr-defined]
    operation = lance.LanceOperation.Overwrite(schema, added)
    prepared = Prepared(Transaction(read_version=empty.read_version, operation=operation), dataset)
    return StagedWrite(
        target.table.id,
        target.path,
        target.fork,
        target.base,
        prepared,
        rows,
        replaces=target.base is not None,
    )
