"""Staging: write a table's new files without making them visible.

Every function returns a StagedWrite that only the commit package can commit. Until then the files
are unreachable, and if it is never committed, `cleanup` removes them.

Guarantees: nothing here moves a table's head; data keeps the physical schema; stable row ids.
Deliberately absent: checks of any rule, and Lance's calls that commit by themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance.fragment import write_fragments

from omnigraph import headroom, progress
from omnigraph.model.catalog import ID_COLUMN, EdgeType, NodeType
from omnigraph.model.commit import StagedWrite
from omnigraph.model.snapshot import TableVersion
from omnigraph.storage.columnchange import build_columns, reshaped
from omnigraph.storage.detached import DETACHED_LOCK, detached
from omnigraph.storage.failures import translated
from omnigraph.storage.filters import scanner
from omnigraph.storage.indexhealth import filtered
from omnigraph.storage.locks import writer_lock
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.rowrewrite import ROW_ADDRESS, Addresses, build_change
from omnigraph.storage.table import open_table
from omnigraph.storage.tableforks import Prepared, new_path, writable_line
from omnigraph.storage.tableschema import (
    FILE_FORMAT,
    ROWS_PER_FILE,
    as_physical,
    physical_schema,
    to_physical,
)

TableType = NodeType | EdgeType
NO_ROWS: Addresses = np.empty(0, np.uint64)
# The default of Lance is smaller and 50 % slower.
_SCANNED_AT_ONCE = 32_768
# Writes below this size do not check the free memory.
_LARGE_BYTES = 256 << 10


class Stager:
    """Stages writes for one graph branch."""

    def __init__(self, root: GraphRoot, branch_id: str) -> None:
        self._root = root
        self._branch_id = branch_id

    def create(self, table: TableType, data: pa.Table) -> StagedWrite:
        """The first rows of a type, in a dataset of its own."""
        path = new_path(table, self._branch_id)
        uri = self._root.location.lance_uri(path)
        _require_room(data)
        with translated("stage", uri):
            transaction = write_fragments(
                to_physical(table, data, self._root.allowed),
                uri,
                mode="create",
                return_transaction=True,
                data_storage_version=FILE_FORMAT,
                max_rows_per_file=ROWS_PER_FILE,
                enable_stable_row_ids=True,
                allow_external_blob_outside_bases=True,
                storage_options=dict(self._root.location.storage_options) or None,
            )
        prepared = Prepared(transaction, None)
        return StagedWrite(table.id, path, None, None, prepared, data.num_rows)

    def insert(self, table: TableType, base: TableVersion | None, data: pa.Table) -> StagedWrite:
        """Add rows whose ids are known to be new."""
        return self.change(table, base, data, NO_ROWS)

    def upsert(self, table: TableType, base: TableVersion | None, data: pa.Table) -> StagedWrite:
        """Replace the rows whose ids exist and add the others. Ids must not repeat in `data`."""
        return self.change(table, base, data, self._find(base, data.column(ID_COLUMN)))

    def delete(self, table: TableType, base: TableVersion, ids: Sequence[str]) -> StagedWrite:
        """Remove the rows with these ids."""
        doomed = self._find(base, pa.chunked_array([pa.array(ids, pa.string())]))
        return self.change(table, base, physical_schema(table).empty_table(), doomed)

    def exchange(
        self, table: TableType, base: TableVersion, data: pa.Table, gone: Sequence[str]
    ) -> StagedWrite:
        """Replace rows by id, and remove the rows of other ids."""
        ids = [*data.column(ID_COLUMN).chunks, pa.array(gone, pa.string())]
        return self.change(table, base, data, self._find(base, pa.chunked_array(ids, pa.string())))

    def change(
        self, table: TableType, base: TableVersion | None, data: pa.Table, doomed: Addresses
    ) -> StagedWrite:
        """Add rows and remove those at the given row addresses of `base`, in one step."""
        if base is None:
            return self.create(table, data)
        fork, dataset = writable_line(self._root, base, self._branch_id)
        schema = physical_schema(table)
        _require_room(data)
        with translated("stage", dataset.uri):
            transaction = build_change(
                dataset, schema, as_physical(schema, data, self._root.allowed), doomed
            )
        rows = base.rows + data.num_rows - len(doomed)
        prepared = Prepared(transaction, dataset)
        return StagedWrite(table.id, base.path, fork, base, prepared, rows)

    def overwrite(self, table: TableType, base: TableVersion | None, data: pa.Table) -> StagedWrite:
        """Replace all rows."""
        if base is None:
            return self.create(table, data)
        fork, dataset = writable_line(self._root, base, self._branch_id)
        _require_room(data)
        with translated("stage", dataset.uri):
            transaction = write_fragments(
                to_physical(table, data, self._root.allowed),
                dataset,
                mode="overwrite",
                return_transaction=True,
                data_storage_version=FILE_FORMAT,
                max_rows_per_file=ROWS_PER_FILE,
                enable_stable_row_ids=True,
                allow_external_blob_outside_bases=True,
            )
        prepared = Prepared(transaction, dataset)
        return StagedWrite(table.id, base.path, fork, base, prepared, data.num_rows, replaces=True)

    def reshape(
        self,
        table: TableType,
        base: TableVersion,
        fills: Mapping[str, Any],
        data: pa.Table | None = None,
        doomed: Addresses = NO_ROWS,
    ) -> StagedWrite:
        """Rewrite all rows in the columns of the type, a batch at a time: widened, without columns
        that the type no longer has, and with a value or null in those it has gained. Rows at the
        addresses in `doomed` are left out, and those of `data` come after the rest."""
        fork, dataset = writable_line(self._root, base, self._branch_id)
        schema = physical_schema(table)
        added = schema.empty_table() if data is None else data
        with translated("stage", dataset.uri):
            kept = reshaped(dataset, schema, fills, doomed)
            new = as_physical(schema, added, self._root.allowed).combine_chunks().to_batches()
            transaction = write_fragments(
                pa.RecordBatchReader.from_batches(schema, progress.counted(chain(kept, new))),
                dataset,
                mode="overwrite",
                return_transaction=True,
                data_storage_version=FILE_FORMAT,
                max_rows_per_file=ROWS_PER_FILE,
                enable_stable_row_ids=True,
                allow_external_blob_outside_bases=True,
            )
        rows = base.rows - len(doomed) + added.num_rows
        prepared = Prepared(transaction, dataset)
        return StagedWrite(table.id, base.path, fork, base, prepared, rows, replaces=True)

    def add_columns(
        self, table: TableType, base: TableVersion, fills: Mapping[str, Any]
    ) -> StagedWrite:
        """Give a table the columns that its type has and its data lacks.

        `fills` names the columns whose existing rows get a value; the others are null, which
        costs no data at all.
        """
        fork, dataset = writable_line(self._root, base, self._branch_id)
        there = set(dataset.schema.names)
        missing = [field for field in physical_schema(table) if field.name not in there]
        with translated("stage", dataset.uri):
            transaction = build_columns(dataset, missing, fills)
        prepared = Prepared(transaction, dataset)
        return StagedWrite(table.id, base.path, fork, base, prepared, base.rows)

    def widen(
        self,
        table: TableType,
        base: TableVersion,
        fills: Mapping[str, Any],
        data: pa.Table,
        doomed: Addresses,
    ) -> StagedWrite:
        """`add_columns` and then `change`, in two transactions of one staged write."""
        wider = self.add_columns(table, base, fills)
        if data.num_rows == 0 and len(doomed) == 0:
            return wider
        first: Prepared = wider.transaction
        schema = physical_schema(table)
        objects, operation = self._root.objects, "stage rows with new columns"
        with (
            writer_lock(objects, DETACHED_LOCK, owner=self._branch_id, operation=operation),
            detached(self._root, replace(base, fork=wider.fork), first.dataset) as scratch,
            translated("stage", first.dataset.uri),
        ):
            # Rows with the new columns can only be written to a version that has them.
            scratch.take(first.transaction)
            added = as_physical(schema, data, self._root.allowed)
            change = build_change(scratch.dataset, schema, added, doomed)
        second = replace(change, read_version=base.version + 1)
        rows = base.rows + data.num_rows - len(doomed)
        return replace(wider, transaction=replace(first, then=(second,)), rows_after=rows)

    def _find(self, base: TableVersion | None, ids: pa.ChunkedArray) -> Addresses:
        """The addresses of the rows with these ids."""
        if base is None or base.rows == 0 or len(ids) == 0:
            return NO_ROWS
        dataset = open_table(self._root.location, base).dataset
        chosen = pc.field(ID_COLUMN).isin(ids.combine_chunks())

        def rows(options: dict[str, Any]) -> pa.Table:
            asked = {"columns": [ROW_ADDRESS], "filter": chosen, "batch_size": _SCANNED_AT_ONCE}
            return scanner(dataset, **asked, **options).to_table()

        found = filtered(dataset, dataset.uri, rows)
        addresses: Addresses = found.column(ROW_ADDRESS).to_numpy()
        return addresses


def _require_room(data: pa.Table) -> None:
    """Lance encodes rows in memory, and aborts the process if an allocation fails."""
    if data.nbytes > _LARGE_BYTES:
        headroom.require(data.nbytes, "write")
