"""Control objects in obstore: S3-compatible stores, and named in-process memory.

Conditions are the store's own (`If-None-Match`, `If-Match`). A request whose answer was lost may
have been carried out and then be repeated by the HTTP client, and so lose against itself. Every
write therefore carries a random mark in the object's metadata; before a lost or unclear write is
reported, the object is read once more, and finding the own mark there means that the write won.

An S3 etag is a hash of the content: equal content has an equal etag. Code that relies on
compare-and-set to notice *every* write must put something unique into what is written.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import uuid4

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError, PreconditionError
from obstore.store import MemoryStore, S3Store

from omnigraph.errors import StorageNotFoundError, StorageUnknownError
from omnigraph.model.location import Location
from omnigraph.storage.backend import Expect, Object, Stat, absent, lost
from omnigraph.storage.failures import is_misconfigured, is_unclear, one_line

_MARK = "omnigraph-write"
_ABSENT = (FileNotFoundError, NotFoundError)
_LOST = (AlreadyExistsError, PreconditionError)
_RETRIES = 4
_RETRY_TIMEOUT = timedelta(seconds=20)
# A silent server is given up early, so that a lease can be renewed on a second try.
_SILENCE_TIMEOUT = timedelta(seconds=8)
_REQUEST_TIMEOUT = timedelta(seconds=30)

_memories: dict[str, MemoryStore] = {}
_memories_lock = threading.Lock()


class BucketBackend:
    """Objects in an obstore store, below the key prefix `prefix`."""

    def __init__(self, store: MemoryStore | S3Store, prefix: str) -> None:
        self._store = store
        self._prefix = f"{prefix}/" if prefix else ""

    def read(self, path: str) -> Object:
        return self._read(path)[0]

    def stat(self, path: str) -> Stat:
        try:
            meta = obstore.head(self._store, self._key(path))
        except _ABSENT as error:
            raise _missing(path, error) from None
        return Stat(meta["e_tag"] or "", meta["size"])

    def has(self, path: str) -> bool:
        try:
            self.stat(path)
        except StorageNotFoundError:
            return False
        return True

    def write(
        self, path: str, data: bytes | memoryview, expected: Expect | str, forced: bool = True
    ) -> str:
        mark = uuid4().hex
        try:
            result = obstore.put(
                self._store,
                self._key(path),
                data,
                mode=_mode(expected),
                attributes={_MARK: mark},
                use_multipart=False,
            )
        except (BaseError, OSError) as error:
            return self._settle(path, expected, mark, error)
        return result["e_tag"] or ""

    def remove(self, path: str, forced: bool = True) -> None:
        try:
            obstore.delete(self._store, self._key(path))
        except _ABSENT as error:
            if is_misconfigured(error):
                raise

    def remove_many(self, paths: Sequence[str], prefix: str) -> None:
        if paths:
            obstore.delete(self._store, [self._key(path) for path in paths])

    def move(self, source: str, target: str) -> None:
        # Copy, then delete: a reader may see both for a moment, never neither.
        try:
            obstore.copy(self._store, self._key(source), self._key(target))
        except _ABSENT as error:
            raise _missing(source, error) from None
        self.remove(source)

    def names(self, prefix: str) -> list[str]:
        start = self._key(prefix).rstrip("/")
        found = obstore.list(self._store, prefix=start or None)
        cut = len(self._prefix)
        below = len(start) + 1 if start else 0
        return [
            meta["path"][cut:] for chunk in found for meta in chunk if len(meta["path"]) > below
        ]

    def reclaim(self, older_than_s: float) -> int:
        return 0  # A write is one request: there is nothing that it could leave behind.

    def _key(self, path: str) -> str:
        return self._prefix + path

    def _read(self, path: str) -> tuple[Object, Mapping[str, Any]]:
        try:
            result = obstore.get(self._store, self._key(path))
            data = bytes(result.bytes())
        except _ABSENT as error:
            raise _missing(path, error) from None
        etag = result.meta["e_tag"] or ""
        return Object(data, etag, len(data)), result.attributes

    def _settle(self, path: str, expected: Expect | str, mark: str, error: Exception) -> str:
        """Find out whether a write that failed or lost was carried out after all."""
        is_lost = isinstance(error, _LOST)
        if not (is_lost or is_unclear(error)):
            raise error
        try:
            found, attributes = self._read(path)
        except StorageNotFoundError:
            raise (lost(path, expected, None) if is_lost else error) from None
        except (BaseError, OSError) as second:
            if is_misconfigured(second):
                raise
            message = f"It is unknown whether {path!r} was written: {one_line(second)}"
            raise StorageUnknownError(message, path=path) from error
        if attributes.get(_MARK) == mark:
            return found.etag
        raise (lost(path, expected, found.etag) if is_lost else error) from None


def open_memory(location: Location) -> BucketBackend:
    """The memory of that name; every opener in this process gets the same one."""
    with _memories_lock:
        store = _memories.setdefault(location.bucket, MemoryStore())
    return BucketBackend(store, location.path)


def open_s3(location: Location) -> BucketBackend:
    """The bucket of a location, with its options. Makes no request."""
    options = dict(location.storage_options)
    allow_http = options.pop("allow_http", "false") == "true"
    config: dict[str, Any] = {name.removeprefix("aws_"): value for name, value in options.items()}
    store = S3Store(
        location.bucket,
        client_options={
            "allow_http": allow_http,
            "connect_timeout": _SILENCE_TIMEOUT,
            "read_timeout": _SILENCE_TIMEOUT,
            "timeout": _REQUEST_TIMEOUT,
        },
        retry_config={"max_retries": _RETRIES, "retry_timeout": _RETRY_TIMEOUT},
        **config,
    )
    return BucketBackend(store, location.path)


def _mode(expected: Expect | str) -> Any:
    if isinstance(expected, str):
        return {"e_tag": expected}
    return "create" if expected is Expect.NOTHING else "overwrite"


def _missing(path: str, error: Exception) -> Exception:
    """A missing bucket is a wrong configuration, not an absent object."""
    return error if is_misconfigured(error) else absent(path)
