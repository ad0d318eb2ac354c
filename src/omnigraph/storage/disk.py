"""Control objects as files: durable, atomic, and with compare-and-set between processes.

A write goes to a temporary file in `__tmp/`, is forced to disk, and gets its name by one rename;
then the directory is forced to disk too. Compare and rename happen under an OS lock, one of 64 in
`__locks/`, chosen by path; all writers take it, readers never do.

The etag is inode, modification time and content hash. The time is set by us from the nanosecond
clock and moves forward with every write of a process, because the file system's own clock ticks
too slowly to tell two writes apart. Even on a file system that rounds times, two different
contents never share an etag.

Absent on purpose: an object that is also a directory (`a` beside `a/b`), which S3 would allow, and
locks for readers: a file is never changed in place, so an open one stays whole.
"""

from __future__ import annotations

import errno
import os
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from hashlib import blake2b
from stat import S_ISREG
from uuid import uuid4

from omnigraph.errors import StorageNotFoundError, StorageTransientError
from omnigraph.storage.backend import Expect, Object, Stat, absent, lost
from omnigraph.storage.flock import FileLock

TEMPORARY = "__tmp"
LOCKS = "__locks"
_STRIPES = 64
_LOCK_TIMEOUT_S = 30.0
_NO_HARD_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK})


class DiskBackend:
    """Objects below the directory `root`, which is made by the first write."""

    def __init__(self, root: str) -> None:
        self._root = root

    def read(self, path: str) -> Object:
        with _opened(self._file(path), path) as descriptor:
            before = os.fstat(descriptor)
            data = _read_all(descriptor, before.st_size)
        return Object(data, _etag(before, data), len(data))

    def stat(self, path: str) -> Stat:
        found = self.read(path)
        return Stat(found.etag, found.size)

    def has(self, path: str) -> bool:
        try:
            return S_ISREG(os.stat(self._file(path)).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return False

    def write(
        self, path: str, data: bytes | memoryview, expected: Expect | str, forced: bool = True
    ) -> str:
        self._check(path, expected)  # Cheap refusal before any byte is written.
        temporary, etag = self._write_temporary(data, forced)
        try:
            with self._locked(path):
                self._check(path, expected)
                self._name(temporary, path, expected)
        finally:
            _unlink(temporary)
        if forced:
            _sync_directory(os.path.dirname(self._file(path)))
        return etag

    def remove(self, path: str, forced: bool = True) -> None:
        if not self.has(path):
            return
        with self._locked(path):
            removed = _unlink(self._file(path))
        if removed and forced:
            _sync_directory(os.path.dirname(self._file(path)))

    def remove_many(self, paths: Sequence[str], prefix: str) -> None:
        for path in paths:
            with self._locked(path):
                _unlink(self._file(path))
        top = self._file(prefix) if prefix else self._root
        for folder in _folders_upwards(top):
            kept = folder == self._root or os.path.basename(folder) in (LOCKS, TEMPORARY)
            if kept or not _remove_if_empty(folder):
                _sync_directory(folder)
        if prefix:
            _sync_directory(os.path.dirname(top))

    def move(self, source: str, target: str) -> None:
        with self._locked(source, target):
            file = self._file(source)
            if not os.path.isfile(file):
                raise absent(source)
            self._in_directory(target, lambda to: os.rename(file, to))
        _sync_directory(os.path.dirname(self._file(target)))
        _sync_directory(os.path.dirname(file))

    def names(self, prefix: str) -> list[str]:
        found: list[str] = []
        folders = [prefix]
        while folders:
            folder = folders.pop()
            for name, is_folder in _entries(self._file(folder) if folder else self._root):
                path = f"{folder}/{name}" if folder else name
                if is_folder and path != TEMPORARY:
                    folders.append(path)
                elif not is_folder:
                    found.append(path)
        return found

    def reclaim(self, older_than_s: float) -> int:
        folder = self._file(TEMPORARY)
        oldest = time.time() - older_than_s
        count = 0
        for name, _ in _entries(folder):
            try:
                if os.stat(f"{folder}/{name}").st_ctime < oldest:
                    count += _unlink(f"{folder}/{name}")
            except FileNotFoundError:
                continue  # Its writer is alive and has just given it its name.
        return count

    def _file(self, path: str) -> str:
        return f"{self._root}/{path}"

    def _check(self, path: str, expected: Expect | str) -> None:
        if expected is Expect.ANYTHING:
            return
        try:
            actual = self.read(path).etag
        except StorageNotFoundError:
            actual = None
        if actual != (None if expected is Expect.NOTHING else expected):
            raise lost(path, expected, actual)

    def _write_temporary(self, data: bytes | memoryview, forced: bool) -> tuple[str, str]:
        """A nameless copy of the bytes, on the medium if `forced`: its file, and the etag that
        it will have."""
        file = f"{self._root}/{TEMPORARY}/{uuid4().hex}"
        descriptor = _create(file)
        try:
            _write_all(descriptor, data)
            stamp = _next_stamp()
            os.utime(descriptor, ns=(stamp, stamp))
            if forced:
                os.fsync(descriptor)
            etag = _etag(os.fstat(descriptor), data)
        except BaseException:
            _unlink(file)
            raise
        finally:
            os.close(descriptor)
        return file, etag

    def _name(self, temporary: str, path: str, expected: Expect | str) -> None:
        """Give a temporary file its name. Call under the path's lock, after `_check`."""
        if expected is not Expect.NOTHING:
            self._in_directory(path, lambda file: os.rename(temporary, file))
            return
        try:
            # A link refuses an existing name by itself: one winner even without working locks.
            self._in_directory(path, lambda file: os.link(temporary, file))
        except FileExistsError:
            raise lost(path, expected, None) from None
        except OSError as error:
            if error.errno not in _NO_HARD_LINKS:
                raise
            self._in_directory(path, lambda file: os.rename(temporary, file))

    def _in_directory(self, path: str, act: Callable[[str], None]) -> None:
        """Run `act` on the file of `path`, making its directory first if that is missing."""
        file = self._file(path)
        for _ in range(100):  # A concurrent `remove_many` may prune the directory again.
            try:
                act(file)
            except FileNotFoundError:
                _make_directory(os.path.dirname(file))
            else:
                return
        raise StorageTransientError(f"The directory of {path!r} is removed again and again.")

    @contextmanager
    def _locked(self, *paths: str) -> Iterator[None]:
        stripes = sorted({zlib.crc32(path.encode()) % _STRIPES for path in paths})
        with ExitStack() as stack:
            for stripe in stripes:
                lock = FileLock(f"{self._root}/{LOCKS}/objects-{stripe:02x}.lock")
                if not lock.acquire(_LOCK_TIMEOUT_S):
                    raise StorageTransientError(f"The lock file {lock.path!r} was not released.")
                stack.callback(lock.release)
            yield


_stamp_lock = threading.Lock()
_last_stamp = 0


def _next_stamp() -> int:
    """Nanoseconds since 1970, never the same twice in one process."""
    global _last_stamp
    with _stamp_lock:
        _last_stamp = max(time.time_ns(), _last_stamp + 1)
        return _last_stamp


def _etag(status: os.stat_result, data: bytes | memoryview) -> str:
    digest = blake2b(data, digest_size=16).hexdigest()
    return f"{status.st_ino:x}-{status.st_mtime_ns:x}-{digest}"


@contextmanager
def _opened(file: str, path: str) -> Iterator[int]:
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        raise absent(path) from None
    try:
        if not S_ISREG(os.fstat(descriptor).st_mode):
            raise absent(path)
        yield descriptor
    finally:
        os.close(descriptor)


def _read_all(descriptor: int, size: int) -> bytes:
    parts: list[bytes] = []
    while part := os.read(descriptor, size + 1):
        parts.append(part)
    return b"".join(parts)


def _create(file: str) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        return os.open(file, flags, 0o666)
    except FileNotFoundError:
        _make_directory(os.path.dirname(file))
        return os.open(file, flags, 0o666)


def _write_all(descriptor: int, data: bytes | memoryview) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _unlink(file: str) -> bool:
    try:
        os.unlink(file)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return False
    return True


def _make_directory(folder: str) -> None:
    """Make a directory and its parents, each durable; another writer may be doing the same."""
    parent = os.path.dirname(folder)
    try:
        os.mkdir(folder)
    except FileExistsError:
        return
    except FileNotFoundError:
        _make_directory(parent)
        _make_directory(folder)
        return
    _sync_directory(parent)


def _folders_upwards(top: str) -> list[str]:
    """All directories at and below `top`, inner ones first."""
    found = [top]
    for folder in found:
        found += [f"{folder}/{name}" for name, is_folder in _entries(folder) if is_folder]
    return found[::-1]


def _remove_if_empty(folder: str) -> bool:
    """Whether the directory is gone."""
    try:
        os.rmdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        return False
    return True


def _sync_directory(folder: str) -> None:
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return  # Pruned by a concurrent `remove_many`, together with what we wrote in it.
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _entries(folder: str) -> list[tuple[str, bool]]:
    """Names in a directory and whether each is a directory; links to directories are left out."""
    try:
        with os.scandir(folder) as found:
            return [
                (entry.name, is_folder)
                for entry in found
                if (is_folder := entry.is_dir(follow_symlinks=False)) or entry.is_file()
            ]
    except (FileNotFoundError, NotADirectoryError):
        return []
