"""A table version of which some rows and columns are hidden."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.errors import InvariantViolationError
from omnigraph.storage.table import ROW_ID, IndexInfo, IoCounters, Table


class VisibleTable(Table):
    """Shows only some rows, and no hidden column. `row_ids` are the visible ones, ascending; None:
    all. `rows` stays the number of stored rows, which searches and cost estimates need."""

    def __init__(
        self, base: Table, row_ids: np.ndarray[Any, Any] | None, hidden: frozenset[str]
    ) -> None:
        super().__init__(base.dataset, base.version)
        self._base = base
        self._row_ids = row_ids
        self._hidden = hidden

    @property
    def schema(self) -> pa.Schema:
        whole = self._base.schema
        return pa.schema([each for each in whole if each.name not in self._hidden])

    def scan(
        self,
        columns: Sequence[str],
        *,
        filter: Any = None,
        with_row_id: bool = False,
        limit: int | None = None,
        **options: Any,
    ) -> Iterator[pa.RecordBatch]:
        self._check(columns)
        left = limit
        for batch in self._base.scan(columns, filter=filter, with_row_id=True, **options):
            kept = batch.filter(pa.array(self._marks(batch.column(ROW_ID).to_numpy())))
            if left is not None:
                kept = kept.slice(0, left)
                left -= kept.num_rows
            yield kept if with_row_id else kept.select(list(columns))
            if left == 0:
                return

    def read(
        self,
        columns: Sequence[str],
        *,
        filter: Any = None,
        with_row_id: bool = False,
        limit: int | None = None,
        **options: Any,
    ) -> pa.Table:
        self._check(columns)
        found = self._base.read(columns, filter=filter, with_row_id=True, **options)
        kept = found.filter(pa.array(self._marks(found.column(ROW_ID).to_numpy())))
        kept = kept if limit is None else kept.slice(0, limit)
        return kept if with_row_id else kept.select(list(columns))

    def take(self, row_ids: np.ndarray[Any, Any], columns: Sequence[str]) -> pa.Table:
        self._check(columns)
        if not bool(self._marks(np.asarray(row_ids)).all()):
            raise InvariantViolationError("A hidden row was asked for by its row id.")
        return self._base.take(row_ids, columns)

    def holds(self, row_ids: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        found: np.ndarray[Any, Any] = self._base.holds(row_ids) & self._marks(row_ids)
        return found

    def count(self, filter: Any = None) -> int:
        if filter is None:
            return self.rows if self._row_ids is None else len(self._row_ids)
        return int(self.read([], filter=filter, with_row_id=True).num_rows)

    def indexes(self) -> tuple[IndexInfo, ...]:
        return tuple(i for i in self._base.indexes() if i.column not in self._hidden)

    def io(self) -> IoCounters:
        return self._base.io()

    def _marks(self, row_ids: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if self._row_ids is None:
            return np.ones(len(row_ids), bool)
        return np.isin(row_ids, self._row_ids)

    def _check(self, columns: Sequence[str]) -> None:
        hidden = self._hidden.intersection(columns)
        if hidden:
            raise InvariantViolationError(f"The columns {sorted(hidden)} are hidden.")
