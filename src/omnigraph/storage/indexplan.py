"""The missing indexes of a table version, and their build parameters.

    tasks = plan_indexes(table_type, table)
    staged = stage_indexes(root, branch_id, table.version, tasks)      (in `indexfiles`)

Which property gets which kind of index is decided in `model.indexes`. Here a kind becomes an index
of Lance, by the size of the table:

    btree    BTREE
    fts      INVERTED, with positions
    vector   none while comparing every row is as fast; IVF_FLAT while the vectors are small enough
             to be read whole; otherwise IVF_RQ, which takes about a sixth of the room

Guarantees: planning changes nothing and asks only for what is missing, so that a second run finds
nothing to do; an index grows by segments over new rows, and is rebuilt when there are many
segments. What cannot be built yet is a task with `pending`, never an error.
Deliberately absent: building (`indexfiles`), and any promise that readers find an index.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omnigraph.model.catalog import EdgeType, NodeType
from omnigraph.model.indexes import IndexKind, indexes_of
from omnigraph.storage.analysis import TEXT_INDEX_OPTIONS
from omnigraph.storage.failures import translated
from omnigraph.storage.indexhealth import is_damaged, segments_of
from omnigraph.storage.table import Table
from omnigraph.storage.vectors import vectors_of

# Below both, comparing every row takes no longer than asking an index.
_EXACT_BYTES = 4 << 20
_EXACT_ROWS = 20_000
# Up to here an index that keeps vectors whole can be probed completely within milliseconds.
_FLAT_BYTES = 32 << 20
# Recall was measured for codes of so many bits per dimension, and for no shorter vectors.
_CODE_BITS = 5
_MIN_CODED_DIM = 64
_ROWS_PER_PARTITION = 2048
_MAX_PARTITIONS = 4096
# An index is rebuilt if it lacks more than this share of rows, or has this many segments.
_REBUILD_SHARE = 0.4
_MAX_SEGMENTS = 8


@dataclass(frozen=True, slots=True)
class IndexTask:
    """One index to build.

    `fragments` is what it will cover; `extends`: it is one more segment of an index that is there;
    `replaces`: the segments that it takes the place of; `pending`: why it cannot be built now.
    """

    property: str
    column: str
    kind: IndexKind
    type: str
    name: str
    rows: int
    reason: str
    fragments: tuple[int, ...] = ()
    extends: bool = False
    replaces: tuple[str, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)
    pending: str | None = None


@dataclass(frozen=True, slots=True)
class IndexCoverage:
    """How much of a table an index holds."""

    name: str
    column: str
    type: str
    segments: int
    indexed_rows: int
    unindexed_rows: int


@dataclass(frozen=True, slots=True)
class _Existing:
    name: str
    type: str
    segments: tuple[str, ...]
    fragments: frozenset[int]


def coverage(table: Table) -> tuple[IndexCoverage, ...]:
    """Every index of a table version and how many rows it still lacks."""
    with translated("read", table.version.path):
        described = table.dataset.describe_indices()
    return tuple(
        IndexCoverage(
            index.name,
            index.field_names[0],
            str(index.index_type),
            len(index.segments),
            int(index.num_rows_indexed),
            max(0, table.rows - int(index.num_rows_indexed)),
        )
        for index in described
    )


def plan_indexes(table_type: NodeType | EdgeType, table: Table) -> list[IndexTask]:
    """What to build so that the table has every index that its type asks for, whole."""
    names = {prop.column: prop.name for prop in table_type.properties}
    with translated("read", table.version.path):
        sizes = {f.fragment_id: int(f.count_rows()) for f in table.dataset.get_fragments()}
        found = [
            _task(table, names.get(spec.column, spec.column), spec.column, spec.kind, sizes)
            for spec in indexes_of(table_type)
        ]
    return [task for task in found if task is not None]


def _task(
    table: Table, name: str, column: str, kind: IndexKind, sizes: Mapping[int, int]
) -> IndexTask | None:
    existing = _existing(table.dataset, column, kind)
    missing = [f for f in sizes if existing is None or f not in existing.fragments]
    rows = sum(sizes[fragment] for fragment in missing)
    damaged = existing is not None and is_damaged(existing.segments)
    if existing is not None and rows == 0 and not damaged:
        return None
    extends = existing is not None and not damaged
    if existing is not None and extends and _may_extend(existing, rows, sum(sizes.values())):
        reason = f"{rows} of {sum(sizes.values())} rows are not covered"
        task = IndexTask(name, column, kind, existing.type, existing.name, rows, reason)
        task = replace(task, fragments=tuple(missing), extends=True)
    else:
        reason = "missing" if existing is None else "too much of the table is new to it"
        reason = "its files are lost or damaged" if damaged else reason
        rows = sum(sizes.values())
        replaces = existing.segments if existing else ()
        chosen = _lance_type(table, column, kind, rows)
        task = IndexTask(name, column, kind, chosen, f"{column}_{kind}", rows, reason)
        task = replace(task, fragments=tuple(sizes), replaces=replaces)
    task = replace(task, params=_params(task))
    return replace(task, pending=_obstacle(table, task, existing is None))


def _existing(dataset: Any, column: str, kind: IndexKind) -> _Existing | None:
    found = [
        index
        for index in dataset.describe_indices()
        if index.field_names == [column] and _kind_of(str(index.index_type)) is kind
    ]
    if not found:
        return None
    index = max(found, key=lambda candidate: int(candidate.num_rows_indexed))
    fragments: set[int] = set().union(*(segment.fragment_ids for segment in index.segments))
    return _Existing(index.name, _type_name(index), segments_of(index), frozenset(fragments))


def _kind_of(type_name: str) -> IndexKind | None:
    name = type_name.upper()
    if name == "BTREE":
        return IndexKind.BTREE
    if name == "INVERTED":
        return IndexKind.FTS
    return IndexKind.VECTOR if name.startswith("IVF") else None


def _type_name(index: Any) -> str:
    return str(index.index_type).upper()


def _may_extend(existing: _Existing, missing_rows: int, rows: int) -> bool:
    return missing_rows <= _REBUILD_SHARE * rows and len(existing.segments) < _MAX_SEGMENTS


def _lance_type(table: Table, column: str, kind: IndexKind, rows: int) -> str:
    if kind is IndexKind.BTREE:
        return "BTREE"
    if kind is IndexKind.FTS:
        return "INVERTED"
    dim = _dimension(table, column)
    coded = dim % 8 == 0 and dim >= _MIN_CODED_DIM and rows * dim * 4 > _FLAT_BYTES
    return "IVF_RQ" if coded else "IVF_FLAT"


def _dimension(table: Table, column: str) -> int:
    position = table.schema.get_field_index(column)
    return int(table.schema.field(position).type.list_size) if position >= 0 else 0


def _params(task: IndexTask) -> dict[str, Any]:
    if task.kind is IndexKind.FTS:
        return dict(TEXT_INDEX_OPTIONS)
    if task.kind is IndexKind.VECTOR:
        coded = {"num_bits": _CODE_BITS} if task.type == "IVF_RQ" else {}
        return {"metric": "cosine", "num_partitions": partitions_for(task.rows), **coded}
    return {}


def partitions_for(rows: int) -> int:
    """Into how many parts a vector index divides this many vectors."""
    return min(_MAX_PARTITIONS, max(1, rows // _ROWS_PER_PARTITION))


def _obstacle(table: Table, task: IndexTask, is_new: bool) -> str | None:
    """Why an index cannot be built, or is not worth building, at this version."""
    if table.schema.get_field_index(task.column) < 0:
        return "the table holds no such column yet"
    if task.rows == 0:
        return "the table has no rows"
    if task.kind is not IndexKind.VECTOR:
        return None
    size = task.rows * _dimension(table, task.column) * 4
    if is_new and size < _EXACT_BYTES and task.rows < _EXACT_ROWS:
        return "comparing every row is as fast while there are so few"
    if not any(len(batch) for batch in sound_vectors(table.dataset, task)):
        return "there is no vector to train on"
    return None


def sound_vectors(dataset: Any, task: IndexTask) -> Iterator[NDArray[np.float32]]:
    """Batches of the vectors that have a direction."""
    chosen = [dataset.get_fragment(fragment) for fragment in task.fragments]
    scanner = dataset.scanner(columns=[task.column], with_row_id=True, fragments=chosen)
    for batch in scanner.to_batches():
        _, vectors = vectors_of(batch, task.column)
        lengths = np.linalg.norm(vectors, axis=1)
        yield vectors[np.isfinite(lengths) & (lengths > 0)]
