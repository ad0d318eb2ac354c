"""Request files (letters) to the owner of a writer lock: a waiting process writes its request, and
the owner may execute it.

    <lock>.letters/<id>.posted        written by a waiting process
    <lock>.letters/<id>.taken.<note>  taken by the lock owner, with a note
    <lock>.letters/<id>.answer        the response of the lock owner

Guarantees: a letter is taken or withdrawn, never both; the letter of a process that has ended is
not taken, because a writer holds an OS lock on its letter while it runs; the lock owner removes
letters of ended processes. A letter that cannot be written or read is not an error: the process
waits for the lock. Letters are not durable, because they are useless after their writer has ended.
A process that takes one must own the lock, and must not assume that its response is read.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress

from omnigraph.storage.flock import FileLock

_NEW, _POSTED, _TAKEN, _ANSWER = ".new", ".posted", ".taken.", ".answer"


class Letter:
    """One letter, for its writer."""

    def __init__(self, folder: str, id: str, lock: FileLock) -> None:
        self.id = id
        self._folder = folder
        self._lock = lock

    def answer(self) -> bytes | None:
        """The response of the lock owner, or None."""
        return _read(self._path(_ANSWER))

    def withdraw(self) -> bool:
        """Withdraw the letter. False: the lock owner has taken it and may execute it."""
        return _unlink(self._path(_POSTED))

    def note(self) -> int | None:
        """The note of the process that took it; None if it was not taken."""
        for name in _names(self._folder):
            if name.startswith(self.id + _TAKEN):
                return int(name.rpartition(".")[2])
        return None

    def close(self) -> None:
        """Delete all its files. A lock owner that took the letter may still execute it."""
        if not self.withdraw():
            _clear(self._folder, self.id)
        self._lock.release()

    def _path(self, state: str) -> str:
        return f"{self._folder}/{self.id}{state}"


class Letters:
    """The letters to the owner of one lock."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def post(self, id: str, data: bytes) -> Letter | None:
        """Write a letter for the lock owner. None if it cannot be written; the caller then
        waits."""
        path = f"{self._folder}/{id}"
        lock = FileLock(path + _NEW)
        try:
            if not lock.try_acquire():
                return None
            if os.write(lock.descriptor, data) != len(data):
                raise OSError("the letter does not fit")
            os.rename(path + _NEW, path + _POSTED)
        except OSError:
            lock.release()
            _unlink(path + _NEW)
            return None
        return Letter(self._folder, id, lock)

    def are_there(self) -> bool:
        """Whether there may be letters (a cheap check)."""
        return any(name.endswith(_POSTED) for name in _names(self._folder))

    def take(self, note: int, most: int) -> list[tuple[str, bytes]]:
        """The pending letters with their ids, oldest first. The caller owns the lock."""
        living = self._bury(_names(self._folder))
        taken = []
        for name in sorted(name for name in living if name.endswith(_POSTED))[:most]:
            id = name.removesuffix(_POSTED)
            path = f"{self._folder}/{id}{_TAKEN}{note}"
            with suppress(OSError):  # withdrawn, or no permission
                os.rename(f"{self._folder}/{name}", path)
                taken.append((id, _read(path) or b""))
        return taken

    def answer(self, id: str, data: bytes) -> None:
        """Write the response to a taken letter. A failure is ignored; the writer does not depend on
        it."""
        path = f"{self._folder}/{id}"
        with suppress(OSError):
            with open(path + _NEW, "wb") as file:
                file.write(data)
            os.rename(path + _NEW, path + _ANSWER)

    def _bury(self, names: list[str]) -> list[str]:
        """Delete letters of processes that have ended, and responses without a waiting process.
        Returns the letters of running processes."""
        lives = {name: _lives(f"{self._folder}/{name}") for name in names if not _is_answer(name)}
        awaited = {_id(name) for name, does in lives.items() if does is not False}
        for name in names:
            gone = _id(name) not in awaited if _is_answer(name) else lives[name] is False
            if gone:
                _unlink(f"{self._folder}/{name}")
        return [name for name, does in lives.items() if does]


def _lives(path: str) -> bool | None:
    """Whether the writer of a letter is running; None if unknown."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return False


def _clear(folder: str, id: str) -> None:
    # The response first: one without its letter is deleted when letters are next taken.
    found = [name for name in _names(folder) if name.startswith(f"{id}.")]
    for name in sorted(found, key=_is_answer, reverse=True):
        _unlink(f"{folder}/{name}")


def _is_answer(name: str) -> bool:
    return name.endswith(_ANSWER)


def _id(name: str) -> str:
    return name.partition(".")[0]


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def _unlink(path: str) -> bool:
    try:
        os.unlink(path)
    except OSError:
        return False
    return True
