"""The differences between two versions of a table, computed on executors.

Files that both versions have with the same rows are not read at all. The rows of all others are
dealt out by a hash of their id, so that both images of an entity meet in one task, which compares
them by the function that the embedded path calls, too.

Guarantees: the differences that `history.entitydiff` finds. The driver gets rows that differ, and
of rows that are the same in another place the place alone; a task holds about `_BUCKET_ROWS` of
each side.
Deliberately absent: what a difference means.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from omnigraph import progress
from omnigraph.bulk.stagedkeys import shares
from omnigraph.engines.spark.frameinputs import gathered, to_ipc
from omnigraph.engines.spark.session import parallelism
from omnigraph.engines.spark.sparkerrors import translated
from omnigraph.history.entitydiff import same_content
from omnigraph.history.images import TableDiff, TypePair, compare, wanted_columns
from omnigraph.model.catalog import ID_COLUMN
from omnigraph.model.location import Location
from omnigraph.model.snapshot import TableVersion
from omnigraph.storage.blobrows import proven_rows
from omnigraph.storage.membudget import held
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.versiondiff import (
    ROW_ADDRESS,
    ROW_ID,
    DifferingFile,
    differing_files,
    file_rows,
    no_rows,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BUCKET_ROWS = 200_000
_MOVED = "_moved"
_DEALT = "bucket int, side int, packed binary"
_FOUND = "kind int, packed binary"
_BEFORE, _AFTER, _REWRITTEN = range(3)


@dataclass(frozen=True, slots=True)
class _Part:
    """Files of one side for one task."""

    side: int
    version: TableVersion
    files: tuple[DifferingFile, ...]


def differ_on(
    spark: SparkSession,
) -> Callable[[GraphRoot, TypePair, TableVersion | None, TableVersion | None], TableDiff]:
    """A way to compare two versions of a table: see `history.entitydiff.Differ`."""

    def differ(
        root: GraphRoot, types: TypePair, old: TableVersion | None, new: TableVersion | None
    ) -> TableDiff:
        if same_content(old, new):
            old = new = None
        return _compared(spark, root, types, old, new)

    return differ


def _compared(
    spark: SparkSession,
    root: GraphRoot,
    types: TypePair,
    old: TableVersion | None,
    new: TableVersion | None,
) -> TableDiff:
    files = differing_files(root, old, new)
    parts = [
        _Part(side, version, tuple(group))
        for side, version in enumerate((old, new))
        if version is not None
        for group in shares(files[side], lambda file: file.rows, parallelism(spark))
    ]
    nothing = compare(types, no_rows(), no_rows())
    if not parts:
        return nothing
    rows = sum(file.rows for side in files for file in side)
    buckets = max(parallelism(spark), -(-rows // _BUCKET_ROWS))
    ids = spark.range(0, len(parts), 1, len(parts))
    deal = _dealer(root.location, parts, wanted_columns(types), buckets)
    dealt = ids.mapInArrow(deal, _DEALT)
    found = dealt.groupBy("bucket").applyInArrow(_comparer(types), _FOUND)
    pieces: dict[int, list[pa.Table]] = {_BEFORE: [], _AFTER: [], _REWRITTEN: []}
    with translated("compare the tables"):
        for row in found.toLocalIterator():
            piece = proven_rows(_unpacked(bytes(row["packed"])))
            pieces[row["kind"]] += progress.counted(held([piece]))
    return TableDiff(
        types,
        *(
            pa.concat_tables([nothing.before, *pieces[kind]]).sort_by(ID_COLUMN)
            for kind in (_BEFORE, _AFTER, _REWRITTEN)
        ),
    )


# In tasks


def _dealer(
    location: Location, parts: Sequence[_Part], columns: list[str], buckets: int
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Reads files and deals their rows out by id."""

    def deal(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        root = GraphRoot(location)
        for batch in batches:
            for place in batch.column(0).to_pylist():
                part = parts[place]
                for moved in (False, True):
                    files = [file.number for file in part.files if file.moved is moved]
                    if files:
                        rows = file_rows(root, part.version, files, columns)
                        yield from _dealt(part.side, rows, moved, buckets)

    return deal


def _dealt(
    side: int, batches: Iterator[pa.RecordBatch], moved: bool, buckets: int
) -> Iterator[pa.RecordBatch]:
    for table in gathered(batches):
        marked = table.append_column(_MOVED, pa.repeat(moved, table.num_rows))
        numbers = _buckets(marked.column(ID_COLUMN), buckets)
        order = np.argsort(numbers, kind="stable")
        ends = np.searchsorted(numbers[order], np.arange(buckets + 1))
        for bucket in np.unique(numbers).tolist():
            rows = marked.take(pa.array(order[ends[bucket] : ends[bucket + 1]]))
            yield pa.RecordBatch.from_arrays(
                [
                    pa.array([bucket], pa.int32()),
                    pa.array([side], pa.int32()),
                    pa.array([to_ipc(rows)], pa.binary()),
                ],
                names=["bucket", "side", "packed"],
            )


def _buckets(ids: pa.ChunkedArray, buckets: int) -> Any:
    """The same id has the same bucket in every process, which Python's own hash has not."""
    hashes = (zlib.crc32(text.encode()) for text in ids.to_pylist())
    return np.fromiter(hashes, np.int64, len(ids)) % buckets


def _comparer(types: TypePair) -> Callable[[pa.Table], pa.Table]:
    """Compares both images of all entities of a bucket."""

    def compare_bucket(group: pa.Table) -> pa.Table:
        sides: list[list[pa.Table]] = [[], []]
        for side, packed in zip(
            group.column("side").to_pylist(), group.column("packed").to_pylist(), strict=True
        ):
            sides[side].append(_unpacked(packed))
        older, newer = (_joined(tables) for tables in sides)
        found = compare(types, *(t.drop_columns([_MOVED]) for t in (older, newer)))
        kinds = {_BEFORE: found.before, _AFTER: found.after}
        kinds[_REWRITTEN] = _placed(found.rewritten, newer)
        kept = {kind: rows for kind, rows in kinds.items() if rows.num_rows}
        return pa.table(
            {
                "kind": pa.array(list(kept), pa.int32()),
                "packed": pa.array([to_ipc(rows) for rows in kept.values()], pa.binary()),
            }
        )

    return compare_bucket


def _joined(tables: list[pa.Table]) -> pa.Table:
    nothing = no_rows().append_column(_MOVED, pa.array([], pa.bool_()))
    return pa.concat_tables([nothing, *tables], promote_options="default")


def _placed(rows: pa.Table, newer: pa.Table) -> pa.Table:
    """Of rows that are the same on both sides: which lie elsewhere now, and where."""
    moved = newer.filter(newer.column(_MOVED)).column(ROW_ID)
    chosen = rows.filter(pa.compute.is_in(rows.column(ROW_ID), value_set=moved.combine_chunks()))
    told = {ID_COLUMN, ROW_ID, ROW_ADDRESS}
    return pa.table(
        {
            field.name: chosen.column(field.name)
            if field.name in told
            else pa.nulls(chosen.num_rows, field.type)
            for field in rows.schema
        }
    )


def _unpacked(packed: bytes) -> pa.Table:
    with pa.ipc.open_file(pa.BufferReader(packed)) as reader:
        return reader.read_all()
