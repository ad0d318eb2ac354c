"""Derived files: arrays that can be rebuilt from tables, stored because rebuilding is slow.

    save_array(root, "adjacency/edges-5/7-ab/sources", numbers)

An array is one file of plain numbers, mapped rather than read: what a query does not look at costs
neither time nor memory, and the system may take the rest back. Beside it lies a *record*: the name
of the array, its size, a checksum of its numbers and one of the record itself.

To compare the checksum, all numbers must be read. That happens once for each state of a file: the
record then also names the inode, size and times of the file that was read. Whatever writes to a
file changes its time of change, which no program can set; so a file that the record names has the
content that was verified. What decays on the medium itself, without any write, is found by
`damaged_arrays`, which reads everything.

Guarantees: an array is there whole or not at all; a file that was cut, changed, or moved to another
name is absent, and so is what cannot be mapped for whichever reason. Names are the caller's, and
should name immutable things; so is knowing how long an array must be. Deliberately absent: other
places than local disk, where nothing can be mapped, and any promise that an array stays. Deleting
the folder is always safe.
"""

from __future__ import annotations

import os
import struct
import time
import zlib
from hashlib import sha256
from typing import Any, BinaryIO

import numpy as np

from omnigraph import logs
from omnigraph.errors import StorageError
from omnigraph.storage.root import GraphRoot

log = logs.logger(__name__)

FOLDER = "__derived"
_RECORD = ".record"

Array = np.ndarray[Any, Any]

# Magic, a digest of the path, the bytes and the checksum of the numbers.
_HEAD = struct.Struct("<8s32sQI")
# The file that was verified: inode, bytes, times of its content and of its last change.
_SEEN = struct.Struct("<QQQQ")
_CHECK = struct.Struct("<I")
_NOTHING_SEEN = bytes(_SEEN.size)
_MAGIC = b"OGARRAY1"
_READ_AT_ONCE = 16 << 20
# Two changes that follow each other faster than this may have one time.
_SETTLED_NS = 100_000_000


def save_array(root: GraphRoot, name: str, array: Array) -> None:
    """Keep an array of one dimension under a name, in the place of what was there."""
    path = _path(name, array.dtype)
    data = np.ascontiguousarray(array).view(np.uint8).data
    root.objects.put(path, data, forced=False)
    _put_record(root, path, _head(path, len(data), zlib.crc32(data)), _NOTHING_SEEN)


def map_array(root: GraphRoot, name: str, dtype: np.dtype[Any] | type[Any]) -> Array | None:
    """The array under a name, or None."""
    if root.location.scheme != "file":
        return None
    path = _path(name, np.dtype(dtype))
    try:
        with open(root.location.child(path).path, "rb") as file:
            fault = _verify(root, path, file)
            if fault is not None:
                log.warning("derived file not used", extra=logs.fields(path=path, cause=fault))
                return None
            return np.asarray(np.memmap(file, dtype, mode="r"))
    except (OSError, ValueError):  # there is none, or it is empty or cut off within a number
        return None


def damaged_arrays(root: GraphRoot) -> dict[str, str]:
    """Every file here that does not hold what was written, and why. All of them are read."""
    found: dict[str, str] = {}
    if root.location.scheme != "file":
        return found
    for path in _files(root, f"{FOLDER}/"):
        try:
            with open(root.location.child(path).path, "rb") as file:
                head = _read_record(root, path)[0]
                fault = _fault(file, path, head) or _content_fault(file, head)
        except FileNotFoundError:
            continue  # replaced or removed meanwhile
        except OSError as error:
            fault = str(error)
        if fault is not None:
            found[path] = fault
    return found


def drop_damaged(root: GraphRoot) -> list[str]:
    """Remove the files that do not hold what was written; returns their paths."""
    damaged = list(damaged_arrays(root))
    for path in damaged:
        root.objects.delete(path)
        root.objects.delete(path + _RECORD)
    return damaged


def saved_names(root: GraphRoot, folder: str) -> list[str]:
    """The names below a folder, sorted."""
    paths = _files(root, f"{FOLDER}/{folder}/")
    return [path.removeprefix(f"{FOLDER}/").rpartition(".")[0] for path in paths]


def drop_arrays(root: GraphRoot, folder: str) -> None:
    """Remove every array below a folder."""
    root.objects.delete_prefix(f"{FOLDER}/{folder}")


def _path(name: str, dtype: np.dtype[Any]) -> str:
    return f"{FOLDER}/{name}.{dtype.name}"


def _files(root: GraphRoot, prefix: str) -> list[str]:
    try:
        return [path for path in root.objects.list(prefix) if not path.endswith(_RECORD)]
    except StorageError:
        return []


def _head(path: str, size: int, checksum: int) -> bytes:
    return _HEAD.pack(_MAGIC, sha256(path.encode()).digest(), size, checksum)


def _put_record(root: GraphRoot, path: str, head: bytes, seen: bytes) -> None:
    check = _CHECK.pack(zlib.crc32(head + seen))
    root.objects.put(path + _RECORD, head + seen + check, forced=False)


def _read_record(root: GraphRoot, path: str) -> tuple[bytes, bytes]:
    """What was written of an array, and which file was verified; empty when there is no record,
    or a damaged one."""
    try:
        with open(root.location.child(path + _RECORD).path, "rb") as file:
            record = file.read(_HEAD.size + _SEEN.size + _CHECK.size + 1)
    except OSError:
        return b"", b""
    content, check = record[: -_CHECK.size], record[-_CHECK.size :]
    if len(content) != _HEAD.size + _SEEN.size or check != _CHECK.pack(zlib.crc32(content)):
        return b"", b""
    return content[: _HEAD.size], content[_HEAD.size :]


def _verify(root: GraphRoot, path: str, file: BinaryIO) -> str | None:
    """What is wrong with a file. It is read to its end unless that was done before."""
    head, seen = _read_record(root, path)
    fault, here = _fault(file, path, head), _identity(file)
    if fault is not None or seen == here:
        return fault
    fault = _content_fault(file, head)
    if fault is None and _identity(file) == here and _is_settled(file):
        try:
            _put_record(root, path, head, here)
        except StorageError as error:  # it is read again next time
            log.debug("record not kept", extra=logs.fields(path=path, error=str(error)))
    return fault


def _fault(file: BinaryIO, path: str, head: bytes) -> str | None:
    """What is wrong with the record and the size of a file."""
    if not head:
        return f"its record {path}{_RECORD} is missing or damaged"
    magic, owner, size, _ = _HEAD.unpack(head)
    if magic != _MAGIC or owner != sha256(path.encode()).digest():
        return "its record is of another file"
    if os.fstat(file.fileno()).st_size != size:
        return "its size is not the one that was written"
    return None


def _content_fault(file: BinaryIO, head: bytes) -> str | None:
    """What is wrong with the numbers of a file of the right size."""
    checksum = 0
    file.seek(0)
    while block := file.read(_READ_AT_ONCE):
        checksum = zlib.crc32(block, checksum)
    expected = _HEAD.unpack(head)[3]
    return None if checksum == expected else "its content does not match its checksum"


def _is_settled(file: BinaryIO) -> bool:
    return time.time_ns() - os.fstat(file.fileno()).st_ctime_ns > _SETTLED_NS


def _identity(file: BinaryIO) -> bytes:
    found = os.fstat(file.fileno())
    return _SEEN.pack(found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
