"""The rows that differ between two versions of a table, found from Lance metadata.

Row ids are stable along a line of descent, so what a descendant wrote is found in the files that
its ancestor does not have, and what it lost among the row ids that are gone: the cost follows the
change, not the table. Two versions that grew apart are both compared with the version at which
their lines meet.

Guarantees: every row that differs is reported; a row that was rewritten without a difference may
be reported too, so callers compare images. When the bookkeeping does not reach from one version
to the other, `row_delta` says so instead of guessing.
Deliberately absent: entity meaning.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph import progress
from omnigraph.errors import HistoryReclaimedError, StorageNotFoundError
from omnigraph.model.catalog import ID_COLUMN
from omnigraph.model.snapshot import TableVersion
from omnigraph.storage.blobrows import read_whole, scan_whole
from omnigraph.storage.indexhealth import filtered
from omnigraph.storage.membudget import held
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.table import open_dataset
from omnigraph.storage.tableancestry import Meeting, Point, Span, meeting_of
from omnigraph.storage.versionreads import version_read

ROW_ID = "_rowid"
ROW_ADDRESS = "_rowaddr"
_UPDATED = "_row_last_updated_at_version"
_CREATED = "_row_created_at_version"

# Changed rows lie scattered over their files; small reads would cost more than they save.
_BLOCK_BYTES = 64 << 10
# So many rows are fetched by their ids in one call, which cannot be stopped or tell how far it is.
_TAKEN_AT_ONCE = 131_072

RowIds = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class RowDelta:
    """The rows of two versions that may differ, with the wanted columns, row ids and addresses.

    `older` are rows of the first version, `written` of the second. An entity that is in neither
    is the same in both. Addresses are those of the version that a row was read from, which for
    versions that grew apart may be the one where they met.
    """

    written: pa.Table
    older: pa.Table


def row_delta(
    root: GraphRoot, before: TableVersion, after: TableVersion, columns: Sequence[str]
) -> RowDelta | None:
    """The rows that may differ, or None when no line of descent connects the versions."""
    try:
        return _row_delta(root, before, after, columns)
    except (HistoryReclaimedError, StorageNotFoundError):
        return None  # a version between the two was cleaned up, though they themselves may be there


def _row_delta(
    root: GraphRoot, before: TableVersion, after: TableVersion, columns: Sequence[str]
) -> RowDelta | None:
    meeting = meeting_of(root, before, after)
    if meeting is None or not _connected(root, meeting, before, after):
        return None
    start = _at(before, meeting.point)
    if not meeting.to_before:  # `after` grew out of `before`, so there is one side only
        new = _grown(root, start, after, meeting.to_after, columns)
        return new or _nothing_differs(root, after, columns)
    with ThreadPoolExecutor(max_workers=1) as pool:  # the two sides at the same time
        grown = partial(_grown, root, start, before, meeting.to_before, columns)
        other = pool.submit(progress.inherited(grown))
        new = _grown(root, start, after, meeting.to_after, columns)
        old = other.result()
    assert old is not None
    if new is None:
        return RowDelta(written=old.older, older=old.written)
    return RowDelta(written=_seen_from(new, old), older=_seen_from(old, new))


def delta_size(root: GraphRoot, before: TableVersion, after: TableVersion) -> int:
    """About how many rows `row_delta` would read: those in files that only one version has."""
    if before.path != after.path:
        return before.rows + after.rows
    first = _files(_open(root, before))
    second = _files(_open(root, after))
    moved = sum(f.metadata.num_rows for key, f in second.items() if key not in first)
    moved += sum(f.metadata.num_rows for key, f in first.items() if key not in second)
    lost = sum(
        abs(file.metadata.num_rows - second[key].metadata.num_rows)
        for key, file in first.items()
        if key in second
    )
    return int(moved + lost)


def all_rows(root: GraphRoot, version: TableVersion, columns: Sequence[str]) -> pa.Table:
    """Every row of a version and its row id, for when there is no lineage to follow."""
    dataset = _open(root, version)
    with version_read(dataset, "scan", dataset.uri):
        return read_whole(
            dataset,
            _present(dataset, columns),
            proven=True,
            with_row_id=True,
            with_row_address=True,
        )


def rows_by_id(
    root: GraphRoot, version: TableVersion, ids: Sequence[str], columns: Sequence[str]
) -> pa.Table:
    """The rows of these entity ids that the version holds, with their row ids."""
    dataset = _open(root, version)
    wanted = _present(dataset, columns)
    chosen = pc.field(ID_COLUMN).isin(pa.array(ids, pa.string()))
    return filtered(
        dataset,
        dataset.uri,
        lambda options: read_whole(
            dataset, wanted, proven=True, filter=chosen, with_row_id=True, **options
        ),
    )


def take_rows(
    root: GraphRoot, version: TableVersion, row_ids: RowIds, columns: Sequence[str]
) -> pa.Table:
    """The rows of these row ids that the version holds, with their row ids."""
    dataset = _open(root, version)
    return _take_existing(dataset, _distinct(row_ids), _present(dataset, columns))


def row_addresses(root: GraphRoot, version: TableVersion, row_ids: RowIds) -> RowIds:
    """Where the rows of these row ids lie; rows that the version does not hold are left out."""
    if len(row_ids) == 0:
        return np.empty(0, np.uint64)
    dataset = _open(root, version)
    with version_read(dataset, "read", dataset.uri):
        found = dataset._take_rows(_distinct(row_ids), columns=[ROW_ADDRESS])
    addresses: RowIds = found.column(ROW_ADDRESS).to_numpy().astype(np.uint64)
    return addresses


def shared_files(root: GraphRoot, before: TableVersion, after: TableVersion) -> RowIds:
    """The numbers of the files that two versions have in common. A row that is in such a file in
    both has the same address in both."""
    old, new = (
        {key: fragment.fragment_id for key, fragment in _files(_open(root, version)).items()}
        for version in (before, after)
    )
    return np.array([n for key, n in old.items() if new.get(key) == n], np.uint64)


@dataclass(frozen=True, slots=True)
class DifferingFile:
    """A file that another version does not have with just these rows. `moved`: it does not have
    it at all, so that rows which are the same there lie elsewhere."""

    number: int
    rows: int
    moved: bool


def differing_files(
    root: GraphRoot, before: TableVersion | None, after: TableVersion | None
) -> tuple[list[DifferingFile], list[DifferingFile]]:
    """The files of two versions that must be compared. A row in any other file is in the same
    place, and the same, in both."""
    old, new = ({} if v is None else _files(_open(root, v)) for v in (before, after))
    if before is not None and after is not None and before.path != after.path:
        return _differing(old, {}), _differing(new, {})
    return _differing(old, new), _differing(new, old)


def file_rows(
    root: GraphRoot, version: TableVersion, files: Sequence[int], columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Batches of some files of a version, with row ids and addresses; for workers."""
    dataset = _open(root, version)
    with version_read(dataset, "scan", dataset.uri):
        yield from scan_whole(
            dataset,
            _present(dataset, columns),
            fragments=[dataset.get_fragment(number) for number in files],
            with_row_id=True,
            with_row_address=True,
        )


def no_rows() -> pa.Table:
    """What a table without any version holds."""
    numbers = [pa.field(name, pa.uint64()) for name in (ROW_ID, ROW_ADDRESS)]
    return pa.schema([pa.field(ID_COLUMN, pa.string()), *numbers]).empty_table()


def descends(root: GraphRoot, before: TableVersion, after: TableVersion) -> bool:
    """Whether `after` grew out of `before`, so that row ids of `before` mean the same in it."""
    meeting = meeting_of(root, before, after)
    return meeting is not None and meeting.point == Point.of(before) and before.epoch == after.epoch


def _connected(
    root: GraphRoot, meeting: Meeting, before: TableVersion, after: TableVersion
) -> bool:
    """Whether row ids mean the same rows all the way. They do within one epoch; where both sides
    left the meeting point, files that all three have in common say so."""
    if before.epoch != after.epoch:
        return False
    if meeting.point in (Point.of(before), Point.of(after)):
        return True
    files = set(_files(_open(root, _at(before, meeting.point))))
    return all(files & set(_files(_open(root, side))) for side in (before, after))


def _grown(
    root: GraphRoot,
    start: TableVersion,
    end: TableVersion,
    spans: Sequence[Span],
    columns: Sequence[str],
) -> RowDelta | None:
    """What a version wrote and lost since an ancestor; None when they are the same version."""
    if not spans:
        return None
    older, newer = _open(root, start), _open(root, end)
    known, now = _files(older), _files(newer)
    written = [file for key, file in now.items() if key not in known]
    if _only_added(known, now):
        nothing = _empty(older, _present(older, columns))
        return RowDelta(written=_all_of(newer, written, columns), older=nothing)
    rows, kept = _written(newer, written, start.version, columns)
    lost = [_lost(root, start, span) for span in spans]
    wanted = _distinct(np.concatenate([kept, *lost]).astype(np.uint64))
    return RowDelta(written=rows, older=_take_existing(older, wanted, _present(older, columns)))


def _only_added(known: dict[tuple[str, ...], Any], now: dict[tuple[str, ...], Any]) -> bool:
    """Whether every file is still there and lost no row, so that all other files are new rows."""
    return all(
        key in now and now[key].metadata.num_rows == file.metadata.num_rows
        for key, file in known.items()
    )


def _all_of(dataset: Any, files: list[Any], columns: Sequence[str]) -> pa.Table:
    wanted = _present(dataset, columns)
    if not files:
        return _empty(dataset, wanted)
    with version_read(dataset, "scan", dataset.uri):
        return read_whole(
            dataset, wanted, proven=True, fragments=files, with_row_id=True, with_row_address=True
        )


def _written(
    dataset: Any, files: list[Any], since: int, columns: Sequence[str]
) -> tuple[pa.Table, RowIds]:
    """Rows of these files that were written after a version, and the row ids among them that the
    version had already. Compaction moves rows into new files without changing them."""
    wanted = _present(dataset, columns)
    if not files:
        return _empty(dataset, wanted), np.empty(0, np.uint64)
    with version_read(dataset, "scan", dataset.uri):
        rows = read_whole(
            dataset,
            [*wanted, _CREATED],
            proven=True,
            filter=f"{_UPDATED} > {since}",
            fragments=files,
            with_row_id=True,
            with_row_address=True,
        )
    created = rows.column(_CREATED).to_numpy()
    return rows.drop_columns([_CREATED]), rows.column(ROW_ID).to_numpy()[created <= since]


def _lost(root: GraphRoot, table: TableVersion, span: Span) -> RowIds:
    dataset = _open(root, _at(table, Point(span.fork, span.end)))
    with version_read(dataset, "read", dataset.uri):
        delta = dataset.delta(begin_version=span.begin, end_version=span.end)
        batches = [batch.column(0).to_numpy() for batch in delta.get_deleted_row_ids()]
    return np.concatenate(batches) if batches else np.empty(0, np.uint64)


def _seen_from(own: RowDelta, other: RowDelta) -> pa.Table:
    """One side's rows: those it wrote, and those that only the other side changed, which it
    therefore still has as they were where the lines met."""
    mine = pa.concat_arrays([_ids(own.older), _ids(own.written)])
    untouched = other.older.filter(pc.invert(pc.is_in(_ids(other.older), value_set=mine)))
    return pa.concat_tables([own.written, untouched], promote_options="default")


def _take_existing(dataset: Any, row_ids: RowIds, columns: Sequence[str]) -> pa.Table:
    """The rows of these ids that the version holds. A row may have come and gone in between."""
    if len(row_ids) == 0:
        return _empty(dataset, columns)
    with version_read(dataset, "read", dataset.uri):
        if _has_blobs(dataset, columns):
            chosen = ",".join(str(row_id) for row_id in row_ids)
            return read_whole(
                dataset,
                columns,
                proven=True,
                filter=f"{ROW_ID} IN ({chosen})",
                with_row_id=True,
                with_row_address=True,
            )
        wanted = [*columns, ROW_ID, ROW_ADDRESS]
        pieces = [row_ids[n : n + _TAKEN_AT_ONCE] for n in range(0, len(row_ids), _TAKEN_AT_ONCE)]
        taken = (dataset._take_rows(piece, columns=wanted) for piece in pieces)
        return pa.concat_tables(progress.counted(held(taken)))


def _distinct(row_ids: RowIds) -> RowIds:
    """Each once and in order. NumPy's own way hashes them, which takes several times as long."""
    ordered = np.sort(row_ids)
    first = np.ones(len(ordered), bool)
    first[1:] = ordered[1:] != ordered[:-1]
    return ordered[first]


def _nothing_differs(root: GraphRoot, version: TableVersion, columns: Sequence[str]) -> RowDelta:
    dataset = _open(root, version)
    nothing = _empty(dataset, _present(dataset, columns))
    return RowDelta(nothing, nothing)


def _empty(dataset: Any, columns: Sequence[str]) -> pa.Table:
    fields = [_plain(dataset.schema.field(name)) for name in columns]
    numbers = [pa.field(name, pa.uint64()) for name in (ROW_ID, ROW_ADDRESS)]
    return pa.schema([*fields, *numbers]).empty_table()


def _plain(field: pa.Field) -> pa.Field:
    """Blobs are read as plain bytes."""
    blob = isinstance(field.type, pa.ExtensionType)
    return pa.field(field.name, pa.large_binary() if blob else field.type)


def _files(dataset: Any) -> dict[tuple[str, ...], Any]:
    """A version's fragments by the data files that they are made of."""
    # Not `path`, which makes a new class each time it is asked: that took longer than all the rest.
    return {
        tuple(file._path for file in fragment.metadata.files): fragment
        for fragment in dataset.get_fragments()
    }


def _differing(
    own: dict[tuple[str, ...], Any], other: dict[tuple[str, ...], Any]
) -> list[DifferingFile]:
    return [
        DifferingFile(fragment.fragment_id, fragment.metadata.num_rows, key not in other)
        for key, fragment in own.items()
        if key not in other or _deletions(fragment) != _deletions(other[key])
    ]


def _deletions(fragment: Any) -> Any:
    return json.dumps(fragment.metadata.to_json().get("deletion_file"), sort_keys=True)


def _ids(rows: pa.Table) -> pa.Array:
    column = rows.column(ID_COLUMN)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], pa.string())


def _at(version: TableVersion, point: Point) -> TableVersion:
    return replace(version, fork=point.fork, version=point.version)


def _open(root: GraphRoot, version: TableVersion) -> Any:
    return open_dataset(root.location, version, block_bytes=_BLOCK_BYTES)


def _present(dataset: Any, columns: Sequence[str]) -> list[str]:
    """The wanted columns that a version has; a property may have been added since."""
    there = set(dataset.schema.names)
    return [column for column in columns if column in there]


def _has_blobs(dataset: Any, columns: Sequence[str]) -> bool:
    return any(isinstance(dataset.schema.field(name).type, pa.ExtensionType) for name in columns)
