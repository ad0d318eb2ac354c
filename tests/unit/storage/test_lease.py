"""The lease: renewal, takeover, fencing, and what a bad network does to it."""

# ledger: C17

from __future__ import annotations

import threading
import time
from uuid import uuid4

import pytest
from obstore.store import MemoryStore
from tests.support.s3 import S3Server
from tests.unit.storage import workers

from omnigraph.errors import (
    ConflictError,
    FormatError,
    InvalidArgumentError,
    LockTimeoutError,
    StorageConfigurationError,
    StorageTransientError,
)
from omnigraph.storage import lease, objects
from omnigraph.storage.backend import Expect
from omnigraph.storage.buckets import BucketBackend
from omnigraph.storage.lease import Record
from omnigraph.storage.location import parse_location
from omnigraph.storage.lockowner import Holder
from omnigraph.storage.locks import lock_path, read_fence, writer_lock
from omnigraph.storage.objects import ObjectStore, Step, open_store

PATH = f"{lock_path('main')}.json"
TTL_MS = 1000


@pytest.fixture(autouse=True)
def short_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(lease.VARIABLE, str(TTL_MS))


@pytest.fixture
def store(s3_root: str) -> ObjectStore:
    return open_store(s3_root)


def record_of(store: ObjectStore) -> Record:
    return Record.from_bytes(store.get(PATH).data, PATH)


def stranger(token: int, ttl_ms: int = TTL_MS) -> bytes:
    holder = Holder("stranger", "write", "elsewhere", 1, "main", "2026-01-01T00:00:00+00:00")
    return Record(token, "turn", ttl_ms, holder, "2000-01-01T00:00:00+00:00").to_bytes()


def test_a_lease_is_renewed_while_it_is_held(store: ObjectStore) -> None:
    with writer_lock(store, "main", owner="a") as lock:
        first = record_of(store)
        time.sleep(TTL_MS / 1000 * 2)
        again = record_of(store)
        assert again.token == first.token == lock.token
        assert again.turn != first.turn
        assert again.expires_at is not None
        assert first.expires_at is not None
        assert again.expires_at > first.expires_at
        lock.check()
        with (
            pytest.raises(LockTimeoutError, match="it is held by a "),
            writer_lock(open_store(store.location), "main", owner="b", timeout_ms=100),
        ):
            pytest.fail("two writers hold the lease")
    assert record_of(store).holder is None


def test_an_uncontended_lease_costs_four_requests(store: ObjectStore) -> None:
    with writer_lock(store, "main", owner="a"):
        pass
    store.reset_counts()
    with writer_lock(store, "main", owner="a") as lock:
        lock.check()
    assert store.counts() == {"get": 2, "replace": 2}


def test_a_killed_holder_is_followed_after_its_ttl(s3_root: str, store: ObjectStore) -> None:
    holder = workers.start("hold", s3_root, "main", "load")
    assert holder.stdout is not None
    token = int(holder.stdout.readline())
    with (
        pytest.raises(LockTimeoutError, match=f"load, process {holder.pid} "),
        writer_lock(store, "main", owner="b", timeout_ms=TTL_MS * 2),
    ):
        pytest.fail("the holder is alive and renews")
    holder.kill()
    holder.communicate()
    begun = time.monotonic()
    with writer_lock(store, "main", owner="b", timeout_ms=TTL_MS * 20) as lock:
        assert time.monotonic() - begun >= TTL_MS / 1000 * 0.5
        assert lock.token > token
        assert read_fence(store, "main") == lock.token
        lock.check()


def test_wall_clocks_do_not_decide(store: ObjectStore) -> None:
    # It says that it expired in the year 2000, as a holder with a wrong clock would; its holder
    # may be alive, so a waiter must watch it for the whole ttl.
    store.create(PATH, stranger(5, ttl_ms=1200))
    begun = time.monotonic()
    with writer_lock(store, "main", owner="a"):
        assert time.monotonic() - begun > 1.2


def test_a_lease_that_is_taken_over_fences_its_holder(store: ObjectStore) -> None:
    with writer_lock(store, "main", owner="a") as lock:
        store.put(PATH, stranger(lock.token + 1))
        with pytest.raises(ConflictError, match="taken over by stranger"):
            lock.check()
        time.sleep(TTL_MS / 1000)
        with pytest.raises(ConflictError, match="taken over"):
            lock.check()
    assert record_of(store).token == lock.token + 1, "the fenced holder released another's lease"
    assert record_of(store).holder is not None


def test_a_removed_lease_fences_its_holder(store: ObjectStore) -> None:
    with writer_lock(store, "main", owner="a") as lock:
        store.delete(PATH)
        with pytest.raises(ConflictError, match="removed"):
            lock.check()
    assert not store.exists(PATH)


def test_tokens_grow_even_when_the_lease_was_removed(store: ObjectStore) -> None:
    with writer_lock(store, "main", owner="a") as first:
        pass
    store.delete(PATH)
    with writer_lock(store, "main", owner="a") as second:
        assert second.token > first.token


def test_one_failed_renewal_is_survived(store: ObjectStore) -> None:
    failed = threading.Event()

    def fail_once(step: Step) -> None:
        if step.verb == "replace" and step.phase == "after" and not failed.is_set():
            failed.set()  # Written, but the holder does not learn it.
            raise StorageTransientError("injected")

    with writer_lock(store, "main", owner="a") as lock:
        objects.observers.append(fail_once)
        try:
            time.sleep(TTL_MS / 1000 * 2)
        finally:
            objects.observers.remove(fail_once)
        assert failed.is_set()
        lock.check()
    assert record_of(store).holder is None


def test_a_holder_that_cannot_renew_stops_believing(store: ObjectStore) -> None:
    def fail(step: Step) -> None:
        if step.verb == "replace":
            raise StorageTransientError("injected")

    with writer_lock(store, "main", owner="a") as lock:
        objects.observers.append(fail)
        try:
            time.sleep(TTL_MS / 1000 * 1.5)
            with pytest.raises(ConflictError, match="not renewed in time"):
                lock.check()
        finally:
            objects.observers.remove(fail)


def test_a_failed_release_is_no_failure_of_the_write(store: ObjectStore) -> None:
    def fail(step: Step) -> None:
        raise StorageTransientError("injected")

    with writer_lock(store, "main", owner="a"):
        objects.observers.append(fail)
    objects.observers.remove(fail)
    with writer_lock(store, "main", owner="b", timeout_ms=TTL_MS * 20) as lock:
        lock.check()


def test_a_silent_server_does_not_leave_two_holders(
    s3_server: S3Server, s3_root: str, store: ObjectStore
) -> None:
    with writer_lock(store, "main", owner="a") as first:
        s3_server.pause()
        try:
            time.sleep(TTL_MS / 1000 * 1.5)
            with pytest.raises(ConflictError, match="not renewed in time"):
                first.check()
        finally:
            s3_server.resume()
        with pytest.raises(ConflictError):
            first.check()


class Careless(BucketBackend):
    """A store that accepts conditional writes and ignores some of their conditions."""

    ignored: Expect | type[str]

    def write(
        self, path: str, data: bytes | memoryview, expected: Expect | str, forced: bool = True
    ) -> str:
        is_ignored = expected is self.ignored or (isinstance(expected, str) and self.ignored is str)
        return super().write(path, data, Expect.ANYTHING if is_ignored else expected)


@pytest.mark.parametrize("ignored", [Expect.NOTHING, str])
def test_a_store_without_conditional_writes_is_refused(ignored: Expect | type[str]) -> None:
    backend = Careless(MemoryStore(), "")
    backend.ignored = ignored
    careless = ObjectStore(parse_location(f"s3://{uuid4().hex}", environ={}), backend)
    with (
        pytest.raises(StorageConfigurationError, match="ignores conditional writes"),
        writer_lock(careless, "main", owner="a"),
    ):
        pytest.fail("a lease that excludes nobody was taken")


def test_an_unreadable_lease_is_refused_and_kept(store: ObjectStore) -> None:
    for content in (b"not json", b'{"format": 2}', b"[]", b'{"format": 1}'):
        store.put(PATH, content)
        with pytest.raises(FormatError), writer_lock(store, "main", owner="a"):
            pytest.fail("an unreadable lease was taken")
        with pytest.raises(FormatError):
            read_fence(store, "main")
        assert store.get(PATH).data == content


def test_a_holder_of_another_release_still_counts_as_holder() -> None:
    data = stranger(7).replace(b'"thread"', b'"fibre"')
    record = Record.from_bytes(data, PATH)
    assert record.holder is not None
    assert record.holder.owner == "unknown"


@pytest.mark.parametrize("text", ["", "soon", "-5", "99"])
def test_the_ttl_is_checked(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(lease.VARIABLE, text)
    with pytest.raises(InvalidArgumentError, match=lease.VARIABLE):
        lease.ttl_ms()
