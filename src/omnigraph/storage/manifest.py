"""The manifest of one graph branch: a small Lance table that each publish replaces at once.

    fragments = [ history segment, …, history segment, tail ]

The tail holds the current state, the newest commits and a directory of the segments; every publish
rewrites it. Segments hold older commits and are carried over by reference. A publish is one strict
Overwrite, which Lance never rebases: exactly one of several publishers on the same version wins.

Guarantees: reading the state costs the same at ten commits as at ten thousand, since segments are
not touched, and so does reading a stretch of history, since the directory says which segments can
hold it; a reader sees a publish wholly or not at all; a manifest of another format is refused; an
image says which incarnation of the graph it belongs to, so that a manifest of another graph at the
same address is never taken for a later version.
Deliberately absent: what the rows mean (`history`) and when a publish is allowed (`commit`).
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
from lance.fragment import FragmentMetadata, write_fragments

from omnigraph.errors import (
    ConflictError,
    DurabilityError,
    FormatError,
    InvariantViolationError,
    StorageError,
    StorageNotFoundError,
)
from omnigraph.model.location import Location
from omnigraph.storage.durability import Medium
from omnigraph.storage.failures import translated
from omnigraph.storage.incarnation import known
from omnigraph.storage.segments import (
    DIRECTORY_ROW,
    SCHEMA,
    ManifestRow,
    Segment,
    decode_directory,
    encode_directory,
    join,
    span,
    to_rows,
    to_table,
)

FORMAT_VERSION = 2
FORMAT_KEY = b"omnigraph:format"
STAMP_KEY = b"omnigraph:incarnation"
DIRECTORY = "__manifest"

# Segments of one size are joined when this many lie side by side, and left alone once they are
# large: so a publish never has to rewrite more than a bounded part of the history. Few, because
# each publish lists all segments, and its cost should not grow with the history.
_SEGMENTS_PER_LEVEL = 4
_LARGE_SEGMENT = 10_000
# Old versions are trimmed on local disk, where many small files in one directory are slow.
_TRIM_EVERY = 128
_KEEP_VERSIONS = 64
_READ_ATTEMPTS = 5
# How a manifest names the file of its transaction: `<version>-<uuid>.txn`.
_TRANSACTION_FILE, _TRANSACTION_ID = b".txn", 36
log = logging.getLogger(__name__)

Within = Callable[[Segment], bool]


@dataclass(frozen=True, eq=False)
class ManifestImage:
    """The manifest at one version: its tail, and a handle from which history can be read. `stamp`
    is the graph's, `incarnation` what cached things are keyed by (see `storage.incarnation`)."""

    version: int
    tail: tuple[ManifestRow, ...]
    segments: tuple[Segment, ...]
    _dataset: Any
    stamp: str
    transaction: bytes
    incarnation: str = ""

    def newest_commit(self) -> tuple[int, str] | None:
        dated = [row for row in self.tail if row.created_at_us is not None]
        found = [(row.sequence, row.object_id) for row in dated if row.sequence is not None]
        return max(found, default=None)

    def has_commit(self, sequence: int, id: str) -> bool:
        if any(row.sequence == sequence and row.object_id == id for row in self.tail):
            return True
        wanted = (pc.field("sequence") == sequence) & (pc.field("object_id") == id)
        return bool(self.history(wanted, lambda one: one.first <= sequence <= one.last))

    def history(
        self, filter: pc.Expression | None = None, within: Within | None = None
    ) -> list[ManifestRow]:
        """Rows of the sealed segments that match, oldest first. Segments that `within` declines
        are not opened."""
        fragments = self._dataset.get_fragments()[:-1]
        chosen = [
            fragment
            for fragment, segment in zip(fragments, self.segments, strict=True)
            if within is None or within(segment)
        ]
        if not chosen:
            return []
        with translated("read", self._dataset.uri):
            table = self._dataset.scanner(
                fragments=chosen, filter=filter, scan_in_order=True
            ).to_table()
            return to_rows(table)


def manifest_path(branch_id: str) -> str:
    return f"{DIRECTORY}/{branch_id}"


class ManifestFile:
    """Reads and replaces the manifest of one branch. One instance may serve many threads."""

    def __init__(self, root: Location, branch_id: str) -> None:
        self._location = root
        self._uri = root.lance_uri(manifest_path(branch_id))
        self._medium = Medium(root)
        self._branch_id = branch_id
        self._options = dict(root.storage_options) or None
        self._guard = threading.Lock()
        self._dataset: Any = None
        self._image: ManifestImage | None = None
        self._pinned: ManifestImage | None = None
        self._held_place: tuple[int, int] | None = None  # of `_image`

    def create(self, rows: Sequence[ManifestRow], stamp: str) -> ManifestImage:
        """Write the first version. The caller ensures that there is no concurrent creator."""
        with translated("create", self._uri):
            dataset = lance.write_dataset(
                to_table([*rows, encode_directory([])]).cast(_stamped(FORMAT_VERSION, stamp)),
                self._uri,
                mode="create",
                storage_options=self._options,
                enable_stable_row_ids=True,
            )
        return self._remember(_image(dataset, tuple(rows), (), stamp))

    def read(self) -> ManifestImage:
        """The newest version. Cheap when nothing was published since the last call."""
        with self._guard:
            if self._pinned is not None:
                self._pinned = self._image = self._admitted(self._pinned, self._place())
                return self._pinned
            for _ in range(_READ_ATTEMPTS - 1):
                try:
                    return self._read_newest()
                except StorageNotFoundError:
                    # A publisher trimmed the version between our listing and our reading.
                    self._dataset = None
            return self._read_newest()

    def confirm(self) -> None:
        """Look whether the graph at the address is the one that was last seen there. Cheap when
        nothing was published since."""
        place = self._place()
        with self._guard, translated("read", self._uri):
            dataset = self._newest()
            version, made_by = dataset.version, _transaction(dataset)
            if known.is_newest(self._location.key, self._branch_id, version, made_by, place):
                return
        self.read()

    def read_at(self, version: int) -> ManifestImage:
        """An older version, or the newest. Nothing is remembered."""
        with translated("read", self._uri):
            return _load(lance.dataset(self._uri, version=version, storage_options=self._options))

    def pin(self, version: int) -> None:
        """Let this handle read that version from now on, whatever is newer: for readers of a graph
        whose newest versions are damaged."""
        with self._guard:
            self._pinned = self.read_at(version)

    def format_version(self) -> int:
        """The format of the newest version, whether or not this release can read it."""
        with self._guard, translated("read", self._uri):
            return _format_of(self._newest())

    def publish(
        self, base: ManifestImage, tail: Sequence[ManifestRow], seal: Sequence[ManifestRow] = ()
    ) -> ManifestImage:
        """Replace the tail, and append `seal` to the history, if the version is still `base`.

        Raises ConflictError if there was a concurrent publish.
        """
        dataset = base._dataset
        with translated("publish", self._uri):
            if seal:
                fragments, segments = _seal(dataset, base.segments, seal)
            else:
                fragments = [fragment.metadata for fragment in dataset.get_fragments()[:-1]]
                segments = list(base.segments)
            fragments.extend(_write(dataset, to_table([*tail, encode_directory(segments)])))
            schema = _stamped(FORMAT_VERSION, base.stamp)
            published = _overwrite(dataset, base.version, fragments, schema)
        image = _image(published, tuple(tail), tuple(segments), base.stamp)
        self._trim(published)
        return self._remember(image)

    def graph_stamp(self) -> str:
        """The graph's stamp in the newest version, whatever its format; empty if it has none."""
        with self._guard, translated("read", self._uri):
            return _stamp_of(self._newest())

    def stamp(self, format_version: int, graph_stamp: str | None = None) -> None:
        """Publish the same content under another format number, or as part of another graph."""
        with translated("publish", self._uri):
            dataset = self._open()
            fragments = [fragment.metadata for fragment in dataset.get_fragments()]
            stamp = _stamp_of(dataset) if graph_stamp is None else graph_stamp
            schema = dataset.schema.with_metadata(_metadata(format_version, stamp))
            _overwrite(dataset, dataset.version, fragments, schema)

    def _read_newest(self) -> ManifestImage:
        place = self._place()  # before the read: a folder that is replaced now is noticed later
        with translated("read", self._uri):
            dataset, held = self._newest(), self._image
            if held is None or held.transaction != _transaction(dataset):
                held = _load(dataset.checkout_version(dataset.version))
            elif held.incarnation == known.label(self._location.key) and place == self._held_place:
                return held
            self._image = self._admitted(held, place)
        return self._image

    def _place(self) -> tuple[int, int] | None:
        """Identifies the folder of the manifest; None where there are no folders."""
        if self._location.scheme != "file":
            return None
        try:
            found = os.stat(self._uri)
        except OSError:  # reported by the read
            return None
        return found.st_dev, found.st_ino

    def _admitted(self, image: ManifestImage, place: tuple[int, int] | None) -> ManifestImage:
        """The newest image, labelled with the incarnation that it belongs to."""
        pinned = self._pinned

        def reread() -> ManifestImage:
            return pinned or _load(self._open())

        newest, label = known.admit(self._location.key, self._branch_id, image, reread, place)
        self._held_place = place
        return newest if newest.incarnation == label else replace(newest, incarnation=label)

    def _newest(self) -> Any:
        if self._dataset is None:
            self._dataset = self._open()
        else:
            self._dataset.checkout_latest()
        return self._dataset

    def _open(self) -> Any:
        return lance.dataset(self._uri, storage_options=self._options)

    def _remember(self, image: ManifestImage) -> ManifestImage:
        with self._guard:
            self._image = self._admitted(image, self._held_place or self._place())
            return self._image

    def _trim(self, dataset: Any) -> None:
        if self._location.scheme != "file" or dataset.version % _TRIM_EVERY:
            return
        try:
            # For any durability: old versions are removed only when newer ones are on the disk.
            self._medium.force_all()
            with translated("trim", self._uri):
                dataset.cleanup_old_versions(
                    older_than=timedelta(0), retain_versions=_KEEP_VERSIONS
                )
        except (
            StorageError,
            DurabilityError,
        ) as error:  # the publish stands; the next trim removes more
            log.warning("old versions of %s were not removed: %s", self._uri, error)


def _load(dataset: Any) -> ManifestImage:
    _refuse_other_format(_format_of(dataset))
    fragments = dataset.get_fragments()
    if not fragments:
        raise InvariantViolationError(f"The manifest at {dataset.uri} has no rows at all.")
    rows = to_rows(dataset.scanner(fragments=fragments[-1:], scan_in_order=True).to_table())
    tail = tuple(row for row in rows if row.object_type != DIRECTORY_ROW)
    return _image(dataset, tail, decode_directory(rows), _stamp_of(dataset))


def _image(
    dataset: Any, tail: tuple[ManifestRow, ...], segments: tuple[Segment, ...], stamp: str
) -> ManifestImage:
    made_by = _transaction(dataset)
    return ManifestImage(dataset.version, tail, segments, dataset, stamp, made_by)


def _transaction(dataset: Any) -> bytes:
    """The random id of the transaction that made this version. It is in the manifest that Lance
    holds in memory, so asking for it costs no I/O."""
    held: bytes = dataset._ds.serialized_manifest()
    end = held.rfind(_TRANSACTION_FILE)
    return held[end - _TRANSACTION_ID : end] if end >= _TRANSACTION_ID else b""


def _stamp_of(dataset: Any) -> str:
    written: bytes = (dataset.schema.metadata or {}).get(STAMP_KEY, b"")
    return written.decode("utf-8", "replace")


def _format_of(dataset: Any) -> int:
    written = (dataset.schema.metadata or {}).get(FORMAT_KEY, b"0")
    try:
        return int(written)
    except ValueError as error:
        raise FormatError(
            f"The graph has the format {written!r}, which is not a number."
        ) from error


def _refuse_other_format(found: int) -> None:
    if found > FORMAT_VERSION:
        raise FormatError(
            f"The graph has format {found}; this release supports formats up to {FORMAT_VERSION}.",
            found=found,
            known=FORMAT_VERSION,
        )
    if found < FORMAT_VERSION:
        raise FormatError(
            f"The graph has the old format {found}; this release reads format {FORMAT_VERSION}.",
            hint="Open it read-write once, which migrates it.",
            found=found,
            known=FORMAT_VERSION,
        )


def _stamped(format_version: int, stamp: str) -> pa.Schema:
    return SCHEMA.with_metadata(_metadata(format_version, stamp))


def _metadata(format_version: int, stamp: str) -> dict[bytes, bytes]:
    return {FORMAT_KEY: str(format_version).encode(), STAMP_KEY: stamp.encode()}


def _overwrite(
    dataset: Any, version: int, fragments: list[FragmentMetadata], schema: pa.Schema
) -> Any:
    operation = lance.LanceOperation.Overwrite(schema, fragments)
    published = lance.LanceDataset.commit(dataset, operation, read_version=version, max_retries=0)
    if published.version != version + 1:
        raise ConflictError("The manifest changed while it was being published.")
    return published


def _write(dataset: Any, data: pa.Table) -> list[FragmentMetadata]:
    return list(write_fragments(data, dataset, schema=SCHEMA))


def _seal(
    dataset: Any, segments: Sequence[Segment], rows: Sequence[ManifestRow]
) -> tuple[list[FragmentMetadata], list[Segment]]:
    """The history with one more segment, joined with those before it that are of its size."""
    kept, spans = dataset.get_fragments()[:-1], list(segments)
    data, newest = to_table(rows), span(rows)
    others = _SEGMENTS_PER_LEVEL - 1
    while len(kept) >= others:
        sizes = [data.num_rows, *(fragment.metadata.num_rows for fragment in kept[-others:])]
        if max(sizes) >= 2 * min(sizes) or max(sizes) >= _LARGE_SEGMENT:
            break
        older = dataset.scanner(fragments=kept[-others:], scan_in_order=True).to_table()
        data = pa.concat_tables([older.select(SCHEMA.names).cast(SCHEMA), data])
        newest = join([*spans[-others:], newest])
        kept, spans = kept[:-others], spans[:-others]
    fragments = [fragment.metadata for fragment in kept]
    return [*fragments, *_write(dataset, data)], [*spans, newest]
