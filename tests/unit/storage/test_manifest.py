"""The manifest: one winner per version, a tail that is read alone, history read in parts."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from omnigraph.errors import ConflictError, FormatError, StorageNotFoundError, StoragePermanentError
from omnigraph.storage import manifest
from omnigraph.storage.location import parse_location
from omnigraph.storage.manifest import FORMAT_VERSION, ManifestFile, ManifestImage
from omnigraph.storage.segments import ManifestRow, Segment, join, span


def row(sequence: int, kind: str = "commit") -> ManifestRow:
    return ManifestRow(
        f"{sequence:08d}", kind, f"payload {sequence}", sequence, 1000 + sequence, "anna", "mutate"
    )


@pytest.fixture
def file(tmp_path: Path) -> ManifestFile:
    return ManifestFile(parse_location(str(tmp_path)), "main")


def again(file: ManifestFile) -> ManifestFile:
    """Another handle on the same manifest, as another process would have."""
    return ManifestFile(file._location, "main")


def test_what_was_published_is_read_back(file: ManifestFile) -> None:
    image = file.create([row(1)], "s")
    assert (image.version, image.tail) == (1, (row(1),))
    image = file.publish(image, [row(1), row(2)])
    found = again(file).read()
    assert (found.version, found.tail, found.segments) == (2, (row(1), row(2)), ())
    assert file.read() is image
    assert found.history() == []


def test_reading_is_cheap_while_nothing_moves(file: ManifestFile) -> None:
    file.create([row(1)], "s")
    reader = again(file)
    first = reader.read()
    assert reader.read() is first
    file.publish(file.read(), [row(2)])
    assert reader.read().tail == (row(2),)


def test_nothing_there_is_not_found(file: ManifestFile) -> None:
    with pytest.raises(StorageNotFoundError):
        file.read()
    with pytest.raises(StorageNotFoundError):
        file.format_version()


# ledger: C01 C10
def test_of_two_publishers_on_one_version_one_wins(file: ManifestFile) -> None:
    base = file.create([row(1)], "s")
    other = again(file)
    theirs = other.read()
    file.publish(base, [row(2)])
    with pytest.raises(ConflictError):
        other.publish(theirs, [row(3)])
    assert again(file).read().tail == (row(2),)


# ledger: C01 C17
def test_of_many_publishers_exactly_one_wins_each_version(file: ManifestFile) -> None:
    file.create([row(0)], "s")
    rounds, writers = 10, 4
    barrier = threading.Barrier(writers)
    won: list[int] = []

    def publish() -> None:
        mine = again(file)
        for n in range(rounds):
            barrier.wait()
            image = mine.read()
            barrier.wait()
            try:
                mine.publish(image, [row(n + 1)])
                won.append(n)
            except ConflictError:
                pass

    threads = [threading.Thread(target=publish) for _ in range(writers)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(won) == list(range(rounds))


def publish_many(file: ManifestFile, count: int, per_seal: int) -> ManifestImage:
    """Publish `count` times; every `per_seal` publishes the tail is sealed."""
    image = file.read()
    tail: list[ManifestRow] = list(image.tail)
    for n in range(2, count + 1):
        if len(tail) >= per_seal:
            sealed, tail = tail, [row(n)]
            image = file.publish(image, tail, sealed)
        else:
            tail.append(row(n))
            image = file.publish(image, tail)
    return image


def test_history_grows_in_few_segments_and_keeps_its_order(file: ManifestFile) -> None:
    file.create([row(1)], "s")
    image = publish_many(file, 200, 2)
    sequences = [each.sequence for each in (*image.history(), *image.tail)]
    assert sequences == list(range(1, 201))
    assert len(image.segments) <= 3 * 4  # of 2, 8, 32 and 128 rows, three of each at most
    found = again(file).read()
    assert found.segments == image.segments
    assert found.history() == image.history()
    firsts = [segment.first for segment in image.segments]
    assert firsts == sorted(firsts)


def test_large_segments_are_left_alone(file: ManifestFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest, "_LARGE_SEGMENT", 4)
    file.create([row(1)], "s")
    image = publish_many(file, 70, 1)
    assert [each.sequence for each in image.history()] == list(range(1, 70))
    sizes = {segment.last - segment.first + 1 for segment in image.segments}
    assert sizes == {1, 4}


def test_only_segments_that_can_matter_are_opened(file: ManifestFile) -> None:
    file.create([row(1)], "s")
    image = publish_many(file, 60, 2)
    asked: list[Segment] = []

    def within(segment: Segment) -> bool:
        asked.append(segment)
        return segment.first <= 11 <= segment.last

    found = image.history(pc.field("sequence") == 11, within)
    assert [each.sequence for each in found] == [11]
    assert tuple(asked) == image.segments
    assert image.history(within=lambda segment: False) == []


def test_old_versions_are_trimmed_on_disk(file: ManifestFile, tmp_path: Path) -> None:
    file.create([row(1)], "s")
    image = publish_many(file, 300, 64)
    versions = list((tmp_path / "__manifest" / "main" / "_versions").glob("*.manifest"))
    assert 64 <= len(versions) <= 192
    assert len(image.history()) + len(image.tail) == 300


def test_a_trim_that_fails_does_not_undo_the_publish(
    file: ManifestFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    import lance

    def failing(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "read-only")

    monkeypatch.setattr(lance.LanceDataset, "cleanup_old_versions", failing)
    monkeypatch.setattr(manifest, "_TRIM_EVERY", 2)
    file.create([row(1)], "s")
    file.publish(file.read(), [row(2)])
    assert again(file).read().tail == (row(2),)


# ledger: S05
def test_another_format_is_refused(file: ManifestFile) -> None:
    file.create([row(1)], "s")
    assert file.format_version() == FORMAT_VERSION
    file.stamp(FORMAT_VERSION + 1)
    assert again(file).format_version() == FORMAT_VERSION + 1
    for handle in (file, again(file)):
        with pytest.raises(FormatError, match="Upgrade OmniGraph"):
            handle.read()
    file.stamp(0)
    with pytest.raises(FormatError, match="read-write once"):
        again(file).read()
    file.stamp(FORMAT_VERSION)
    assert again(file).read().tail == (row(1),)


def test_a_stamp_keeps_history(file: ManifestFile) -> None:
    file.create([row(1)], "s")
    before = publish_many(file, 40, 2)
    file.stamp(FORMAT_VERSION)
    after = again(file).read()
    assert (after.tail, after.segments) == (before.tail, before.segments)
    assert after.history() == before.history()


def test_a_stale_publisher_cannot_take_a_newer_format_back(file: ManifestFile) -> None:
    base = file.create([row(1)], "s")
    again(file).stamp(FORMAT_VERSION + 1)
    with pytest.raises(ConflictError):
        file.publish(base, [row(2)])
    with pytest.raises(FormatError):
        file.read()


def test_spans_cover_what_they_span() -> None:
    checkpoint = ManifestRow("checkpoint:9", "checkpoint", "{}", sequence=9)
    one = span([row(3), row(7), checkpoint])
    assert one == Segment(3, 9, 1003, 1007, "00000003", "00000007")
    assert join([one, span([row(12)])]) == Segment(3, 12, 1003, 1012, "00000003", "00000012")


def test_rows_that_lance_cannot_hold_are_errors_before_anything_moves(file: ManifestFile) -> None:
    base = file.create([row(1)], "s")
    broken = ManifestRow("x", "commit", "p", sequence="not a number")  # type: ignore[arg-type]
    with pytest.raises((ValueError, TypeError, StoragePermanentError)):
        file.publish(base, [broken])
    assert again(file).read().version == 1
