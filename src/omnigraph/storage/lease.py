"""A lock for object stores: a lease object that is renewed while held and taken over after expiry.

The object contains its owner, the fencing token, and the duration of a renewal (`ttl_ms`). It is
changed only by create-if-absent or compare-and-set; every content is unique (`turn`), so that an S3
etag, which is a hash of the content, names one single renewal.

**Expiry without clocks.** A waiting process does not compare wall clocks, which may differ. It
takes the lease over when it has itself seen the very same etag for the whole ttl, by its own
monotonic clock. The holder counts the same ttl from *before* it sent its last successful renewal,
and treats its lease as lost before any waiting process can take it over. `expires_at` is for people
only.

What remains is a holder that is paused between `check` and its publish. The fencing token protects
against this: the publish is a compare-and-set that rejects a smaller token.

The lease of a killed owner expires after one ttl (`OMNIGRAPH_LEASE_TTL_MS`, by default 20 s). A
failed release is not an error: the lease then simply expires.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from omnigraph import logs
from omnigraph.errors import (
    FormatError,
    InvalidArgumentError,
    StorageConfigurationError,
    StorageError,
    StoragePreconditionError,
)
from omnigraph.storage.filelock import hold_memory, timed_out
from omnigraph.storage.lockowner import Holder, LockToken, next_token
from omnigraph.storage.objects import ObjectStore

VARIABLE = "OMNIGRAPH_LEASE_TTL_MS"
_DEFAULT_TTL_MS = 20_000
_NO_ETAG = f'"{"0" * 32}"'
_POLL_S = 0.05
_POLL_LIMIT_S = 0.5
# The owner treats its lease as lost slightly earlier than others: clocks differ in speed.
_BELIEF = 0.95
_log = logs.logger(__name__)


@dataclass(frozen=True, slots=True)
class Record:
    """The content of a lease object. `holder` is None once it was released."""

    token: int
    turn: str
    ttl_ms: int
    holder: Holder | None
    expires_at: str | None

    def to_bytes(self) -> bytes:
        value = {
            "format": 1,
            "token": self.token,
            "turn": self.turn,
            "ttl_ms": self.ttl_ms,
            "holder": self.holder.to_dict() if self.holder else None,
            "expires_at": self.expires_at,
        }
        return json.dumps(value, indent=1).encode()

    @classmethod
    def from_bytes(cls, data: bytes, path: str) -> Record:
        try:
            value: dict[str, Any] = json.loads(data)
            if value["format"] != 1:
                raise FormatError(f"The lease {path!r} has the unknown format {value['format']!r}.")
            held = value["holder"] is not None
            holder = Holder.from_dict(value["holder"]) or (_UNREADABLE if held else None)
            return cls(
                int(value["token"]),
                str(value["turn"]),
                int(value["ttl_ms"]),
                holder,
                value.get("expires_at"),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise FormatError(f"The lease {path!r} cannot be read.") from error


_UNREADABLE = Holder("unknown", "unknown", "unknown", 0, "unknown", "unknown")


class Lease:
    """One held lease and the thread that renews it."""

    def __init__(
        self, store: ObjectStore, path: str, record: Record, etag: str, renewed_at: float
    ) -> None:
        self._store = store
        self._path = path
        self._record = record
        self._etag = etag
        self._renewed_at = renewed_at
        self._lost: str | None = None
        self._guard = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._renew_until_stopped, name="lease", daemon=True)

    @property
    def token(self) -> int:
        return self._record.token

    def start(self) -> None:
        self._thread.start()

    def why_lost(self) -> str | None:
        """The reason why the lease was lost, or None. Reads the store."""
        if (reason := self._lost or self._overdue()) is not None:
            return reason
        found = self._store.get_or_none(self._path)
        if found is None:
            return "its lease object was removed"
        record = Record.from_bytes(found.data, self._path)
        if record.token != self.token:
            return f"its lease was taken over by {record.holder or 'another writer'}"
        return self._lost or self._overdue()  # The request itself may have taken too long.

    def release(self) -> None:
        """Stop renewing and give the lease back, if it is still ours."""
        self._stop.set()
        with self._guard:
            if self._lost is not None:
                return
            self._lost = "it was released"
            free = replace(self._record, holder=None, turn=uuid4().hex, expires_at=None)
            try:
                self._store.replace(self._path, free.to_bytes(), self._etag)
            except StoragePreconditionError:
                _log.warning("lease lost before its release", extra=self._fields())
            except StorageError as error:
                _log.warning("lease left to expire", extra=self._fields(error))

    def _overdue(self) -> str | None:
        left_s = self._renewed_at + _BELIEF * self._record.ttl_ms / 1000 - time.monotonic()
        return "its lease was not renewed in time" if left_s <= 0 else None

    def _renew_until_stopped(self) -> None:
        pause_s = steady_s = self._record.ttl_ms / 4000
        while not self._stop.wait(pause_s * random.uniform(0.8, 1.0)):
            with self._guard:
                if self._stop.is_set() or self._lost is not None:
                    return
                pause_s = steady_s if self._renew() else steady_s / 10

    def _renew(self) -> bool:
        begun = time.monotonic()
        record = _renewed(self._record)
        try:
            self._etag = self._store.replace(self._path, record.to_bytes(), self._etag)
        except StorageError as error:
            _log.warning("lease not renewed", extra=self._fields(error))
            self._find_again()
            return False
        self._record, self._renewed_at = record, begun
        return True

    def _find_again(self) -> None:
        """After a failed renewal: is the lease still ours, and what is its etag now?"""
        try:
            found = self._store.get_or_none(self._path)
            if found and Record.from_bytes(found.data, self._path).token == self.token:
                self._etag = found.etag
            else:
                self._lost = "its lease was taken over"
        except FormatError:
            self._lost = "its lease was overwritten"
        except StorageError:
            self._lost = self._overdue()

    def _fields(self, error: StorageError | None = None) -> dict[str, Any]:
        store = self._store.location.uri
        return logs.fields(store=store, lease=self._path, token=self.token, error=error)


@contextmanager
def hold(
    store: ObjectStore, path: str, name: str, holder: Holder, timeout_s: float
) -> Iterator[LockToken]:
    """Hold the lease object at `path`."""
    deadline = time.monotonic() + timeout_s
    # Threads of one process queue in memory first; only one of them accesses the store.
    with hold_memory(f"{store.location.uri}/{path}", name, holder, timeout_s):
        lease = _acquire(store, path, name, holder, deadline, timeout_s)
        held = LockToken(name, lease.token, holder, lease.why_lost)
        try:
            _require_conditions(store, path)
            lease.start()
            yield held
        finally:
            held.mark_released()
            lease.release()


_keeping_conditions: set[str] = set()


def _require_conditions(store: ObjectStore, path: str) -> None:
    """Refuse a store that accepts conditional writes and ignores their conditions.

    Sends two writes that must fail, once per bucket and process. Some gateways execute them;
    commits would not be safe there.
    """
    bucket = f"{store.location.bucket} {store.location.storage_options.get('aws_endpoint')}"
    if bucket in _keeping_conditions:
        return
    for act in (store.create, lambda path, data: store.replace(path, data, _NO_ETAG)):
        try:
            act(path, b"{}")
        except StoragePreconditionError:
            continue
        raise StorageConfigurationError(
            f"The store of {store.location} ignores conditional writes.",
            hint="Use a store that supports If-None-Match and If-Match, or commits can be lost.",
        )
    _keeping_conditions.add(bucket)


def read_token(store: ObjectStore, path: str) -> int:
    """The token of the lease object at `path`; 0 if there is none."""
    found = store.get_or_none(path)
    return Record.from_bytes(found.data, path).token if found else 0


def ttl_ms() -> int:
    """How long one renewal lasts."""
    text = os.environ.get(VARIABLE, str(_DEFAULT_TTL_MS))
    if not text.isdigit() or int(text) < 100:
        raise InvalidArgumentError(f"{VARIABLE} must be a number of milliseconds from 100.")
    return int(text)


def _acquire(
    store: ObjectStore, path: str, name: str, holder: Holder, deadline: float, timeout_s: float
) -> Lease:
    watch = _Watch()
    poll_s = _POLL_S
    while True:
        found = store.get_or_none(path)
        current = Record.from_bytes(found.data, path) if found else None
        if found is None or current is None or watch.is_free(found.etag, current):
            lease = _take(store, path, current, found.etag if found else None, holder)
            if lease is not None:
                return lease
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            raise timed_out(name, timeout_s, current.holder if current else None)
        time.sleep(min(left_s, poll_s * random.uniform(0.5, 1.5)))
        poll_s = min(poll_s * 1.5, _POLL_LIMIT_S)


def _take(
    store: ObjectStore, path: str, current: Record | None, etag: str | None, holder: Holder
) -> Lease | None:
    """Acquire a free lease; None if another process acquired it first."""
    begun = time.monotonic()
    token = next_token(current.token if current else 0)
    record = _renewed(Record(token, "", ttl_ms(), holder, None))
    try:
        if etag is None:
            written = store.create(path, record.to_bytes())
        else:
            written = store.replace(path, record.to_bytes(), etag)
    except StoragePreconditionError:
        return None
    return Lease(store, path, record, written, begun)


class _Watch:
    """How long one waiter has seen the same lease, by its own monotonic clock."""

    def __init__(self) -> None:
        self._etag: str | None = None
        self._since = 0.0

    def is_free(self, etag: str, record: Record) -> bool:
        """Whether the lease was released or has not been renewed for its ttl."""
        now = time.monotonic()
        if etag != self._etag:
            self._etag, self._since = etag, now
        return record.holder is None or now - self._since >= record.ttl_ms / 1000


def _renewed(record: Record) -> Record:
    expires = datetime.now(UTC) + timedelta(milliseconds=record.ttl_ms)
    return replace(record, turn=uuid4().hex, expires_at=expires.isoformat(timespec="milliseconds"))
