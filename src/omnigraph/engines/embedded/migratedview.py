"""A view of tables that are about to get the columns of their types.

A merge brings columns, or wider types of columns, to a table that has not got them yet. Rules are
about the table as it will be: rows that are there have the defaults in new columns, and keys are
spelled in the wider type.

The holders of a key as they will be found when the table has its columns. A rule over columns that
the table has already costs what it always does; another one a pass over the column. The caller
chooses the engine that makes the passes.
Not included: writing the columns (`storage.stagedwrites`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import pyarrow as pa

from omnigraph.engines.embedded.lookupcache import Columns
from omnigraph.engines.embedded.view import View, pass_here
from omnigraph.model.snapshot import Snapshot, TableVersion
from omnigraph.rows.checks import TableType
from omnigraph.rows.keyowners import Holders, KeyShape
from omnigraph.storage.root import GraphRoot

# Finds the rows of a version that hold one of many keys. Another engine may bring its own, for
# tables that outgrow one machine; the result is the same.
Passer: TypeAlias = Callable[[GraphRoot, TableVersion, KeyShape, pa.Array], Holders]


class ReshapedView(View):
    """A snapshot some of whose tables have not got all columns of their types yet: `fills` holds,
    for each of them by id, the values of existing rows in columns that are missing; null where it
    does not say."""

    def __init__(
        self,
        root: GraphRoot,
        snapshot: Snapshot,
        fills: Mapping[int, Mapping[str, Any]],
        passer: Passer = pass_here,
    ) -> None:
        super().__init__(root, snapshot)
        self._fills = fills
        self._passer = passer

    def passed(self, version: TableVersion, shape: KeyShape, keys: pa.Array) -> Holders:
        return self._passer(self.root, version, shape, keys)

    def committed_holders(
        self, table: TableType, columns: Columns, rows: pa.Table, keys: pa.Array
    ) -> Holders:
        source = self.committed(table) if table.id in self._fills else None
        shape = self.key_shape(table, columns)
        if source is None or _has(source.schema, shape):
            return super().committed_holders(table, columns, rows, keys)
        return self.passed(source.version, replace(shape, fills=self._fills[table.id]), keys)


def _has(schema: pa.Schema, shape: KeyShape) -> bool:
    """Whether a table has the columns of a key, in the types of its type."""
    there = set(schema.names)
    return all(f.name in there and schema.field(f.name).type == f.type for f in shape.fields)
