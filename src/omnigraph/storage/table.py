"""Reading one immutable version of one table, as Arrow.

    table = open_table(snapshot.location, version)
    table.read(["id", "age"], filter=pc.field("age") > 30, with_row_id=True)

Guarantees: a `Table` never shows another version than the one it was opened at; handles are shared
between threads and cached by (location, path, fork, version), all over one Lance session
per set of storage options, so that index
and metadata caches are warmed once per process; filters are Arrow expressions, never text.
A version that is gone reads as `HistoryReclaimedError`.

Absent on purpose: anything that writes, and any knowledge of graph types; columns are physical.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.caches import Cache
from omnigraph.errors import (
    InvariantViolationError,
    StorageNotFoundError,
)
from omnigraph.model.catalog import ID_COLUMN
from omnigraph.model.location import Location
from omnigraph.model.snapshot import TableVersion
from omnigraph.storage.blobrows import read_whole, scan_whole
from omnigraph.storage.failures import translated
from omnigraph.storage.filters import scanner
from omnigraph.storage.incarnation import known, refuse_replaced
from omnigraph.storage.indexhealth import filtered, filtered_batches, is_damaged, segments_of
from omnigraph.storage.rehome import check_home, forget_homes
from omnigraph.storage.replacement import confirm, confirm_on_disk
from omnigraph.storage.versionreads import reclaimed, version_read

ROW_ID = "_rowid"
BATCH_ROWS = 65_536

_OPEN_TABLES = 512
_HANDLE_BYTES = 64 << 10  # of one open table with its manifest, about
_SESSIONS = 8
# Looking up one row id costs as much as listing so many.
_ROWS_PER_LOOKUP = 16
_INDEX_CACHE_BYTES = 512 << 20
_METADATA_CACHE_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """An index on one column and how many of the table's rows it covers."""

    name: str
    column: str
    kind: str
    rows: int
    segments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class IoCounters:
    """Requests and bytes that reads through one handle have cost so far."""

    requests: int = 0
    bytes: int = 0

    def __sub__(self, earlier: IoCounters) -> IoCounters:
        return IoCounters(self.requests - earlier.requests, self.bytes - earlier.bytes)

    def __add__(self, other: IoCounters) -> IoCounters:
        return IoCounters(self.requests + other.requests, self.bytes + other.bytes)


class Table:
    """One version of one table. Safe to share between threads."""

    def __init__(self, dataset: Any, version: TableVersion) -> None:
        self._dataset = dataset
        self.version = version
        self._schema: pa.Schema | None = None
        self._indexes: tuple[IndexInfo, ...] | None = None

    @property
    def dataset(self) -> Any:
        """The Lance dataset, for the other modules of this package alone."""
        return self._dataset

    @property
    def schema(self) -> pa.Schema:
        if self._schema is None:
            self._schema = self._dataset.schema
        return self._schema

    @property
    def rows(self) -> int:
        return self.version.rows

    def scan(
        self,
        columns: Sequence[str],
        *,
        filter: pa.compute.Expression | None = None,
        with_row_id: bool = False,
        limit: int | None = None,
        batch_rows: int = BATCH_ROWS,
        whole_blobs: bool = False,
        read_ahead_bytes: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Batches in table order; `_rowid` comes last when it is asked for. `read_ahead_bytes`
        bounds what is read before it is asked for."""
        asked: dict[str, Any] = {"filter": filter, "with_row_id": with_row_id, "limit": limit}
        asked["batch_size"] = batch_rows

        def batches(options: dict[str, Any]) -> Iterator[pa.RecordBatch]:
            if whole_blobs:
                return scan_whole(self._dataset, columns, **asked, **options)
            ahead = {} if read_ahead_bytes is None else {"io_buffer_size": read_ahead_bytes}
            found = scanner(self._dataset, columns=list(columns), **asked, **ahead, **options)
            return iter(found.to_batches())

        if filter is not None:
            yield from filtered_batches(self._dataset, self.version.path, batches)
            return
        with version_read(self._dataset, "scan", self.version.path):
            yield from batches({})

    def read(
        self,
        columns: Sequence[str],
        *,
        filter: pa.compute.Expression | None = None,
        with_row_id: bool = False,
        limit: int | None = None,
        whole_blobs: bool = False,
        proven: bool = False,
    ) -> pa.Table:
        """The same as one table; blobs are descriptions, or bytes. `proven`: see `blobrows`."""
        asked = {"filter": filter, "with_row_id": with_row_id, "limit": limit}

        def rows(options: dict[str, Any]) -> pa.Table:
            if whole_blobs:
                return read_whole(self._dataset, columns, proven=proven, **asked, **options)
            return scanner(self._dataset, columns=list(columns), **asked, **options).to_table()

        if filter is not None:
            return filtered(self._dataset, self.version.path, rows)
        with version_read(self._dataset, "scan", self.version.path):
            return rows({})

    def take(self, row_ids: np.ndarray[Any, Any], columns: Sequence[str]) -> pa.Table:
        """The rows of these row ids, in their order, repeats included."""
        if len(row_ids) == 0 or not columns:
            return self._empty(columns)
        wanted = np.asarray(row_ids, dtype=np.uint64)
        with version_read(self._dataset, "read", self.version.path):
            distinct, back = np.unique(wanted, return_inverse=True)
            # Lance may drop repeats and reorders by file: ask once each, in order, and spread.
            found = self._dataset._take_rows(distinct, columns=list(columns))
        if found.num_rows != len(distinct):  # Lance leaves out what it does not find
            raise InvariantViolationError(
                f"{len(distinct) - found.num_rows} of {len(distinct)} rows are not in version "
                f"{self.version.version} of table {self.version.path!r}.",
                table=self.version.path,
            )
        return found if len(distinct) == len(wanted) and _ascending(wanted) else found.take(back)

    def holds(self, row_ids: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """For each row id, whether this version has that row. An index may still name rows that
        are gone; no column is read to find out."""
        there = np.ones(len(row_ids), np.bool_)
        if len(row_ids) == 0:
            return there
        with version_read(self._dataset, "read", self.version.path):
            if len(row_ids) * _ROWS_PER_LOOKUP > self.rows:
                found = self._dataset.to_table(columns=[], with_row_id=True)
            else:
                wanted = np.unique(row_ids)
                found = self._dataset._take_rows(wanted, columns=[ROW_ID])
                if found.num_rows == len(wanted):
                    return there
        return np.isin(row_ids, found.column(ROW_ID).to_numpy())

    def count(self, filter: pa.compute.Expression | None = None) -> int:
        if filter is None:
            return self.version.rows

        def rows(options: dict[str, Any]) -> int:
            asked = {"columns": [], "with_row_id": True, "filter": filter}
            return int(scanner(self._dataset, **asked, **options).count_rows())

        return filtered(self._dataset, self.version.path, rows)

    def lookup(self, ids: Sequence[str], columns: Sequence[str]) -> pa.Table:
        """The rows with these ids and their row ids, in no particular order."""
        wanted = pa.array(ids, pa.string())
        chosen = (
            pc.field(ID_COLUMN) == wanted[0]
            if len(wanted) == 1
            else pc.field(ID_COLUMN).isin(wanted)
        )
        return self.read(columns, filter=chosen, with_row_id=True)

    def indexes(self) -> tuple[IndexInfo, ...]:
        """Every index of this version that can be read, as far as is known. They are described
        once: a version's indexes never change."""
        if self._indexes is None:
            with version_read(self._dataset, "read", self.version.path):
                described = self._dataset.describe_indices()
            self._indexes = tuple(_index_info(index) for index in described)
        return tuple(index for index in self._indexes if not is_damaged(index.segments))

    def covered(self, column: str) -> bool:
        """Whether some index on the column holds every row of this version."""
        return any(i.column == column and i.rows >= self.rows for i in self.indexes())

    def io(self) -> IoCounters:
        stats = self._dataset.io_stats_snapshot()
        return IoCounters(int(stats.read_iops), int(stats.read_bytes))

    def _empty(self, columns: Sequence[str]) -> pa.Table:
        return pa.schema([self.schema.field(name) for name in columns]).empty_table()


_Key = tuple[str, str, str | None, int, str]


class _Handles:
    """Open tables, and the Lance sessions that they share."""

    def __init__(self, limit: int) -> None:
        self._tables: Cache[_Key, Table] = Cache(entries=limit, nominal_bytes=_HANDLE_BYTES)
        self._sessions: Cache[str, Any] = Cache(entries=_SESSIONS)

    def session(self, location: Location) -> Any:
        """The Lance session of all tables with these storage options. A session caches metadata
        by address, and one address may lead to two stores."""
        return self._sessions.get(location.key.removeprefix(location.uri), _new_session)

    def get(self, key: _Key) -> Table | None:
        return self._tables.peek(key)

    def put(self, key: _Key, table: Table) -> Table:
        return self._tables.get(key, lambda: table)

    def drop(self, address: str, path: str, fork: str | None) -> None:
        for key, _ in self._tables.items():
            if key[:3] == (address, path, fork):
                self._tables.drop(key)

    def clear(self) -> None:
        self._tables.clear()
        self._sessions.clear()


def _new_session() -> Any:
    return lance.Session(  # type: ignore[attr-defined]
        index_cache_size_bytes=_INDEX_CACHE_BYTES,
        metadata_cache_size_bytes=_METADATA_CACHE_BYTES,
    )


_handles = _Handles(_OPEN_TABLES)


def open_table(location: Location, version: TableVersion) -> Table:
    """The table at exactly this version."""
    label = version.incarnation or known.label(location.key)
    key = (location.key, version.path, version.fork, version.version, label)
    found = _handles.get(key)
    if found is not None:
        return found
    opened = Table(open_dataset(location, version), version)
    confirm_on_disk(location, version)
    return _handles.put(key, opened)


def forget_line(root: Location, path: str, fork: str | None) -> None:
    """Close the handles of a line of which versions were removed."""
    _handles.drop(root.key, path, fork)


def forget_tables() -> None:
    """Close every cached handle. For tests that reuse an address for other content."""
    _handles.clear()
    forget_homes()


def table_path(version: TableVersion) -> str:
    """Where a version's line lies below the root: a fork is a tree below its table."""
    return version.path if version.fork is None else f"{version.path}/tree/{version.fork}"


def check_readable(location: Location, version: TableVersion) -> None:
    """Raise HistoryReclaimedError unless the version is still there, whatever is cached."""
    open_dataset(location, version)


def open_dataset(
    location: Location,
    version: TableVersion,
    *,
    block_bytes: int | None = None,
    cached: bool = True,
) -> Any:
    """The Lance dataset of a version, for this package alone. It is not kept open. With larger
    blocks, rows that lie scattered are read in fewer requests. Not `cached`: nothing that was read
    before is used."""
    uri = location.lance_uri(table_path(version))
    try:
        with translated("open", version.path):
            dataset = lance.dataset(
                uri,
                version=version.version,
                block_size=block_bytes,
                storage_options=dict(location.storage_options) or None,
                session=_handles.session(location) if cached else None,
            )
            dataset.schema  # noqa: B018  # damage is reported here, not at a later use
    except StorageNotFoundError as error:
        confirm(location, version)
        raise reclaimed(version.path, version.version) from error
    refuse_replaced(location, version.incarnation)
    check_home(location, version.path, version.fork, dataset)
    return dataset


def _index_info(index: Any) -> IndexInfo:
    kind = str(index.index_type)
    rows = int(index.num_rows_indexed)
    return IndexInfo(index.name, index.field_names[0], kind, rows, segments_of(index))


def _ascending(values: np.ndarray[Any, Any]) -> bool:
    return bool(np.all(values[1:] > values[:-1]))
