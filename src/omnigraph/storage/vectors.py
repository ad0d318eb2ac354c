"""The rows whose vectors are nearest to a query.

A vector index only proposes candidates, more than are wanted; their vectors are fetched with them
and compared exactly. Where there is no index, or only few rows are allowed, all are compared.

Guarantees: as `search` says, and a recall of at least 0.98 with the indexes that `indexplan`
builds; never fewer rows than are wanted and allowed; null vectors and vectors without a direction
never match.
Deliberately absent: other metrics than cosine distance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from omnigraph.errors import InvalidArgumentError
from omnigraph.storage.filters import scanner
from omnigraph.storage.indexhealth import DAMAGE, without
from omnigraph.storage.nprobes import ALL_PARTITIONS, ProbeCurve
from omnigraph.storage.rowsets import RowIds
from omnigraph.storage.scores import cosine_distances
from omnigraph.storage.searchresult import (
    DISTANCE,
    Access,
    Hits,
    Path,
    Scope,
    TieBreak,
    best_first,
    needs_more,
    no_rows,
    scope,
)
from omnigraph.storage.table import ROW_ID, IndexInfo, Table
from omnigraph.storage.versionreads import version_read

# Comparing all of so many rows costs less than asking an index: rows to fetch, rows in memory.
_FETCH_ROWS = 256
_HELD_ROWS = 8192
# Rounded distances of an index may order neighbours wrongly; so take more and compare exactly.
_QUANTIZED_EXTRA = 32
_TIE_EXTRA = 8
# How far the rough distances of a scan may be off.
_ROUGH_SLACK = 1e-5
_SCAN_BATCH_ROWS = 16_384


@dataclass(frozen=True, slots=True)
class VectorTuning:
    """Overrides for one search. None means: chosen for a recall of at least 0.98.

    `exact`: True compares every row, False insists on the index where there is one. `probes`:
    partitions of the index to look into. `refine`: candidates per wanted row. `ef`: width of the
    walk, for graph indexes alone.
    """

    exact: bool | None = None
    probes: int | None = None
    refine: int | None = None
    ef: int | None = None


DEFAULT_TUNING = VectorTuning()

Holder = Callable[[RowIds], pa.Array]  # the vectors of rows, where memory holds them


def vector_topk(
    table: Table,
    column: str,
    query: ArrayLike,
    k: int | None,
    *,
    filter: pa.compute.Expression | None = None,
    rows: ArrayLike | None = None,
    tuning: VectorTuning = DEFAULT_TUNING,
    tie_break: TieBreak | None = None,
    holder: Holder | None = None,
) -> Hits:
    """The k rows nearest to the query by cosine distance; all rows, ranked, when k is None."""
    target = query_vector(table.schema.field(column).type, column, query)
    within = scope(table, filter, rows, listed=0 if holder is None else _HELD_ROWS)
    if within.is_empty or (k is not None and k <= 0):
        return Hits(no_rows(DISTANCE, tie_break is None), Access(Path.NONE))
    index = _vector_index(table, column)
    asked = Asked(column, target, k, tuning, holder)
    if index is None or k is None or _compares_all(within, k, asked):
        row_ids, distances, access = _compare(within, asked)
    else:
        try:
            row_ids, distances, access = _ask_index(within, asked, k, index)
        except DAMAGE:
            with without(index.name, index.segments, table.version.path):
                row_ids, distances, access = _compare(within, asked)
    return Hits(best_first(table, row_ids, distances, k, DISTANCE, tie_break), access)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question for the nearest rows."""

    column: str
    target: NDArray[np.float32]
    k: int | None
    tuning: VectorTuning
    holder: Holder | None


_Found = tuple[RowIds, NDArray[np.float32], Access]


def query_vector(declared: pa.DataType, column: str, query: ArrayLike) -> NDArray[np.float32]:
    """A query as a vector that a column of this type can be compared with."""
    if not pa.types.is_fixed_size_list(declared):
        raise InvalidArgumentError(f"The column {column!r} holds no vectors.")
    target = np.asarray(query, dtype=np.float32)
    if target.shape != (declared.list_size,):
        shape = "×".join(str(size) for size in target.shape) or "no"
        raise InvalidArgumentError(
            f"The query vector has {shape} dimensions; {column!r} has {declared.list_size}.",
            hint="Embed the query with the model that made the stored vectors.",
        )
    if not np.isfinite(target).all() or not target.any():
        raise InvalidArgumentError(
            "The query vector has no direction: it is all zeros or not all numbers."
        )
    return target


def _vector_index(table: Table, column: str) -> IndexInfo | None:
    """The vector index of a column, if it has one."""
    found = [i for i in table.indexes() if i.column == column and "IVF" in i.kind.upper()]
    return max(found, key=lambda index: index.rows, default=None)


def _compares_all(within: Scope, k: int, asked: Asked) -> bool:
    if asked.tuning.exact is not None:
        return asked.tuning.exact
    few = max(_FETCH_ROWS if asked.holder is None else _HELD_ROWS, _proposals(k))
    return within.allowed is not None and len(within.allowed) <= few


def _compare(within: Scope, asked: Asked) -> _Found:
    """Compare every allowed row."""
    nearest = _Nearest(asked.target, asked.k)
    if asked.holder is not None and within.allowed is not None and within.filter is None:
        nearest.add(*_known(within.allowed, asked.holder(within.allowed)))
        return *nearest.result(), Access(Path.MEMORY, scanned=nearest.compared)
    table, column = within.table, asked.column
    with version_read(table.dataset, "scan", table.version.path):
        options = {"with_row_id": True, "batch_size": _SCAN_BATCH_ROWS, **within.options()}
        for batch in scanner(table.dataset, columns=[column], **options).to_batches():
            nearest.add(*vectors_of(batch, column))
    path = Path.SCAN if within.allowed is None else Path.FETCH
    return *nearest.result(), Access(path, scanned=nearest.compared)


def vectors_of(rows: pa.RecordBatch | pa.Table, column: str) -> tuple[RowIds, NDArray[np.float32]]:
    """Row ids and vectors of the rows that have one."""
    values = rows.column(column)
    flat = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    return _known(rows.column(ROW_ID).to_numpy(), flat)


def _known(row_ids: RowIds, vectors: pa.Array) -> tuple[RowIds, NDArray[np.float32]]:
    if vectors.null_count:  # filtering copies; most tables have a vector in every row
        there = vectors.is_valid().to_numpy(zero_copy_only=False)
        row_ids, vectors = row_ids[there], vectors.drop_null()
    matrix = vectors.flatten().to_numpy(zero_copy_only=False)
    return row_ids, matrix.reshape(-1, vectors.type.list_size)


class _Nearest:
    """Collects the nearest vectors of a stream: rough distances choose, exact ones decide."""

    def __init__(self, query: NDArray[np.float32], k: int | None) -> None:
        self._query = query
        self._unit = query / np.linalg.norm(query)
        self._k = k
        self._best = np.empty(0, dtype=np.float32)  # the k smallest rough distances so far
        self._row_ids: list[RowIds] = []
        self._distances: list[NDArray[np.float32]] = []
        self.compared = 0

    def add(self, row_ids: RowIds, vectors: NDArray[np.float32]) -> None:
        self.compared += len(row_ids)
        near = self._near(vectors)
        distances = cosine_distances(vectors[near], self._query)
        directed = ~np.isnan(distances)
        self._row_ids.append(row_ids[near][directed])
        self._distances.append(distances[directed])

    def _near(self, vectors: NDArray[np.float32]) -> NDArray[np.bool_]:
        """Which of these may still be among the k nearest."""
        if self._k is None:
            return np.ones(len(vectors), dtype=np.bool_)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
            # Not a product of matrices: its threads wait for each other on a busy machine.
            rough = 1.0 - np.einsum("ij,j->i", vectors, self._unit) / lengths
        rough = np.where(np.isnan(rough), np.inf, rough)
        best = np.concatenate([self._best, rough])
        if len(best) > self._k:
            best = np.partition(best, self._k - 1)[: self._k]
        self._best = best
        return np.asarray(rough <= best.max(initial=0.0) + _ROUGH_SLACK)

    def result(self) -> tuple[RowIds, NDArray[np.float32]]:
        if not self._row_ids:
            return np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.float32)
        return np.concatenate(self._row_ids), np.concatenate(self._distances)


def _ask_index(within: Scope, asked: Asked, k: int, index: IndexInfo) -> _Found:
    table = within.table
    probes, wanted = _effort(within, k, index, asked.tuning)
    candidates = _candidates(k, index, asked.tuning)
    while True:
        plan = _nearest_plan(asked, candidates, probes)
        row_ids, distances, returned = _propose(within, asked, plan)
        if len(row_ids) < wanted and probes < ALL_PARTITIONS:
            probes = ALL_PARTITIONS
        elif needs_more(distances, k, candidates, returned):
            candidates *= 4
        else:
            break
    missing = max(0, table.rows - index.rows)
    access = Access(Path.MIXED if missing else Path.INDEX, index.name, missing)
    return row_ids, distances, access


def _effort(within: Scope, k: int, index: IndexInfo, tuning: VectorTuning) -> tuple[int, int]:
    """How many partitions to probe, and how many rows must come of it."""
    curve = ProbeCurve.from_name(index.name)
    if tuning.probes is None and curve is None:
        return ALL_PARTITIONS, 0
    allowed = within.estimate()
    if tuning.probes is not None or curve is None:
        return tuning.probes or ALL_PARTITIONS, min(k, allowed)
    # The k-th best of few allowed rows lies as deep among all rows as this.
    depth = k * within.table.rows / max(1, allowed)
    return curve.at(depth), min(k, allowed)


def _candidates(k: int, index: IndexInfo, tuning: VectorTuning) -> int:
    if tuning.refine is not None:
        return max(k + 1, k * tuning.refine)
    return k + _TIE_EXTRA if "FLAT" in index.kind.upper() else _proposals(k)


def _proposals(k: int) -> int:
    """How many candidates hold the k nearest although their codes are coarse."""
    return k + k // 4 + _QUANTIZED_EXTRA


def _nearest_plan(asked: Asked, candidates: int, probes: int) -> dict[str, Any]:
    plan: dict[str, Any] = {"column": asked.column, "q": asked.target, "k": candidates}
    plan["metric"] = "cosine"
    # Not `nprobes`: that would also be the most partitions that are ever looked into.
    plan["minimum_nprobes"] = probes
    if asked.tuning.ef is not None:
        plan["ef"] = asked.tuning.ef
    return plan


def _propose(
    within: Scope, asked: Asked, plan: dict[str, Any]
) -> tuple[RowIds, NDArray[np.float32], int]:
    """Candidates of an index that exist, with their exact distances, nearest first; and how many
    candidates there were."""
    columns = [ROW_ID] if asked.holder is not None else [asked.column, ROW_ID]
    with version_read(within.table.dataset, "scan", within.table.version.path):
        found = scanner(
            within.table.dataset,
            columns=columns,
            nearest=plan,
            disable_scoring_autoprojection=True,
            **within.options(),
        ).to_table()
    proposed = found.column(ROW_ID).to_numpy()
    there = within.existing(proposed)
    returned = len(proposed)
    if asked.holder is not None:
        proposed = proposed[there]
        row_ids, vectors = _known(proposed, asked.holder(proposed))
    else:
        found = found if bool(there.all()) else found.filter(pa.array(there))
        row_ids, vectors = vectors_of(found, asked.column)
    distances = cosine_distances(vectors, asked.target)
    order = np.argsort(distances, kind="stable")
    return row_ids[order], distances[order], returned
