"""Indexes whose files are lost or damaged: reads do not use them until they are rebuilt.

    filtered(dataset, path, lambda options: dataset.to_table(filter=..., **options))

runs a filtered read. Lance uses an index for it where there is one; if that fails and the same read
without any index succeeds, an index is at fault. Its segments are remembered by their ids, which
are random and never reused, and from then on no read of this process uses them.

Guarantees: an index that cannot be read never makes a read or a write fail, nor changes an answer;
an index is blamed only if the same question can be answered without it; failures that may pass by
themselves (a network, credentials) blame nothing.
Deliberately absent: building. `indexplan` plans the rebuild of damaged indexes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from omnigraph import logs
from omnigraph.errors import StorageNotFoundError, StoragePermanentError
from omnigraph.storage.failures import is_panic, one_line, translated
from omnigraph.storage.versionreads import version_read

log = logs.logger(__name__)

T = TypeVar("T")
# What reading a lost or damaged file is raised as.
DAMAGE = (StoragePermanentError, StorageNotFoundError)
_WITHOUT: dict[str, Any] = {"use_scalar_index": False}


class _Damaged:
    """The segments that are known to be damaged."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._segments: frozenset[str] = frozenset()

    def any(self, segments: Iterable[str]) -> bool:
        known = self._segments  # replaced as a whole, never changed
        return bool(known) and not known.isdisjoint(segments)

    def is_empty(self) -> bool:
        return not self._segments

    def add(self, segments: Iterable[str]) -> None:
        with self._lock:
            self._segments |= frozenset(segments)

    def discard(self, segments: Iterable[str]) -> None:
        with self._lock:
            self._segments -= frozenset(segments)


_damaged = _Damaged()


def is_damaged(segments: Iterable[str]) -> bool:
    """Whether one of these segments could not be read."""
    return _damaged.any(segments)


def segments_of(index: Any) -> tuple[str, ...]:
    """The ids of an index's segments, as Lance describes it."""
    return tuple(str(segment.uuid) for segment in index.segments)


@contextmanager
def without(name: str, segments: tuple[str, ...], path: str) -> Iterator[None]:
    """Answer a question that an index failed to answer; if that succeeds, the index is damaged."""
    _damaged.add(segments)
    try:
        yield
    except BaseException:
        _damaged.discard(segments)
        raise
    _report(name, path, "a search failed")


def filtered(dataset: Any, path: str, run: Callable[[dict[str, Any]], T]) -> T:
    """What a filtered read gives, with indexes or, if one of them is damaged, without."""
    options = scan_options(dataset)
    try:
        with version_read(dataset, "scan", path):
            return run(options)
    except DAMAGE:
        if options:
            raise
        with version_read(dataset, "scan", path):
            found = run(_WITHOUT)
    _blame(dataset, path)
    return found


def filtered_batches(
    dataset: Any, path: str, run: Callable[[dict[str, Any]], Iterator[T]]
) -> Iterator[T]:
    """The same for a read in batches. An index is asked before the first of them comes."""
    options = scan_options(dataset)
    try:
        with version_read(dataset, "scan", path):
            batches = iter(run(options))
            first = next(batches, None)
    except DAMAGE:
        if options:
            raise
        with version_read(dataset, "scan", path):
            batches = iter(run(_WITHOUT))
            first = next(batches, None)
        _blame(dataset, path)
    with version_read(dataset, "scan", path):
        if first is not None:
            yield first
            yield from batches


def scan_options(dataset: Any) -> dict[str, Any]:
    """The options of a filtered scan that make it skip damaged indexes."""
    if _damaged.is_empty():
        return {}
    known = any(_damaged.any(segments_of(index)) for index in _scalar(dataset))
    return dict(_WITHOUT) if known else {}


def damaged_indexes(dataset: Any, path: str) -> dict[str, str]:
    """Every index that cannot be read to its end, and why. `dataset` must have a cache of its own:
    a cached index hides the loss of its files."""
    with translated("read", path):
        described = list(dataset.describe_indices())
    found: dict[str, str] = {}
    for index in described:
        reason = _fault(dataset, index)
        if reason is not None:
            found[str(index.name)] = reason
            _damaged.add(segments_of(index))
    return found


def _scalar(dataset: Any) -> list[Any]:
    return [i for i in dataset.describe_indices() if str(i.index_type).upper() == "BTREE"]


def _blame(dataset: Any, path: str) -> None:
    """Remember which index a filtered read failed over: those that cannot be read, or all if none
    can be told apart."""
    suspects = _scalar(dataset)
    guilty = [index for index in suspects if _fault(dataset, index) is not None] or suspects
    for index in guilty:
        _damaged.add(segments_of(index))
        _report(str(index.name), path, "a scan failed")


def _fault(dataset: Any, index: Any) -> str | None:
    """Why an index cannot be read to its end."""
    try:
        dataset.stats.index_stats(index.name)
        dataset.prewarm_index(index.name)
    except Exception as error:  # noqa: BLE001 - whatever a damaged file raises is the finding
        return one_line(error)
    except BaseException as error:
        if not is_panic(error):
            raise
        return one_line(error)
    return None


def _report(name: str, path: str, why: str) -> None:
    log.warning(
        "index not used: its files are lost or damaged; run optimize",
        extra=logs.fields(index=name, table=path, cause=why),
    )
