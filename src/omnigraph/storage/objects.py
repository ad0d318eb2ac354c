"""Control objects: small files with the authoritative state of a graph.

One `ObjectStore` for local disk, S3 and memory. Its promises are the same everywhere and are
checked by one contract suite:

- a write is atomic, and wholly visible to every reader from then on; it is durable when it returns,
  unless the caller says `forced=False` and forces it later, along with what else it writes;
- `create` has one winner, `replace` is a compare-and-set between threads and processes; losers get
  `StoragePreconditionError`;
- `list` gives sorted paths strictly below a prefix, cut at slashes; empty directories, temporary
  files and (unless the prefix names them) lock files are not objects;
- `delete` of what is absent is fine; a permission problem is an error, never "absent".

Paths are relative to the store's location. Not promised: an object `a` beside `a/b` (disk refuses
it), a new etag for rewritten equal content (S3 hashes), atomic `rename` on S3 (copy, then delete:
both names may be visible for a moment, never neither).

`observers` see every durable step just before and just after it takes effect; a crash harness
records, delays, fails or kills there. With none registered a step costs one check of an empty list.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from omnigraph.errors import StorageNotFoundError
from omnigraph.model.location import Location, check_path
from omnigraph.storage.backend import Backend, Expect, Object, Stat
from omnigraph.storage.buckets import open_memory, open_s3
from omnigraph.storage.disk import LOCKS, TEMPORARY, DiskBackend
from omnigraph.storage.failures import translated
from omnigraph.storage.location import parse_location

__all__ = ["Object", "ObjectStore", "Stat", "Step", "observers", "open_store"]

Verb = Literal["get", "head", "put", "create", "replace", "delete", "rename", "list"]


@dataclass(frozen=True, slots=True)
class Step:
    """One durable step: `before` nothing has happened yet, `after` it cannot be undone."""

    verb: Verb
    path: str
    phase: Literal["before", "after"]
    store: str


observers: list[Callable[[Step], None]] = []


class ObjectStore:
    """The control objects below one location. Safe to share between threads."""

    def __init__(self, location: Location, backend: Backend) -> None:
        self.location = location
        self._backend = backend
        self._counts: Counter[str] = Counter()
        self._counts_lock = threading.Lock()

    def __repr__(self) -> str:
        return f"ObjectStore({self.location.uri!r})"

    def get(self, path: str) -> Object:
        """The whole object; `StorageNotFoundError` if there is none."""
        with self._request("get", "read", path):
            return self._backend.read(path)

    def get_or_none(self, path: str) -> Object | None:
        """The whole object, or None if there is none."""
        try:
            return self.get(path)
        except StorageNotFoundError:
            return None

    def head(self, path: str) -> Stat:
        """Etag and size; `StorageNotFoundError` if there is no object."""
        with self._request("head", "look up", path):
            return self._backend.stat(path)

    def exists(self, path: str) -> bool:
        """Whether there is an object at this very path."""
        with self._request("head", "look up", path):
            return self._backend.has(path)

    def put(self, path: str, data: bytes | memoryview, *, forced: bool = True) -> str:
        """Write the object, whatever was there; return its etag."""
        with self._durable("put", "write", path):
            return self._backend.write(path, data, Expect.ANYTHING, forced)

    def create(self, path: str, data: bytes, *, forced: bool = True) -> str:
        """Write the object if there is none; of several callers exactly one wins."""
        with self._durable("create", "create", path):
            return self._backend.write(path, data, Expect.NOTHING, forced)

    def replace(self, path: str, data: bytes, expected_etag: str, *, forced: bool = True) -> str:
        """Write the object if it is still the one with this etag; return the new etag."""
        with self._durable("replace", "replace", path):
            return self._backend.write(path, data, expected_etag, forced)

    def delete(self, path: str, *, forced: bool = True) -> None:
        """Remove the object; an absent one is fine."""
        with self._durable("delete", "delete", path):
            self._backend.remove(path, forced)

    def rename(self, source: str, target: str) -> None:
        """Move an object over whatever is at `target`."""
        check_path(target)
        with self._durable("rename", "rename", source):
            self._backend.move(source, target)

    def list(self, prefix: str = "") -> Iterator[str]:
        """The sorted paths of all objects strictly below `prefix`."""
        return iter(self._names(prefix.rstrip("/")))

    def delete_prefix(self, prefix: str) -> int:
        """Remove every object that `list(prefix)` shows; return how many there were."""
        prefix = prefix.rstrip("/")
        paths = self._names(prefix)
        if observers:
            for path in paths:
                self.delete(path)
        with self._request("delete", "delete", prefix or "__all__"):
            self._backend.remove_many(() if observers else paths, prefix)
        return len(paths)

    def reclaim(self, older_than_s: float = 3600.0) -> int:
        """Remove temporary files of writers that were killed; return how many there were."""
        with translated("reclaim", TEMPORARY):
            return self._backend.reclaim(older_than_s)

    def counts(self) -> dict[str, int]:
        """How many requests of each verb were made since the last `reset_counts`."""
        with self._counts_lock:
            return dict(self._counts)

    def reset_counts(self) -> None:
        with self._counts_lock:
            self._counts.clear()

    def _names(self, prefix: str) -> tuple[str, ...]:
        with self._request("list", "list", prefix or "__all__"):
            names = self._backend.names(prefix)
        if not prefix:
            hidden = (f"{LOCKS}/", f"{TEMPORARY}/")
            names = [name for name in names if not name.startswith(hidden)]
        return tuple(sorted(names))

    @contextmanager
    def _request(self, verb: Verb, action: str, path: str) -> Iterator[None]:
        check_path(path)
        with self._counts_lock:
            self._counts[verb] += 1
        with translated(action, path):
            yield

    @contextmanager
    def _durable(self, verb: Verb, action: str, path: str) -> Iterator[None]:
        if observers:
            self._observe(verb, path, "before")
        with self._request(verb, action, path):
            yield
        if observers:
            self._observe(verb, path, "after")

    def _observe(self, verb: Verb, path: str, phase: Literal["before", "after"]) -> None:
        step = Step(verb, path, phase, self.location.uri)
        for observer in tuple(observers):
            observer(step)


def open_store(location: Location | str) -> ObjectStore:
    """The control objects at a location. Makes no request and creates nothing."""
    place = parse_location(location) if isinstance(location, str) else location
    with translated("open", place.uri):
        return ObjectStore(place, _open_backend(place))


def _open_backend(location: Location) -> Backend:
    match location.scheme:
        case "file":
            return DiskBackend(location.path)
        case "memory":
            return open_memory(location)
        case "s3":
            return open_s3(location)
