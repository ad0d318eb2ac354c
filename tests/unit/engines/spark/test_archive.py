from __future__ import annotations

import os
import time
from pathlib import Path

from omnigraph.engines.spark import archive


def options(tmp_path: Path, jars: Path = Path("/jars"), **environ: str) -> tuple[str, ...]:
    return archive.archive_options(
        "/usr/bin/java", "4.3.0", jars, {"XDG_CACHE_HOME": str(tmp_path)} | environ
    )


def part_of(found: tuple[str, ...]) -> Path:
    return Path(found[0].partition("=")[2])


def test_the_first_session_writes_and_a_later_one_reads(tmp_path: Path) -> None:
    first = options(tmp_path)
    assert first[0].startswith("-XX:ArchiveClassesAtExit=")
    part = part_of(first)
    dead = part.with_name(part.name.replace(f".{os.getpid()}.", ".999999999."))
    dead.write_bytes(b"\0" * (21 << 20))
    # It was just written: its writer may still be at it.
    assert options(tmp_path)[0].startswith("-XX:ArchiveClassesAtExit=")
    past = time.time() - 60
    os.utime(dead, (past, past))
    later = options(tmp_path)
    assert later[0].startswith("-XX:SharedArchiveFile=")
    assert part_of(later).stat().st_size == 21 << 20


def test_archives_that_nobody_loads_any_more_are_removed(tmp_path: Path) -> None:
    mine = part_of(options(tmp_path))
    mine = mine.with_name(mine.name.replace(f".{os.getpid()}.part", ".jsa"))
    old = mine.with_name("spark-4.2.0-0123456789abcdef.jsa")
    young = mine.with_name("spark-4.2.0-fedcba9876543210.jsa")
    for file, days in ((mine, 90), (old, 90), (young, 3)):
        file.write_bytes(b"classes")
        past = time.time() - days * 86_400
        os.utime(file, (past, past))
    assert part_of(options(tmp_path)) == mine
    assert {file.name for file in mine.parent.iterdir()} == {mine.name, young.name}


def test_what_a_stopped_machine_left_is_removed(tmp_path: Path) -> None:
    part = part_of(options(tmp_path))
    dead = part.with_name(part.name.replace(f".{os.getpid()}.", ".999999999."))
    dead.write_bytes(b"cut short")
    past = time.time() - 60
    os.utime(dead, (past, past))
    assert options(tmp_path)[0].startswith("-XX:ArchiveClassesAtExit=")
    assert not dead.exists()


def test_classes_from_other_files_need_an_archive_of_their_own(tmp_path: Path) -> None:
    """The machine would refuse another environment's archive without a word, for ever."""

    def name(jars: Path) -> str:
        return part_of(options(tmp_path, jars)).name

    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
        (folder / "core.jar").write_bytes(b"classes")
    first = name(here)
    assert name(here) == first
    assert name(there) != first
    os.utime(here / "core.jar", (1, 1))  # installed anew
    assert name(here) != first


def test_it_can_be_switched_off(tmp_path: Path) -> None:
    assert options(tmp_path, OMNIGRAPH_SPARK_ARCHIVE="false") == ()


def test_without_a_place_for_it_spark_starts_all_the_same(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    assert options(blocked) == ()
