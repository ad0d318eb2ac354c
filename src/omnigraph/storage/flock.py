"""OS file locks: released when the process ends, and exclusive between threads too.

Guarantees: a lock that was acquired is on the file that is at its path now, even if another process
deleted and recreated it meanwhile; a forked child drops its inherited copies, so that a lock never
outlives the process that took it; waiting is bounded. Two locks of one process exclude each other
like those of two processes, because each opens the file separately. Taking a lock needs no free
space: where no file can be made, a free lock file of the same folder is renamed (on Linux).

Absent on purpose: deleting lock files (only a holder may, see `oslock.drop_file`) and re-entrance.
"""

from __future__ import annotations

import errno
import fcntl
import os
import random
import time
import weakref
from collections.abc import Callable
from functools import cache
from typing import Any


class FileLock:
    """One attempt to hold the lock file at `path`. Not re-entrant, not shared between threads."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._descriptor: int | None = None

    @property
    def descriptor(self) -> int:
        """The open file; only meaningful while the lock is held."""
        assert self._descriptor is not None, "the lock is not held"
        return self._descriptor

    def acquire(
        self,
        timeout_s: float,
        *,
        poll_s: float = 0.0005,
        limit_s: float = 0.005,
        meanwhile: Callable[[], None] | None = None,
    ) -> bool:
        """Wait at most `timeout_s`; the pause between tries grows from `poll_s` to `limit_s`.
        `meanwhile` is called as soon as we have to wait and before each further try, and ends the
        wait by raising."""
        if self.try_acquire():
            return True
        deadline = time.monotonic() + timeout_s
        if meanwhile is not None:
            meanwhile()
        while (left := deadline - time.monotonic()) > 0:
            time.sleep(min(left, poll_s * random.uniform(0.5, 1.5)))
            poll_s = min(poll_s * 1.5, limit_s)
            if meanwhile is not None:
                meanwhile()
            if self.try_acquire():
                return True
        return False

    def try_acquire(self) -> bool:
        """Take the lock if it is free."""
        while True:
            descriptor = _open(self.path)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                return False
            except BaseException:
                os.close(descriptor)
                raise
            if _is_at(descriptor, self.path):
                self._descriptor = descriptor
                _held.add(self)
                return True
            os.close(descriptor)  # Deleted or replaced between open and lock: start over.

    def is_valid(self) -> bool:
        """Whether this process still holds the lock on the file that is at the path now."""
        return self._descriptor is not None and _is_at(self._descriptor, self.path)

    def release(self) -> None:
        """Give the lock back. Releasing twice is harmless."""
        descriptor, self._descriptor = self._descriptor, None
        _held.discard(self)
        if descriptor is not None:
            os.close(descriptor)

    def __del__(self) -> None:
        if getattr(self, "_descriptor", None) is not None:
            self.release()


_held: weakref.WeakSet[FileLock] = weakref.WeakSet()


def _drop_inherited() -> None:
    # Closing, not unlocking: an explicit unlock would release the parent's lock as well.
    for lock in list(_held):
        lock.release()


os.register_at_fork(after_in_child=_drop_inherited)


_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
# Which lock files may be renamed to others: the next user of such a name makes it again.
_SPARE = "objects-"
_TRIES = 100
# AT_FDCWD and RENAME_NOREPLACE of Linux.
_HERE = -100
_NOREPLACE = 1


def is_full(error: OSError) -> bool:
    """Whether an error means that there is no room on the disk, or none for this user."""
    return error.errno in _FULL


def _open(path: str) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
    for _ in range(_TRIES):
        try:
            return os.open(path, flags, 0o666)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path), exist_ok=True)
        except OSError as error:
            if not (is_full(error) and _take_spare(path)):
                raise
    raise OSError(errno.EAGAIN, "the lock file disappears again and again", path)


def _take_spare(path: str) -> bool:
    """Give the name `path` to a free lock file of the same folder. Whether there may be a file now;
    another process can have been faster, or have taken it away again."""
    folder = os.path.dirname(path)
    for name in sorted(os.listdir(folder)):
        spare = f"{folder}/{name}"
        if name.startswith(_SPARE) and spare != path and _rename_free(spare, path):
            return True
    return False


def _rename_free(spare: str, path: str) -> bool:
    try:
        descriptor = os.open(spare, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not _is_at(descriptor, spare):
            return False
        return _rename_to_new(spare, path)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)


def _rename_to_new(source: str, target: str) -> bool:
    """Rename a file unless the target exists. Whether there is a target now."""
    import ctypes

    function = _renameat2()
    if function is None:
        return False
    done = function(_HERE, os.fsencode(source), _HERE, os.fsencode(target), _NOREPLACE) == 0
    return bool(done or ctypes.get_errno() == errno.EEXIST)


@cache
def _renameat2() -> Any:
    """The function of the C library; None where there is none."""
    import ctypes

    return getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)


def _is_at(descriptor: int, path: str) -> bool:
    try:
        there = os.stat(path)
    except FileNotFoundError:
        return False
    here = os.fstat(descriptor)
    return (here.st_ino, here.st_dev) == (there.st_ino, there.st_dev)
