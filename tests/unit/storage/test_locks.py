"""The writer lock: one holder at a time, bounded waiting, fencing; on disk, in memory, on S3."""

# ledger: C17

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from uuid import uuid4

import pytest
from tests.unit.storage import workers

from omnigraph.errors import ConflictError, InvalidArgumentError, LockTimeoutError
from omnigraph.storage import filelock, lease
from omnigraph.storage.flock import FileLock
from omnigraph.storage.lockowner import Holder
from omnigraph.storage.locks import drop_lock, lock_path, read_fence, writer_lock
from omnigraph.storage.objects import ObjectStore, open_store


@pytest.fixture(params=["disk", "memory", "s3"])
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return _address(request, tmp_path)


@pytest.fixture(params=["disk", "s3"])
def shared_uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return _address(request, tmp_path)


def _address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    match request.param:
        case "disk":
            return str(tmp_path / "graph")
        case "memory":
            return f"memory://{uuid4().hex}"
        case _:
            address: str = request.getfixturevalue("s3_root")
            return address


@pytest.fixture(autouse=True)
def short_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(lease.VARIABLE, "1000")


@pytest.fixture
def store(uri: str) -> ObjectStore:
    return open_store(uri)


def test_a_held_lock_knows_itself(store: ObjectStore) -> None:
    with writer_lock(store, "main", owner="act-anna", operation="load") as lock:
        lock.check()
        assert (lock.name, lock.holder.owner, lock.holder.operation) == ("main", "act-anna", "load")
        assert lock.holder.pid == os.getpid()
        assert read_fence(store, "main") == lock.token
    with pytest.raises(ConflictError, match="released"):
        lock.check()


def test_tokens_grow_and_survive_release(uri: str, store: ObjectStore) -> None:
    assert read_fence(store, "main") == 0
    tokens = []
    for _ in range(5):
        with writer_lock(open_store(uri), "main", owner="a") as lock:
            tokens.append(lock.token)
        assert read_fence(store, "main") == lock.token
    assert tokens == sorted(set(tokens))


def test_waiting_is_bounded_and_names_the_holder(uri: str, store: ObjectStore) -> None:
    with writer_lock(store, "main", owner="act-anna", operation="load"):
        with (
            pytest.raises(LockTimeoutError) as caught,
            writer_lock(open_store(uri), "main", owner="act-bert", timeout_ms=100),
        ):
            pytest.fail("two writers hold the lock")
        assert "act-anna" in str(caught.value)
        assert f"process {os.getpid()}" in str(caught.value.holder)
        assert caught.value.retryable
        assert caught.value.details["holder_details"]["operation"] == "load"
    with writer_lock(open_store(uri), "main", owner="act-bert", timeout_ms=100):
        pass


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt()])
def test_an_error_releases_the_lock(store: ObjectStore, error: BaseException) -> None:
    with pytest.raises(type(error)), writer_lock(store, "main", owner="a"):
        raise error
    with writer_lock(store, "main", owner="b", timeout_ms=50):
        pass


def test_an_os_error_of_the_holder_is_not_taken_for_one_of_the_lock(store: ObjectStore) -> None:
    with pytest.raises(FileNotFoundError), writer_lock(store, "main", owner="a"):
        raise FileNotFoundError("the holder's own")


def test_names_do_not_share_a_lock(store: ObjectStore) -> None:
    names = ["main", "feature", "feature/x", "feature%2Fx", "..", "ü", "x" * 500, "x" * 501]
    with (
        writer_lock(store, names[0], owner="a"),
        writer_lock(store, names[1], owner="a", timeout_ms=50),
        writer_lock(store, names[2], owner="a", timeout_ms=50),
        writer_lock(store, names[3], owner="a", timeout_ms=50),
        writer_lock(store, names[4], owner="a", timeout_ms=50),
        writer_lock(store, names[5], owner="a", timeout_ms=50),
        writer_lock(store, names[6], owner="a", timeout_ms=50),
        writer_lock(store, names[7], owner="a", timeout_ms=50),
    ):
        assert len({lock_path(name) for name in names}) == len(names)
    with pytest.raises(InvalidArgumentError):
        writer_lock(store, "", owner="a")


def test_threads_exclude_each_other(uri: str, store: ObjectStore) -> None:
    inside, most, turns = 0, 0, 0

    def work() -> None:
        nonlocal inside, most, turns
        for _ in range(5):
            with writer_lock(open_store(uri), "main", owner="a"):
                inside += 1
                most = max(most, inside)
                time.sleep(0.001)
                turns += 1
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (most, turns) == (1, 30)


def test_processes_exclude_each_other(shared_uri: str) -> None:
    store = open_store(shared_uri)
    store.put("count", b"0")
    racers = [workers.start("locked_increment", shared_uri, "count", 10) for _ in range(4)]
    for racer in racers:
        workers.finish(racer)
    assert store.get("count").data == b"40"


def test_eight_processes_do_not_starve(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    store.put("count", b"0")
    racers = [workers.start("locked_increment", tmp_path, "count", 50) for _ in range(8)]
    for racer in racers:
        workers.finish(racer)  # One that waits for 30 s fails.
    assert store.get("count").data == b"400"


def test_the_previous_holder_goes_first_only_a_few_times(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    order: list[str] = []
    door = FileLock(str(tmp_path / f"{lock_path('main')}.queue"))

    def second() -> None:
        with writer_lock(store, "main", owner="second"):
            order.append("second")

    thread = threading.Thread(target=second)
    with writer_lock(store, "main", owner="first"):
        thread.start()
        while door.try_acquire():  # Until the second writer stands in it.
            door.release()
            time.sleep(0.005)
    for _ in range(3 * filelock._TURNS):
        with writer_lock(store, "main", owner="first"):
            order.append("first")
    thread.join()
    assert order.index("second") < filelock._TURNS


def test_a_row_of_turns_ends_by_time_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "lock")
    holder = Holder.here("first", "write")
    with filelock.hold_file(path, "main", holder, 1.0):
        pass
    monkeypatch.setattr(filelock, "_ROW_S", 1e6)
    assert filelock._Turn.of(filelock._read_path(f"{path}.lock")).next().number == 2
    monkeypatch.setattr(filelock, "_ROW_S", 0.0)
    turn = filelock._Turn.of(filelock._read_path(f"{path}.lock"))
    assert (turn.is_ours, turn.left_s, turn.next().number) == (False, 0.0, 1)


@pytest.mark.parametrize(
    "turn",
    [
        "null",
        "[1]",
        "[1, 1, 2.0]",
        '["a", 1, 2.0, 2.0]',
        "[1, 1, 1e300, 1e300]",
        "[1, 1, 0.0, -5.0]",
    ],
)
def test_a_turn_that_makes_no_sense_keeps_nobody(tmp_path: Path, turn: str) -> None:
    store = open_store(str(tmp_path))
    path = tmp_path / f"{lock_path('main')}.lock"
    path.parent.mkdir()
    path.write_text(f'{{"token": 5, "holder": null, "turn": {turn}}}')
    with writer_lock(store, "main", owner="a", timeout_ms=1000) as lock:
        assert lock.token > 5


def test_a_killed_holder_is_followed_at_once_on_disk(tmp_path: Path) -> None:
    holder = workers.start("hold", tmp_path, "main")
    assert holder.stdout is not None
    token = int(holder.stdout.readline())
    store = open_store(str(tmp_path))
    with (
        pytest.raises(LockTimeoutError, match=f"process {holder.pid} "),
        writer_lock(store, "main", owner="b", timeout_ms=50),
    ):
        pytest.fail("two writers hold the lock")
    holder.kill()
    holder.communicate()
    with writer_lock(store, "main", owner="b", timeout_ms=1000) as lock:
        lock.check()
        assert lock.token > token


def test_a_forked_child_does_not_keep_the_lock_of_a_dead_parent(tmp_path: Path) -> None:
    parent = workers.start("forked_holder", tmp_path, "main")
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.wait()
    try:
        with writer_lock(open_store(str(tmp_path)), "main", owner="b", timeout_ms=1000) as lock:
            lock.check()
    finally:
        os.kill(child, signal.SIGKILL)
        parent.stdout.close()


def test_a_token_is_no_good_in_another_process(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with writer_lock(store, "main", owner="a") as lock, monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: -1)
        with pytest.raises(ConflictError, match="forked"):
            lock.check()


def test_a_removed_lock_file_fences_its_holder(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    with writer_lock(store, "main", owner="a") as first:
        (tmp_path / f"{lock_path('main')}.lock").unlink()
        with pytest.raises(ConflictError, match="removed"):
            first.check()
        with writer_lock(store, "main", owner="b", timeout_ms=100) as second:
            second.check()
            assert second.token > first.token, "tokens grow even when the file was lost"
            with pytest.raises(ConflictError):
                first.check()
    assert read_fence(store, "main") == second.token, "the fenced holder wrote into the new file"


def test_a_lock_file_that_is_removed_again_and_again(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    path = tmp_path / f"{lock_path('main')}.lock"
    done = threading.Event()

    def vandal() -> None:
        while not done.is_set():
            path.unlink(missing_ok=True)

    thread = threading.Thread(target=vandal)
    thread.start()
    try:
        for _ in range(50):
            with writer_lock(store, "main", owner="a", timeout_ms=5000):
                pass
    finally:
        done.set()
        thread.join()


def test_an_unreadable_lock_file_does_not_stop_writers(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    path = tmp_path / f"{lock_path('main')}.lock"
    path.parent.mkdir()
    path.write_bytes(b'{"token": 5, "hol')
    with writer_lock(store, "main", owner="a") as lock:
        assert lock.token > 5


# Dropping the files of a lock


def test_a_dropped_lock_leaves_no_file_and_can_be_taken_again(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "graph"))
    with writer_lock(store, "x", owner="a") as lock:
        first = lock.token
    drop_lock(store, "x")
    assert list((tmp_path / "graph" / "__locks").glob("writer-x*")) == []
    with writer_lock(store, "x", owner="a") as lock:
        assert lock.token > first, "a token was given out twice"


def test_a_lock_that_is_held_is_not_dropped(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "graph"))
    with writer_lock(store, "x", owner="a") as lock:
        drop_lock(store, "x")
        lock.check()


def test_a_dropped_lock_still_excludes(tmp_path: Path) -> None:
    """Writers count up under a lock whose files are dropped all the time."""
    store = open_store(str(tmp_path / "graph"))
    counter, inside = [0], [0]
    stop = threading.Event()

    def drop() -> None:
        while not stop.is_set():
            drop_lock(store, "x")

    def count() -> None:
        for _ in range(25):
            with writer_lock(store, "x", owner="a"):
                inside[0] += 1
                assert inside[0] == 1
                seen = counter[0]
                time.sleep(0.0005)
                counter[0] = seen + 1
                inside[0] -= 1

    dropper = threading.Thread(target=drop)
    writers = [threading.Thread(target=count) for _ in range(4)]
    for thread in (dropper, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    stop.set()
    dropper.join()
    assert counter == [100]
