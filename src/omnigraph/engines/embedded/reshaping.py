"""A view of tables that are about to get the columns of their types.

A merge brings columns, or wider types of columns, to a table that has not got them yet. Rules are
about the table as it will be: rows that are there have the defaults in new columns, and keys are
spelled in the wider type.

Guarantees: the holders of a key as they will be found when the table has its columns. A rule over
columns that the table has already costs what it always does; another one a pass over the column.
Deliberately absent: writing the columns (`storage.staging`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from omnigraph.engines.embedded.lookups import Columns, spelled
from omnigraph.engines.embedded.view import Holders, View, matched
from omnigraph.model.catalog import ID_COLUMN
from omnigraph.model.snapshot import Snapshot
from omnigraph.plan.checks import TableType, logical_schema
from omnigraph.plan.columns import combined
from omnigraph.storage.root import GraphRoot


class ReshapedView(View):
    """A snapshot some of whose tables have not got all columns of their types yet: `fills` holds,
    for each of them by id, the values of existing rows in columns that are missing; null where it
    does not say."""

    def __init__(
        self, root: GraphRoot, snapshot: Snapshot, fills: Mapping[int, Mapping[str, Any]]
    ) -> None:
        super().__init__(root, snapshot)
        self._fills = fills

    def committed_holders(
        self, table: TableType, columns: Columns, rows: pa.Table, keys: pa.Array
    ) -> Holders:
        source = self.committed(table) if table.id in self._fills else None
        if source is None:
            return super().committed_holders(table, columns, rows, keys)
        wanted = pa.schema([logical_schema(table).field(name) for name in columns])
        there = [field for field in wanted if field.name in source.schema.names]
        if len(there) == len(wanted) and all(
            source.schema.field(f.name).type == f.type for f in there
        ):
            return super().committed_holders(table, columns, rows, keys)
        stored = source.read(list(dict.fromkeys((ID_COLUMN, *(field.name for field in there)))))
        shaped = pa.table(
            {field.name: self._column(table, stored, field) for field in wanted}, schema=wanted
        )
        return matched(spelled(shaped, columns), combined(stored.column(ID_COLUMN)), keys)

    def _column(self, table: TableType, stored: pa.Table, field: pa.Field) -> Any:
        if field.name in stored.column_names:
            return stored.column(field.name).cast(field.type)
        value = self._fills[table.id].get(field.name)
        return pa.repeat(pa.scalar(value, field.type), stored.num_rows)
