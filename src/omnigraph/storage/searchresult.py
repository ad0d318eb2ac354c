"""Search results: their rows, their filter and their order.

Guarantees: the filter and the allowed rows restrict a scan before any ranking; an answer is in a
total order, its score first, then the id.
Deliberately absent: finding anything. `vectors` and `text` do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from omnigraph.model.catalog import ID_COLUMN
from omnigraph.storage import rowsets
from omnigraph.storage.indexhealth import scan_options
from omnigraph.storage.rowsets import RowIds
from omnigraph.storage.table import ROW_ID, Table

DISTANCE = "distance"
SCORE = "score"

TieBreak = Callable[[RowIds], NDArray[Any]]  # numbers that ascend with the ids of some rows


class Path(StrEnum):
    """How rows were found."""

    INDEX = "index"
    MIXED = "index and scan"  # the index does not cover all rows
    SCAN = "scan"
    FETCH = "fetch"  # the few allowed rows, each compared
    MEMORY = "memory"  # the same, in memory
    NONE = "none"  # nothing was allowed


@dataclass(frozen=True, slots=True)
class Access:
    """How an answer was found, for `explain`. `scanned` counts rows outside any index."""

    path: Path
    index: str | None = None
    scanned: int = 0

    def __str__(self) -> str:
        parts = [str(self.path)]
        if self.index:
            parts.append(f"using {self.index}")
        if self.scanned:
            parts.append(f"({self.scanned} rows without index)")
        return " ".join(parts)


@dataclass(frozen=True, slots=True)
class Hits:
    """An answer, best first: `_rowid`, `id` if it was asked for, `distance` or `score`."""

    rows: pa.Table
    access: Access

    def __len__(self) -> int:
        return int(self.rows.num_rows)


@dataclass(frozen=True, slots=True)
class Scope:
    """Which rows of a table a search may return: all, or those of a filter, of a set, of both."""

    table: Table
    filter: pa.compute.Expression | None = None
    allowed: RowIds | None = None
    every: RowIds | None = None  # all rows of the table, where the caller has named them

    def existing(self, row_ids: RowIds) -> NDArray[np.bool_]:
        """Which answers of an index are rows of this version. After compaction, an index still
        names the rows that the old files had lost."""
        if self.allowed is not None:
            return np.ones(len(row_ids), np.bool_)  # Lance has left out all others
        if self.every is None:
            return self.table.holds(row_ids)
        places = np.searchsorted(self.every, row_ids)
        return np.asarray(self.every.take(places, mode="clip") == row_ids)

    def options(self) -> dict[str, Any]:
        """The arguments that restrict a Lance scan to these rows, before any ranking."""
        found: dict[str, Any] = {"prefilter": True}
        if self.filter is not None:
            found |= {"filter": self.filter, **scan_options(self.table.dataset)}
        if self.allowed is not None:
            found["row_addr_allowlist"] = rowsets.encode(self.allowed)
        return found

    def estimate(self) -> int:
        """At most this many rows; exact as far as the set alone decides."""
        limit = self.table.rows if self.allowed is None else len(self.allowed)
        return limit if self.filter is None else min(limit, self.table.count(self.filter))

    @property
    def is_empty(self) -> bool:
        return self.table.rows == 0 or (self.allowed is not None and len(self.allowed) == 0)


def scope(
    table: Table,
    filter: pa.compute.Expression | None = None,
    rows: ArrayLike | None = None,
    *,
    listed: int = 0,
) -> Scope:
    """`rows` are row ids of this table version; up to `listed` of them stay a list, even if those
    are all there are."""
    allowed = None if rows is None else rowsets.row_ids(rows)
    if allowed is not None and len(allowed) >= table.rows and len(allowed) > listed:
        return Scope(table, filter, every=allowed)
    return Scope(table, filter, allowed)


def needs_more(values: NDArray[Any], k: int | None, asked: int | None, returned: int) -> bool:
    """Whether the k best, ties with the k-th included, may lie beyond the answers that came.

    `asked` answers were asked for and `returned` came, of which `values` are those of rows that
    exist, in order of rank.
    """
    if k is None or asked is None or returned < asked:
        return False
    return len(values) <= k or bool(values[k - 1] == values[-1])


def best_first(
    table: Table,
    row_ids: RowIds,
    values: NDArray[np.float32],
    k: int | None,
    name: str,
    tie_break: TieBreak | None = None,
) -> pa.Table:
    """The k best (distances ascending, scores descending), ties by id.

    With a `tie_break` nothing is read for that, and ids are not part of the answer.
    """
    keys = values if name == DISTANCE else -values
    if k is not None and k < len(keys):
        bar = np.partition(keys, k - 1)[k - 1]
        row_ids, values, keys = row_ids[keys <= bar], values[keys <= bar], keys[keys <= bar]
    columns = {ROW_ID: pa.array(row_ids, pa.uint64()), name: pa.array(values, pa.float32())}
    if tie_break is not None:
        ties = len(np.unique(keys)) < len(keys)
        order = np.lexsort([tie_break(row_ids), keys]) if ties else np.argsort(keys)
        order = pa.array(order[:k])
        return pa.table({key: column.take(order) for key, column in columns.items()})
    columns[ID_COLUMN] = table.take(row_ids, [ID_COLUMN]).column(ID_COLUMN)
    by_value = (name, "ascending" if name == DISTANCE else "descending")
    found = pa.table(columns).sort_by([by_value, (ID_COLUMN, "ascending")]).slice(0, k)
    return found.select(_names(name, with_id=True))


def no_rows(name: str, with_id: bool) -> pa.Table:
    types = {ROW_ID: pa.uint64(), ID_COLUMN: pa.string(), name: pa.float32()}
    return pa.schema([(column, types[column]) for column in _names(name, with_id)]).empty_table()


def _names(name: str, with_id: bool) -> list[str]:
    return [ROW_ID, ID_COLUMN, name] if with_id else [ROW_ID, name]
