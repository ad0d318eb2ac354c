"""Forcing files onto the medium: what is forced, when, and what a failure means."""

from __future__ import annotations

import errno
import gc
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph.commit.publish import _force_published
from omnigraph.errors import DurabilityError, InvalidArgumentError
from omnigraph.history.log import BranchLog
from omnigraph.storage import durability
from omnigraph.storage.durability import Durability, Medium, check_durability
from omnigraph.storage.location import parse_location
from omnigraph.storage.root import GraphRoot

SCHEMA = "node A { n: I64? }\nnode B { n: I64? }\n"
INSERT = "query q() { insert A { n: 1 } }"


@pytest.fixture(autouse=True)
def _sound_disks() -> Iterator[None]:
    yield
    durability._broken.clear()


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The folders whose file systems were forced, in order."""
    real, told = durability.native_sync(), []
    assert real is not None

    def sync(descriptor: int) -> None:
        told.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        real(descriptor)

    monkeypatch.setattr(durability, "native_sync", lambda: sync)
    return told


def refusing(number: int, nth: int = 1) -> object:
    """A sync that fails once, at its nth call."""
    calls = [0]

    def sync(descriptor: int) -> None:
        calls[0] += 1
        if calls[0] == nth:
            raise OSError(number, os.strerror(number))

    return sync


def test_19_a_commit_is_forced_before_and_after_its_publish(
    tmp_path: Path, synced: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = omnigraph.init(str(tmp_path / "g"), SCHEMA)
    from omnigraph.storage.manifest import ManifestFile

    real = ManifestFile.publish

    def publish(self: ManifestFile, *args: object) -> object:
        synced.append("publish")
        return real(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(ManifestFile, "publish", publish)
    synced.clear()
    graph.mutate(INSERT)
    assert [each == "publish" for each in synced] == [False, True, False]


def test_19_process_durability_forces_nothing(tmp_path: Path, synced: list[str]) -> None:
    graph = omnigraph.init(str(tmp_path / "g"), SCHEMA, durability="process")
    synced.clear()
    graph.mutate(INSERT)
    graph.create_branch("b")
    assert synced == []
    graph.mutate(INSERT, durability="power")
    assert len(synced) == 2
    graph.with_durability("power").ingest([{"type": "A", "data": {"n": 2}}])
    assert len(synced) == 4


def test_19_the_default_is_kept_in_the_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = str(tmp_path / "g")
    assert omnigraph.init(uri, SCHEMA).durability == "power"
    assert omnigraph.open(uri).durability == "power"
    omnigraph.open(uri).set_durability("process")
    assert omnigraph.open(uri).durability == "process"
    assert omnigraph.open(uri, durability="power").durability == "power"
    monkeypatch.setenv("OMNIGRAPH_DURABILITY", "power")
    assert omnigraph.open(uri).durability == "power"


def test_19_a_damaged_setting_keeps_nobody_out(tmp_path: Path) -> None:
    uri = str(tmp_path / "g")
    omnigraph.init(uri, SCHEMA, durability="process")
    for damage in (b"", b"\0\0", b'{"durability": "never"}', b"[]"):
        (tmp_path / "g" / "_settings.json").write_bytes(damage)
        assert omnigraph.open(uri).durability == "power"


def test_19_an_unknown_durability_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        omnigraph.init(str(tmp_path / "g"), SCHEMA, durability="always")
    assert "power" in (caught.value.hint or "")
    assert check_durability("process") is Durability.PROCESS


def test_19_a_refused_sync_before_the_publish_publishes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And recovery undoes it, though every table has arrived as far as anybody can see."""
    uri = str(tmp_path / "g")
    graph = omnigraph.init(uri, SCHEMA)
    graph.mutate(INSERT)
    with monkeypatch.context() as patched:
        patched.setattr(durability, "native_sync", lambda: refusing(errno.EIO))
        with pytest.raises(DurabilityError):
            graph.mutate(INSERT)
    with pytest.raises(DurabilityError, match="earlier write"):  # never called durable again
        omnigraph.open(uri).mutate(INSERT)
    durability._broken.clear()  # the program is started again
    graph = omnigraph.open(uri)
    assert len(graph.query("query q() { match { $a: A } return { $a.n } }").rows()) == 1
    graph.mutate(INSERT)
    assert len(graph.query("query q() { match { $a: A } return { $a.n } }").rows()) == 2


def test_19_a_refused_sync_after_the_publish_names_the_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = str(tmp_path / "g")
    graph = omnigraph.init(uri, SCHEMA)
    refuse = refusing(errno.EIO, nth=2)
    with monkeypatch.context() as patched:
        patched.setattr(durability, "native_sync", lambda: refuse)
        with pytest.raises(DurabilityError) as caught:
            graph.mutate(INSERT)
    durability._broken.clear()
    newest = next(iter(omnigraph.open(uri).commits()))
    assert caught.value.details["commit_id"] == newest.id


def test_19_a_table_on_another_file_system_is_forced_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link leads there, to a device that the test makes up."""
    uri, away = tmp_path / "g", tmp_path / "away"
    graph = omnigraph.init(str(uri), SCHEMA)
    graph.mutate(INSERT)
    table = next((uri / "nodes").iterdir())
    table.rename(away)
    table.symlink_to(away, target_is_directory=True)
    real = durability._devices
    devices: list[int] = []

    def found(folders: Iterable[str]) -> dict[int, str]:
        given = list(folders)
        linked = [folder for folder in given if Path(folder).resolve() == away.resolve()]
        return real(given) | ({77: linked[0]} if linked else {})

    def force(self: Medium, device: int, folder: str) -> None:
        devices.append(device)

    monkeypatch.setattr(durability, "_devices", found)
    monkeypatch.setattr(Medium, "_force_device", force)
    GraphRoot.at(str(uri)).force_all([f"nodes/{table.name}"])
    assert 77 in devices
    assert len(devices) == 2


def test_19_without_syncfs_changed_files_are_forced_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(durability, "native_sync", lambda: None)
    told: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        told.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    (tmp_path / "t" / "data").mkdir(parents=True)
    (tmp_path / "t" / "data" / "a").write_bytes(b"x")
    medium = Medium(parse_location(str(tmp_path)))
    medium.force_all()
    assert told.index("a") < told.index("data") < told.index("t")
    monkeypatch.setattr(durability, "_changed", lambda top, oldest: iter([f"{top}/gone"]))
    told.clear()
    medium.force("t")  # a file that is gone by now is no failure
    assert told == []


def test_19_descriptors_are_closed_with_the_graph(tmp_path: Path) -> None:
    medium = Medium(parse_location(str(tmp_path)))
    medium.force("")
    (descriptor,) = medium._descriptors.values()
    os.fstat(descriptor)
    del medium
    gc.collect()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_19_object_stores_need_nothing(synced: list[str]) -> None:
    GraphRoot.at("memory://somewhere").force_all()
    assert synced == []


def test_19_what_is_forced_after_a_publish_is_the_manifest(
    tmp_path: Path, synced: list[str]
) -> None:
    uri = str(tmp_path / "g")
    omnigraph.init(uri, SCHEMA)
    root = GraphRoot.at(uri)
    line = BranchLog(root, "main")
    synced.clear()
    _force_published(line, line.state.recent)
    assert [Path(each).name for each in synced] == ["main"]


def test_19_branches_tags_recoveries_and_formats_are_forced(
    tmp_path: Path, synced: list[str]
) -> None:
    graph = omnigraph.init(str(tmp_path / "g"), SCHEMA)
    assert synced, "init"
    synced.clear()
    graph.create_branch("b")
    assert synced, "branch"
