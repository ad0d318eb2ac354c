"""Arrays beside the tables: believed only if they hold what was written."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest

from omnigraph.storage import derived
from omnigraph.storage.derived import damaged_arrays, drop_damaged, map_array, save_array
from omnigraph.storage.root import GraphRoot

NAME = "adjacency/edges-1/7-ab/sources"
NUMBERS = np.arange(1000, dtype=np.int32)


@pytest.fixture
def root(tmp_path: Path) -> GraphRoot:
    found = GraphRoot.at(str(tmp_path))
    save_array(found, NAME, NUMBERS)
    return found


@pytest.fixture
def file(root: GraphRoot, tmp_path: Path) -> Path:
    return tmp_path / derived.FOLDER / f"{NAME}.int32"


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derived, "_SETTLED_NS", -(10**18))


def pass_time() -> None:
    """Until the clock of the file system has moved on."""
    time.sleep(0.02)


def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of the files that are read to their end from now on."""
    found: list[str] = []
    whole = derived._content_fault

    def count(file: object, head: bytes) -> str | None:
        found.append(file.name)  # type: ignore[attr-defined]
        return whole(file, head)  # type: ignore[arg-type]

    monkeypatch.setattr(derived, "_content_fault", count)
    return found


def test_an_array_comes_back(root: GraphRoot) -> None:
    found = map_array(root, NAME, np.int32)
    assert found is not None
    assert np.array_equal(found, NUMBERS)
    assert derived.saved_names(root, "adjacency") == [NAME]
    assert damaged_arrays(root) == {}
    assert map_array(root, NAME, np.int64) is None
    assert map_array(root, "adjacency/other", np.int32) is None


@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize("place", [0, 1, 777, 3999])
@pytest.mark.parametrize("bit", [0, 7])
def test_18_16_a_changed_bit_is_noticed(root: GraphRoot, file: Path, place: int, bit: int) -> None:
    assert map_array(root, NAME, np.int32) is not None  # verified before
    data = bytearray(file.read_bytes())
    data[place] ^= 1 << bit
    pass_time()
    with open(file, "r+b") as same:  # in place: the inode stays
        same.write(data)
    assert map_array(root, NAME, np.int32) is None
    assert damaged_arrays(root) == {
        f"{derived.FOLDER}/{NAME}.int32": "its content does not match its checksum"
    }


@pytest.mark.parametrize("suffix", ["", ".record"])
@pytest.mark.parametrize("data", [b"", b"nonsense", bytes(4000), bytes(4004)])
def test_18_16_other_files_in_its_place_are_noticed(
    root: GraphRoot, file: Path, suffix: str, data: bytes
) -> None:
    Path(f"{file}{suffix}").write_bytes(data)
    assert map_array(root, NAME, np.int32) is None
    assert list(damaged_arrays(root)) == [f"{derived.FOLDER}/{NAME}.int32"]
    save_array(root, NAME, NUMBERS)
    assert map_array(root, NAME, np.int32) is not None
    assert damaged_arrays(root) == {}


def test_18_16_an_array_under_another_name_is_not_used(root: GraphRoot, file: Path) -> None:
    other = file.with_name("targets.int32")
    for suffix in ("", ".record"):
        Path(f"{other}{suffix}").write_bytes(Path(f"{file}{suffix}").read_bytes())
    assert map_array(root, NAME.replace("sources", "targets"), np.int32) is None
    (fault,) = damaged_arrays(root).values()
    assert fault == "its record is of another file"


@pytest.mark.usefixtures("settled")
def test_18_16_a_file_is_verified_once(
    root: GraphRoot, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = reads(monkeypatch)
    for _ in range(3):
        assert map_array(root, NAME, np.int32) is not None
    assert len(seen) == 1
    pass_time()
    os.utime(file)
    assert map_array(root, NAME, np.int32) is not None
    assert len(seen) == 2
    save_array(root, NAME, NUMBERS)
    assert map_array(root, NAME, np.int32) is not None
    assert len(seen) == 3


def test_18_16_a_file_of_this_moment_is_verified_again(
    root: GraphRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(derived, "_SETTLED_NS", 10**18)
    seen = reads(monkeypatch)
    for _ in range(2):
        assert map_array(root, NAME, np.int32) is not None
    assert len(seen) == 2


@pytest.mark.usefixtures("settled")
def test_18_16_what_decays_without_a_write_is_found_and_removed(
    root: GraphRoot, file: Path
) -> None:
    data = bytearray(file.read_bytes())
    data[5] ^= 1
    file.write_bytes(data)
    head, _ = derived._read_record(root, f"{derived.FOLDER}/{NAME}.int32")
    with open(file, "rb") as opened:
        derived._put_record(root, f"{derived.FOLDER}/{NAME}.int32", head, derived._identity(opened))
    assert map_array(root, NAME, np.int32) is not None  # as it was verified, it seems
    assert drop_damaged(root) == [f"{derived.FOLDER}/{NAME}.int32"]
    assert map_array(root, NAME, np.int32) is None
    assert damaged_arrays(root) == {}
    assert list(file.parent.iterdir()) == []
