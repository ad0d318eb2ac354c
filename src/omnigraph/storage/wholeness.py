"""Whether the files of a Lance dataset are whole: after a power cut, new ones may be missing,
empty, cut or full of zeros.

    torn_parts(root, "nodes/…", 7)      the damaged files that version 7 needs
    set_aside(root, id, paths)          moves files to `__damaged/<id>/…`, where nothing reads them

Guarantees: looking changes nothing; a file is judged by its name, its size and its first or last
bytes, so that a check costs the same for a large file as for a small one.
Deliberately absent: object stores, which never show half an object; bytes that are wrong in the
middle of a file, which `fsck` finds by reading them; and indexes, which can be built again.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import lance

from omnigraph.errors import (
    InvariantViolationError,
    StorageNotFoundError,
    StoragePermanentError,
)
from omnigraph.storage import protobuf
from omnigraph.storage.failures import translated
from omnigraph.storage.root import GraphRoot

log = logging.getLogger(__name__)
DAMAGED = "__damaged"
# What reading a damaged file raises. Whatever else goes wrong (no permission, too many open files,
# another format) does not indicate damage, so opening does not go back because of it.
DAMAGE = (InvariantViolationError, StorageNotFoundError, StoragePermanentError)
_NEWEST_FIRST = 2**64 - 1
_BOOT = "__locks/boot"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_LANCE_FILES = (".lance", ".idx", ".manifest")
_DATASET_MAGIC, _ARROW_MAGIC = b"LANC", b"ARROW1"
# Where a manifest of Lance names the record of the transaction that made it.
_TRANSACTION_FILE = 12
_TRANSACTIONS = "_transactions/"
_FORK = re.compile(r"(.+)/tree/[^/]+")


def dataset_versions(root: GraphRoot, folder: str) -> list[int]:
    """The versions of a dataset that have a manifest, whole or not, newest first."""
    try:
        names = os.listdir(f"{root.location.path}/{folder}/_versions")
    except (FileNotFoundError, NotADirectoryError):
        return []
    numbers = [name.removesuffix(".manifest") for name in names if name.endswith(".manifest")]
    return sorted((_NEWEST_FIRST - int(each) for each in numbers if each.isdigit()), reverse=True)


def version_file(folder: str, version: int) -> str:
    """The manifest of a version, relative to the root."""
    return f"{folder}/_versions/{_NEWEST_FIRST - version:020d}.manifest"


def has_good_head(root: GraphRoot, folder: str) -> bool:
    """Whether the newest manifest of a dataset looks whole: one glance, no Lance."""
    versions = dataset_versions(root, folder)
    if not versions:
        return True
    newest = version_file(folder, versions[0])
    return is_whole(root, newest) and missing_head(root, folder, versions[0]) is None


def hint_file(folder: str) -> str:
    """Lance's own note of the newest version, which it writes after the version and can miss."""
    return f"{folder}/_versions/latest_version_hint.json"


def missing_head(root: GraphRoot, folder: str, newest: int) -> int | None:
    """A version that Lance noted as the newest, and that is gone."""
    try:
        noted = json.loads(Path(root.location.path, hint_file(folder)).read_bytes())["version"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if not isinstance(noted, int) or noted <= newest:
        return None
    # One that was published since we listed the others is there by now.
    gone = not os.path.exists(f"{root.location.path}/{version_file(folder, noted)}")
    return noted if gone else None


def torn_parts(root: GraphRoot, folder: str, version: int) -> list[str]:
    """The files that a version needs and that are missing or damaged, relative to the root."""
    name = version_file(folder, version)
    if not is_whole(root, name):
        return [name]
    needed = _needed_twice(root, folder, version)
    if needed is None:
        return [name]
    return [place for place in _places(root, folder, needed) if place is not None]


def _needed_twice(
    root: GraphRoot, folder: str, version: int
) -> list[tuple[str, int | None]] | None:
    """The files of a version whose manifest looks whole; None if it cannot be read, also at the
    second attempt: an error may have another cause than the file."""
    for _ in range(2):
        try:
            return list(_needed(_open(root, folder, version)))
        except DAMAGE as error:
            log.warning("version %d of %s cannot be read: %s", version, folder, error)
    return None


def transaction_file(root: GraphRoot, folder: str, version: int) -> str | None:
    """The record of the transaction that made a version, relative to the root."""
    for path, _ in _needed(_open(root, folder, version)):
        if path.startswith(_TRANSACTIONS):
            return f"{folder}/{path}"
    return None


def index_segments(root: GraphRoot, folder: str, version: int) -> list[str]:
    """The ids of the segments of a version's indexes."""
    dataset = _open(root, folder, version)
    with translated("read", dataset.uri):
        return [str(one.uuid) for each in dataset.describe_indices() for one in each.segments]


def is_whole(root: GraphRoot, path: str, size: int | None = None) -> bool:
    """Whether a file is there, has the right size and the ends that files of its kind have."""
    try:
        with translated("read", path), open(f"{root.location.path}/{path}", "rb") as file:
            actual = os.fstat(file.fileno()).st_size
            if actual == 0 or (size and actual != size):
                return False
            head = file.read(8)
            file.seek(max(0, actual - 8))
            tail = file.read(8)
    except DAMAGE:
        return False
    if path.endswith(_LANCE_FILES):
        return tail.endswith(_DATASET_MAGIC)
    if path.endswith(".arrow"):
        return tail.endswith(_ARROW_MAGIC)
    return any(head)


def set_aside(root: GraphRoot, salvage_id: str, paths: Iterable[str]) -> list[str]:
    """Move files where nothing reads them, in this order; returns those that were there."""
    moved = []
    for path in paths:
        with suppress(StorageNotFoundError):
            root.objects.rename(path, f"{DAMAGED}/{salvage_id}/{path}")
            moved.append(path)
    return moved


def machine_restarted(root: GraphRoot) -> bool:
    """Whether this machine was started since the graph was last looked through, as far as is
    known."""
    if root.location.scheme != "file":
        return False
    try:
        noted = Path(root.location.path, _BOOT).read_text()
    except (OSError, UnicodeDecodeError):
        return True
    return noted != boot_id()


def note_start(root: GraphRoot) -> None:
    """Note that the graph was looked through since this machine was started."""
    if root.location.scheme != "file":
        return
    place = Path(root.location.path, _BOOT)
    with suppress(OSError):  # then it is looked through again
        place.parent.mkdir(exist_ok=True)
        fresh = place.with_name(f"boot.{os.getpid()}")
        fresh.write_text(boot_id())
        fresh.replace(place)


@cache
def boot_id() -> str:
    """What tells this start of the machine from any other."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


def _open(root: GraphRoot, folder: str, version: int) -> Any:
    uri = root.location.lance_uri(folder)
    with translated("open", uri):
        dataset = lance.dataset(uri, version=version)
        dataset.schema  # noqa: B018  # what makes no sense is said here
        return dataset


def _needed(dataset: Any) -> Iterator[tuple[str, int | None]]:
    """The files of a version below its folder, with their sizes where they are known."""
    with translated("read", dataset.uri):
        for fragment in dataset.get_fragments():
            metadata = fragment.metadata
            for file in metadata.files:
                yield f"data/{file.path}", int(file.file_size_bytes or 0) or None
            deletion = metadata.deletion_file
            if deletion is not None:
                yield deletion.path(metadata.id), None
        for number, value, _ in protobuf.fields(dataset._ds.serialized_manifest()):
            if number == _TRANSACTION_FILE and isinstance(value, bytes) and value:
                yield f"{_TRANSACTIONS}{value.decode()}", None


def _places(
    root: GraphRoot, folder: str, needed: Iterable[tuple[str, int | None]]
) -> Iterator[str | None]:
    places = homes(root, folder)
    for path, size in needed:
        if path.startswith(_TRANSACTIONS):
            yield from _torn_record(root, f"{folder}/{path}")
            continue
        home = next((h for h in places if os.path.exists(f"{root.location.path}/{h}/{path}")), None)
        if home is None:
            yield f"{folder}/{path}"
        elif not is_whole(root, f"{home}/{path}", size):
            yield f"{home}/{path}"


def homes(root: GraphRoot, folder: str) -> list[str]:
    """Where the files of a dataset may lie: in its folder, or with the line that it grew from."""
    fork = _FORK.fullmatch(folder)
    if fork is None:
        return [folder]
    table = fork[1]
    try:
        others = sorted(os.listdir(f"{root.location.path}/{table}/tree"))
    except OSError:
        others = []
    return [folder, table, *(f"{table}/tree/{name}" for name in others)]


def _torn_record(root: GraphRoot, path: str) -> Iterator[str]:
    """The record of what made a version may be gone; one that is there must be whole."""
    if os.path.exists(f"{root.location.path}/{path}") and not is_whole(root, path):
        yield path


def names_in(root: GraphRoot, folder: str) -> list[str]:
    try:
        return sorted(os.listdir(f"{root.location.path}/{folder}"))
    except OSError:
        return []
