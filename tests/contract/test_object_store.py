"""What every place for control objects promises; each case runs on disk, in memory and on two
implementations of S3."""

# ledger: S01, S02, S03

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from tests.unit.storage import workers

from omnigraph.errors import (
    InvalidArgumentError,
    StorageNotFoundError,
    StoragePreconditionError,
    StorageTransientError,
)
from omnigraph.storage import objects
from omnigraph.storage.locks import writer_lock
from omnigraph.storage.objects import ObjectStore, Step, open_store

PLACES = ["disk", "memory", "s3", "second s3"]
SHARED = ["disk", "s3", "second s3"]  # Places that several processes can see.


@pytest.fixture(params=PLACES)
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return _address(request, tmp_path)


@pytest.fixture(params=SHARED)
def shared_uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return _address(request, tmp_path)


def _address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    match request.param:
        case "disk":
            return str(tmp_path / "graph")
        case "memory":
            return f"memory://{uuid4().hex}/deep/root"
        case place:
            fixture = "s3_root" if place == "s3" else "second_s3_root"
            address: str = request.getfixturevalue(fixture)
            return address


@pytest.fixture
def store(uri: str) -> ObjectStore:
    return open_store(uri)


def run_threads(count: int, act: Callable[[int], None]) -> None:
    failures: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            act(number)
        except BaseException as error:  # noqa: BLE001  # raised again below, in the test's thread
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


# Reading and writing


@pytest.mark.parametrize("data", [b"", b"\x00\xff\r\n", b"x" * 3_000_000])
def test_what_was_put_is_read_back(store: ObjectStore, data: bytes) -> None:
    etag = store.put("a/b.json", data)
    found = store.get("a/b.json")
    assert (found.data, found.size, found.etag) == (data, len(data), etag)
    assert store.head("a/b.json") == objects.Stat(etag, len(data))
    assert store.exists("a/b.json")


def test_put_replaces(store: ObjectStore) -> None:
    first = store.put("a", b"one")
    second = store.put("a", b"two")
    assert first != second
    assert store.get("a").data == b"two"


def test_absent_objects(store: ObjectStore) -> None:
    with pytest.raises(StorageNotFoundError):
        store.get("a/b")
    with pytest.raises(StorageNotFoundError):
        store.head("a/b")
    assert store.get_or_none("a/b") is None
    assert not store.exists("a/b")


def test_a_prefix_is_not_an_object(store: ObjectStore) -> None:
    store.put("a/b/c", b"")
    assert store.get_or_none("a/b") is None
    assert not store.exists("a")
    with pytest.raises(StorageNotFoundError):
        store.head("a/b")


def test_below_an_object_there_is_nothing(store: ObjectStore) -> None:
    store.put("a", b"")
    assert store.get_or_none("a/b") is None
    assert not store.exists("a/b")
    assert list(store.list("a")) == []
    store.delete("a/b")


def test_another_handle_sees_every_acknowledged_write(uri: str, store: ObjectStore) -> None:
    other = open_store(uri)
    for turn in range(20):
        store.put("state", str(turn).encode())
        assert other.get("state").data == str(turn).encode()
        assert list(other.list()) == ["state"]


def test_a_reader_never_sees_half_a_write(store: ObjectStore) -> None:
    store.put("block", b"A" * 1000)
    done = threading.Event()

    def write(_: int) -> None:
        for turn in range(30):
            store.put("block", bytes([65 + turn % 26]) * (1000 + turn % 7 * 50_000))
        done.set()

    def read(number: int) -> None:
        if number == 0:
            return write(0)
        while not done.is_set():
            data = store.get("block").data
            assert len(set(data)) == 1
            assert (len(data) - 1000) % 50_000 == 0
        return None

    run_threads(3, read)


def test_a_reader_never_sees_half_a_write_of_another_process(shared_uri: str) -> None:
    store = open_store(shared_uri)
    store.put("block", b"A" * 1000)
    writer = workers.start("overwrite", shared_uri, "block", 1.5)
    reads = 0
    while writer.poll() is None:
        data = store.get("block").data
        assert len(set(data)) == 1
        assert (len(data) - 1000) % 50_000 == 0
        reads += 1
    assert int(workers.finish(writer)) > 1
    assert reads > 1


# Conditions


def test_create_refuses_what_exists(store: ObjectStore) -> None:
    etag = store.create("a/b", b"first")
    with pytest.raises(StoragePreconditionError, match="exists"):
        store.create("a/b", b"second")
    assert store.get("a/b") == objects.Object(b"first", etag, 5)
    store.delete("a/b")
    store.create("a/b", b"third")


def test_create_refuses_equal_content_too(store: ObjectStore) -> None:
    store.create("a/b", b"same")
    with pytest.raises(StoragePreconditionError):
        store.create("a/b", b"same")


def test_create_has_one_winner_between_threads(store: ObjectStore) -> None:
    for turn in range(5):
        winners: list[int] = []

        def attempt(number: int, path: str = f"race/{turn}", won: list[int] = winners) -> None:
            try:
                store.create(path, str(number).encode())
            except StoragePreconditionError:
                return
            won.append(number)

        run_threads(6, attempt)
        assert len(winners) == 1
        assert store.get(f"race/{turn}").data == str(winners[0]).encode()


def test_create_has_one_winner_between_processes(shared_uri: str) -> None:
    racers = [workers.start("create", shared_uri, "a/b", number) for number in range(4)]
    answers = [workers.finish(racer) for racer in racers]
    assert sorted(answers) == ["lost", "lost", "lost", "won"]
    assert open_store(shared_uri).get("a/b").data == str(answers.index("won")).encode()


def test_replace_needs_the_current_etag(store: ObjectStore) -> None:
    first = store.put("a", b"one")
    second = store.replace("a", b"two", first)
    with pytest.raises(StoragePreconditionError, match="expected state"):
        store.replace("a", b"three", first)
    assert store.get("a") == objects.Object(b"two", second, 3)
    store.replace("a", b"three", second)


def test_replace_notices_put_delete_and_recreation(store: ObjectStore) -> None:
    first = store.put("a", b"one")
    store.put("a", b"two")
    with pytest.raises(StoragePreconditionError):
        store.replace("a", b"x", first)
    current = store.get("a").etag
    store.delete("a")
    with pytest.raises(StoragePreconditionError):
        store.replace("a", b"x", current)
    assert not store.exists("a")
    store.create("a", b"three")
    with pytest.raises(StoragePreconditionError):
        store.replace("a", b"x", current)
    assert store.get("a").data == b"three"


def test_replace_never_creates(store: ObjectStore) -> None:
    with pytest.raises(StoragePreconditionError):
        store.replace("a", b"x", "no-such-etag")
    assert not store.exists("a")


def test_compare_and_set_loses_nothing_between_threads(store: ObjectStore) -> None:
    store.put("count", b"0")

    def add(_: int) -> None:
        done = 0
        while done < 15:
            seen = store.get("count")
            try:
                store.replace("count", str(int(seen.data) + 1).encode(), seen.etag)
            except StoragePreconditionError:
                continue
            done += 1

    run_threads(6, add)
    assert store.get("count").data == b"90"


def test_compare_and_set_loses_nothing_between_processes(shared_uri: str) -> None:
    """Rounds get longer until two processes meet; nothing is lost in any round."""
    store = open_store(shared_uri)
    for times in (40, 160, 640, 2560):
        if _race(store, shared_uri, times):
            return
    pytest.fail("the processes never met, so this run shows nothing")


def _race(store: ObjectStore, uri: str, times: int) -> int:
    """How often processes that count up together lost to one another."""
    store.put("count", b"0")
    store.delete_prefix("ready")
    store.delete("go")
    racers = [workers.start("increment", uri, "count", times) for _ in range(4)]
    workers.line_up(uri, len(racers))
    lost = sum(int(workers.finish(racer)) for racer in racers)
    assert store.get("count").data == str(4 * times).encode()
    return lost


# Listing


def test_list_is_sorted_and_cut_at_slashes(store: ObjectStore) -> None:
    paths = ["a/b", "a/b-c/x", "a/b/c/d", "a/b/z", "a/bc", "a/bc/x", "b"]
    if store.location.scheme == "file":
        paths = ["a/b-c/x", "a/b/c/d", "a/b/z", "a/bc/x", "b"]
    for path in reversed(paths):
        store.put(path, b"")
    assert list(store.list()) == sorted(paths)
    assert list(store.list("a/b")) == ["a/b/c/d", "a/b/z"]
    assert list(store.list("a/b/")) == ["a/b/c/d", "a/b/z"]
    assert list(store.list("b")) == []
    assert list(store.list("nothing")) == []


def test_list_goes_on_past_one_page(store: ObjectStore) -> None:
    # S3 answers at most 1000 keys at a time.
    paths = [f"many/{number:04}" for number in range(1005)]
    workers_count = 8
    run_threads(
        workers_count,
        lambda number: [store.put(path, b"") for path in paths[number::workers_count]].clear(),
    )
    assert list(store.list("many")) == paths
    assert store.delete_prefix("many") == len(paths)
    assert list(store.list("many")) == []


@pytest.mark.parametrize(
    "name", ["with space", "ünï", "a%2Fb", "%41", "plus+and=more", "#1", "x?y", "'q'", "~", "a:b"]
)
def test_any_name_is_kept_as_it_is(store: ObjectStore, name: str) -> None:
    store.put(f"odd/{name}", name.encode())
    assert list(store.list("odd")) == [f"odd/{name}"]
    assert store.get(f"odd/{name}").data == name.encode()
    assert list(store.list()) == [f"odd/{name}"]
    store.rename(f"odd/{name}", f"odd/{name}.2")
    store.delete(f"odd/{name}.2")
    assert list(store.list("odd")) == []


@pytest.mark.parametrize(
    "path", ["", "/a", "a/", "a//b", ".", "..", "a/../b", "./a", "a\\b", "a\nb", "a\0b"]
)
def test_paths_that_stores_read_differently_are_refused(store: ObjectStore, path: str) -> None:
    with pytest.raises(InvalidArgumentError):
        store.put(path, b"")
    with pytest.raises(InvalidArgumentError):
        store.get(path)
    with pytest.raises(InvalidArgumentError):
        store.rename("a", path)


def test_locks_are_not_listed(store: ObjectStore) -> None:
    store.put("a", b"")
    with writer_lock(store, "main", owner="test"):
        assert list(store.list()) == ["a"]
    assert store.delete_prefix("") == 1
    assert list(store.list()) == []


# Removing and moving


def test_delete_is_idempotent(store: ObjectStore) -> None:
    store.put("a/b", b"")
    store.delete("a/b")
    store.delete("a/b")
    assert not store.exists("a/b")
    assert list(store.list()) == []


def test_delete_of_a_prefix_name_removes_nothing(store: ObjectStore) -> None:
    store.put("a/b", b"")
    store.delete("a")
    assert list(store.list()) == ["a/b"]


def test_rename_moves_over_its_target(store: ObjectStore) -> None:
    store.put("a/from", b"new")
    store.put("b/c/to", b"old")
    store.rename("a/from", "b/c/to")
    assert store.get("b/c/to").data == b"new"
    assert list(store.list()) == ["b/c/to"]
    store.rename("b/c/to", "d/e/f")
    assert list(store.list()) == ["d/e/f"]


def test_rename_makes_old_etags_of_its_target_useless(store: ObjectStore) -> None:
    store.put("from", b"new")
    old = store.put("to", b"old")
    store.rename("from", "to")
    with pytest.raises(StoragePreconditionError):
        store.replace("to", b"x", old)
    store.replace("to", b"newer", store.get("to").etag)


def test_rename_of_nothing_changes_nothing(store: ObjectStore) -> None:
    store.put("to", b"old")
    store.put("folder/x", b"")
    with pytest.raises(StorageNotFoundError):
        store.rename("from", "to")
    with pytest.raises(StorageNotFoundError):
        store.rename("folder", "to")
    assert store.get("to").data == b"old"


def test_delete_prefix_spares_the_neighbours(store: ObjectStore) -> None:
    for path in ("a/b/c", "a/b/d/e", "a/bc/f", "a/g"):
        store.put(path, b"")
    assert store.delete_prefix("a/b") == 2
    assert list(store.list()) == ["a/bc/f", "a/g"]
    assert store.delete_prefix("a/b") == 0
    store.put("a/b/c", b"again")
    assert list(store.list("a/b")) == ["a/b/c"]


# The seam, and what it costs


@pytest.fixture
def steps() -> Iterator[list[Step]]:
    seen: list[Step] = []
    objects.observers.append(seen.append)
    yield seen
    objects.observers.remove(seen.append)


def test_observers_see_each_durable_step(store: ObjectStore, steps: list[Step]) -> None:
    etag = store.create("a/b", b"1")
    store.replace("a/b", b"2", etag)
    store.put("a/c", b"")
    store.rename("a/c", "a/d")
    store.get("a/b")
    list(store.list())
    store.delete("a/d")
    store.delete_prefix("a")
    told = [(step.verb, step.path, step.phase) for step in steps]
    expected = [
        ("create", "a/b"),
        ("replace", "a/b"),
        ("put", "a/c"),
        ("rename", "a/c"),
        ("delete", "a/d"),
        ("delete", "a/b"),
    ]
    assert told == [(*step, phase) for step in expected for phase in ("before", "after")]
    assert {step.store for step in steps} == {store.location.uri}


@pytest.mark.parametrize(("phase", "happened"), [("before", False), ("after", True)])
def test_an_observer_can_fail_a_step(store: ObjectStore, phase: str, happened: bool) -> None:
    def fail(step: Step) -> None:
        if step.phase == phase:
            raise StorageTransientError("injected")

    objects.observers.append(fail)
    try:
        with pytest.raises(StorageTransientError, match="injected"):
            store.put("a", b"")
    finally:
        objects.observers.remove(fail)
    assert store.exists("a") is happened


def test_a_lost_condition_is_not_reported_as_done(store: ObjectStore, steps: list[Step]) -> None:
    store.create("a", b"")
    steps.clear()
    with pytest.raises(StoragePreconditionError):
        store.create("a", b"")
    assert [step.phase for step in steps] == ["before"]


def test_requests_are_counted(store: ObjectStore) -> None:
    etag = store.create("a", b"")
    store.replace("a", b"1", etag)
    store.get("a")
    store.get_or_none("b")
    store.exists("a")
    list(store.list())
    assert store.counts() == {"create": 1, "replace": 1, "get": 2, "head": 1, "list": 1}
    store.reset_counts()
    assert store.counts() == {}
