"""What is special about objects on local disk: etags, durability, permissions, leftovers."""

# ledger: S02, S03

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.storage.workers import ROOT

from omnigraph.errors import (
    StorageConfigurationError,
    StorageError,
    StoragePermanentError,
    StoragePreconditionError,
)
from omnigraph.storage import disk
from omnigraph.storage.objects import ObjectStore, open_store


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "graph"


@pytest.fixture
def store(root: Path) -> ObjectStore:
    return open_store(str(root))


def test_opening_creates_nothing(root: Path, store: ObjectStore) -> None:
    assert list(store.list()) == []
    assert not store.exists("a")
    store.delete("a")
    assert store.delete_prefix("a") == 0
    assert not root.exists()


def test_every_write_has_its_own_etag(store: ObjectStore) -> None:
    # The file system's clock ticks every few milliseconds and inodes come back at once, so
    # without a time of our own a rewrite of equal content would look like no write.
    seen = [store.put("a", b"same") for _ in range(300)]
    assert len(set(seen)) == len(seen)
    assert store.get("a").etag == seen[-1]


def test_equal_times_and_inodes_do_not_hide_other_content(root: Path, store: ObjectStore) -> None:
    first = store.put("a", b"one")
    status = os.stat(root / "a")
    (root / "a").write_bytes(b"two")  # In place: the same inode, the same size …
    os.utime(root / "a", ns=(status.st_mtime_ns, status.st_mtime_ns))  # … and the same time.
    with pytest.raises(StoragePreconditionError):
        store.replace("a", b"x", first)


def test_a_rewrite_of_equal_content_fails_an_old_compare_and_set(store: ObjectStore) -> None:
    first = store.put("a", b"same")
    store.put("a", b"other")
    store.put("a", b"same")
    with pytest.raises(StoragePreconditionError):
        store.replace("a", b"x", first)


def test_a_put_cannot_slip_between_compare_and_rename(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = store.put("a", b"one")
    rename, compared, putting = os.rename, threading.Event(), threading.Event()

    def slow_rename(source: str, target: str) -> None:
        if threading.current_thread().name == "replacer":
            compared.set()
            assert putting.wait(10)
            assert not finished.wait(0.1), "the put did not wait for the compare-and-set"
        rename(source, target)

    finished = threading.Event()

    def put() -> None:
        assert compared.wait(10)
        putting.set()
        store.put("a", b"put")
        finished.set()

    monkeypatch.setattr(os, "rename", slow_rename)
    threads = [
        threading.Thread(target=store.replace, args=("a", b"two", first), name="replacer"),
        threading.Thread(target=put),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.get("a").data == b"put"


def test_bytes_and_name_are_on_disk_before_a_write_is_acknowledged(
    root: Path, store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put("deep/er/old", b"")
    told: list[str] = []
    fsync, rename, link = os.fsync, os.rename, os.link

    def watched_fsync(descriptor: int) -> None:
        fsync(descriptor)
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        told.append("file" if path.parent.name == disk.TEMPORARY else path.name)

    def watched(act):
        def run(source: str, target: str) -> None:
            act(source, target)
            told.append("named")

        return run

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(os, "rename", watched(rename))
    monkeypatch.setattr(os, "link", watched(link))
    store.put("deep/er/a", b"x")
    assert told == ["file", "named", "er"]
    told.clear()
    store.create("deep/er/b", b"x")
    assert told == ["file", "named", "er"]
    told.clear()
    store.delete("deep/er/b")
    assert told == ["er"]
    told.clear()
    store.put("new/folder/c", b"x")
    assert told == ["file", "graph", "new", "named", "folder"]


def test_create_works_without_hard_links(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(source: str, target: str) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    store.create("a/b", b"first")
    with pytest.raises(StoragePreconditionError):
        store.create("a/b", b"second")
    assert store.get("a/b").data == b"first"


def test_a_full_disk_leaves_the_old_object_and_no_debris(
    root: Path, store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put("a", b"old")

    def full(descriptor: int, data: memoryview) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(StoragePermanentError, match="No space left"):
            store.put("a", b"new")
    assert store.get("a").data == b"old"
    assert os.listdir(root / disk.TEMPORARY) == []


def test_a_killed_writer_leaves_only_debris_that_is_reclaimed(
    root: Path, store: ObjectStore
) -> None:
    store.put("a", b"old")
    script = (
        "import os, signal, sys; from omnigraph.storage import disk, objects\n"
        "disk.os.rename = lambda a, b: os.kill(os.getpid(), signal.SIGKILL)\n"
        "objects.open_store(sys.argv[1]).put('a', b'new')"
    )
    killed = subprocess.run([sys.executable, "-c", script, str(root)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert store.get("a").data == b"old"
    assert list(store.list()) == ["a"]
    assert len(os.listdir(root / disk.TEMPORARY)) == 1
    assert store.reclaim(older_than_s=3600) == 0, "it might belong to a live writer"
    assert store.reclaim(older_than_s=-1) == 1
    store.replace("a", b"newer", store.get("a").etag)  # The dead writer's lock died with it.


def test_an_object_is_not_also_a_directory(store: ObjectStore) -> None:
    store.put("a", b"")
    with pytest.raises(StorageError):
        store.put("a/b", b"")
    store.put("c/d", b"")
    with pytest.raises(StorageError):
        store.put("c", b"")
    assert list(store.list()) == ["a", "c/d"]


def test_empty_directories_are_not_objects(root: Path, store: ObjectStore) -> None:
    (root / "empty" / "deeper").mkdir(parents=True)
    assert list(store.list()) == []
    assert not store.exists("empty")
    assert store.get_or_none("empty") is None
    store.delete("empty")
    assert store.delete_prefix("empty") == 0
    assert not (root / "empty").exists()


def test_links_to_directories_are_not_followed(root: Path, store: ObjectStore) -> None:
    store.put("a/b", b"")
    (root / "a" / "loop").symlink_to(root)
    assert list(store.list()) == ["a/b"]


def test_writers_survive_a_concurrent_delete_prefix(store: ObjectStore) -> None:
    failures: list[Exception] = []

    def write(number: int) -> None:
        try:
            for turn in range(60):
                store.put(f"p/{number}/{turn}", b"")
        except StorageError as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        store.delete_prefix("p")
    assert failures == []
    store.delete_prefix("p")
    assert list(store.list()) == []


@pytest.fixture
def foreign_root() -> Iterator[Path]:
    """A directory that another user may reach; pytest's own are private."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
@pytest.mark.parametrize(
    "act",
    [
        "store.get('shut/a')",
        "store.get('shut/absent')",
        "store.exists('shut/a')",
        "store.exists('shut/absent')",
        "store.head('shut/a')",
        "list(store.list())",
        "list(store.list('shut'))",
        "store.get('secret')",
        "store.put('new', b'')",
        "store.delete('secret')",
        "store.delete_prefix('shut')",
        "writer_lock(store, 'main', owner='me').__enter__()",
        "read_fence(store, 'main')",
    ],
)
def test_a_permission_problem_is_not_absence(foreign_root: Path, act: str) -> None:
    store = open_store(str(foreign_root))
    store.put("shut/a", b"")
    store.put("secret", b"")
    with locked_down(foreign_root):
        script = (
            "import os, sys; from omnigraph.storage.objects import open_store\n"
            "from omnigraph.storage.locks import read_fence, writer_lock\n"
            "store = open_store(sys.argv[1]); os.setgid(65534); os.setuid(65534)\n"
            f"try: {act}\n"
            "except Exception as error: print(type(error).__name__)"
        )
        said = subprocess.run(
            [sys.executable, "-c", script, str(foreign_root)],
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
        )
    assert said.stdout.strip() == StorageConfigurationError.__name__


class locked_down:  # noqa: N801  # reads like a function
    """Make part of a root unreadable for others, and give it back for cleaning up."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def __enter__(self) -> None:
        locks = self._root / "__locks"
        for path in (self._root / "shut", self._root / "secret", locks):
            path.chmod(0)

    def __exit__(self, *_: object) -> None:
        for path in (self._root / "shut", self._root / "secret", self._root / "__locks"):
            path.chmod(0o755)
