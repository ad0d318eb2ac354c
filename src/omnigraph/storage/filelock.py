"""Writer locks that need no expiry: OS locks for local disk, in-process locks for memory.

The lock file keeps the last fencing token and the holder as JSON, for error messages and for
`read_fence`; it is deleted only by `drop_file`, which holds the OS lock while it does so. Its
content is informational: mutual exclusion is by the OS lock. So the lock can be acquired on a full
disk, where the record cannot be written: the next token is then derived from the clock.

A process that writes again immediately has priority for some writes in a row, because it knows the
state of the branch already, while another process has to read it again. A waiting process allows a
few milliseconds for that. The priority ends after a number of writes or a fifth of a second,
whichever comes first.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from omnigraph.errors import LockTimeoutError
from omnigraph.storage.failures import translated
from omnigraph.storage.flock import FileLock, is_full
from omnigraph.storage.lockowner import Holder, LockToken, next_token

_RECORD_SIZE = 1024
_RECORD_LIMIT = 64 * 1024
# The number of writes and the time for which one process has priority, and the time it has to
# return.
_TURNS = 16
_ROW_S = 0.2
_RETURN_S = 0.005
_LOOK_S = 0.002


@contextmanager
def hold_file(
    path: str,
    name: str,
    holder: Holder,
    timeout_s: float,
    meanwhile: Callable[[], None] | None = None,
) -> Iterator[LockToken]:
    """Hold the OS lock on `<path>.lock`. While waiting, `meanwhile` is called repeatedly."""
    lock, door = FileLock(f"{path}.lock"), FileLock(f"{path}.queue")
    try:
        with translated("lock", lock.path):
            _enter(lock, door, name, timeout_s, meanwhile)
            token, turn = _sign(lock, holder)
        held = LockToken(name, token, holder, lambda: _reason(lock))
        try:
            yield held
        finally:
            held.mark_released()
            _sign_off(lock, token, turn)
    finally:
        door.release()
        lock.release()


def _enter(
    lock: FileLock,
    door: FileLock,
    name: str,
    timeout_s: float,
    meanwhile: Callable[[], None] | None,
) -> None:
    """Acquire the queue lock, then the lock; only the first process in the queue polls the lock."""
    deadline = time.monotonic() + timeout_s
    # A waiting process may hold the lock briefly, to read the priority record.
    if _Turn.of(_read_path(lock.path)).is_ours and lock.acquire(min(timeout_s, _LOOK_S)):
        return
    if door.acquire(timeout_s, meanwhile=meanwhile):
        while lock.acquire(deadline - time.monotonic(), limit_s=0.001, meanwhile=meanwhile):
            left = _Turn.of(_read(lock.descriptor)).left_s
            if left <= 0:
                door.release()
                return
            lock.release()
            time.sleep(left)
    raise timed_out(name, timeout_s, read_holder(lock.path))


def drop_file(path: str) -> None:
    """Delete the files of a lock, unless it is held. A process that opened them before finds that
    they are gone once it has the OS lock, and starts over."""
    lock, door = FileLock(f"{path}.lock"), FileLock(f"{path}.queue")
    try:
        if lock.try_acquire() and door.try_acquire():
            shutil.rmtree(f"{path}.letters", ignore_errors=True)
            for each in (door, lock):
                os.unlink(each.path)
    finally:
        door.release()
        lock.release()


@dataclass(frozen=True)
class _Turn:
    """The priority record of the last owner. A record of another machine, or from before a reboot,
    is meaningless and delays a waiting process only briefly."""

    process: int
    number: int
    began: float
    until: float

    @staticmethod
    def of(record: dict[str, Any]) -> _Turn:
        match record.get("turn"):
            case [int(process), int(number), float(began), float(until)]:
                return _Turn(process, number, began, until)
            case _:
                return _Turn(0, _TURNS, 0.0, 0.0)

    @property
    def is_over(self) -> bool:
        return self.number >= _TURNS or not 0 <= time.monotonic() - self.began < _ROW_S

    @property
    def is_ours(self) -> bool:
        return self.process == os.getpid() and not self.is_over

    @property
    def left_s(self) -> float:
        """How long other processes should wait for the process with priority."""
        left = self.until - time.monotonic()
        return 0.0 if self.is_over or self.process == os.getpid() or left > _RETURN_S else left

    def next(self) -> _Turn:
        """Our record after this one; it continues the row if this one is ours."""
        if self.is_ours:
            return _Turn(self.process, self.number + 1, self.began, 0.0)
        return _Turn(os.getpid(), 1, time.monotonic(), 0.0)


def _sign(lock: FileLock, holder: Holder) -> tuple[int, _Turn]:
    """Write our owner record into the lock file. Returns the token and the priority record."""
    record = _read(lock.descriptor)
    token = next_token(_token_of(record))
    try:
        _write(lock.descriptor, {"token": token, "holder": holder.to_dict()})
    except OSError as error:
        if not is_full(error):
            raise
    return token, _Turn.of(record).next()


def _sign_off(lock: FileLock, token: int, turn: _Turn) -> None:
    # Informational only: an error here must not fail a finished write.
    with suppress(OSError):
        if lock.is_valid():
            signed = [turn.process, turn.number, turn.began, time.monotonic() + _RETURN_S]
            _write(lock.descriptor, {"token": token, "holder": None, "turn": signed})


def read_token(path: str) -> int:
    """The last token given out for the lock file; 0 if there was none."""
    return _token_of(_read_path(f"{path}.lock"))


def read_holder(path: str) -> Holder | None:
    """The current owner according to the lock file."""
    return Holder.from_dict(_read_path(path).get("holder"))


def timed_out(name: str, timeout_s: float, holder: Holder | None) -> LockTimeoutError:
    """The error of a wait that took too long."""
    return LockTimeoutError(
        f"The writer lock {name!r} was not free within {timeout_s:g} s; "
        f"it is held by {holder or 'another writer'}.",
        holder=str(holder) if holder else None,
        lock=name,
        holder_details=holder.to_dict() if holder else None,
    )


def _reason(lock: FileLock) -> str | None:
    return None if lock.is_valid() else "its lock file was removed"


def _read_path(path: str) -> dict[str, Any]:
    with translated("read", path):
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return {}
        try:
            return _read(descriptor)
        finally:
            os.close(descriptor)


def _read(descriptor: int) -> dict[str, Any]:
    try:
        value = json.loads(os.pread(descriptor, _RECORD_LIMIT, 0) or b"{}")
    except ValueError:  # Left half-written when the machine lost power.
        return {}
    return value if isinstance(value, dict) else {}


def _write(descriptor: int, record: dict[str, Any]) -> None:
    # Padded to one fixed size, so that a single write replaces the record for readers as well.
    data = json.dumps(record).encode()[:_RECORD_LIMIT].ljust(_RECORD_SIZE)
    os.pwrite(descriptor, data, 0)
    if os.fstat(descriptor).st_size != len(data):
        os.ftruncate(descriptor, len(data))


def _token_of(record: dict[str, Any]) -> int:
    token = record.get("token", 0)
    return token if isinstance(token, int) else 0


@dataclass
class _MemoryLock:
    lock: threading.Lock = field(default_factory=threading.Lock)
    token: int = 0
    holder: Holder | None = None


_memory_locks: dict[str, _MemoryLock] = {}
_memory_guard = threading.Lock()


def _memory_lock(key: str) -> _MemoryLock:
    with _memory_guard:
        return _memory_locks.setdefault(key, _MemoryLock())


def _forget_in_child() -> None:
    _memory_locks.clear()  # Their owners are threads of the parent process.


os.register_at_fork(after_in_child=_forget_in_child)


@contextmanager
def hold_memory(key: str, name: str, holder: Holder, timeout_s: float) -> Iterator[LockToken]:
    """Hold the lock of this process for `key`."""
    entry = _memory_lock(key)
    if not entry.lock.acquire(timeout=timeout_s):
        raise timed_out(name, timeout_s, entry.holder)
    try:
        entry.token, entry.holder = next_token(entry.token), holder
        held = LockToken(name, entry.token, holder, lambda: None)
        try:
            yield held
        finally:
            held.mark_released()
            entry.holder = None
    finally:
        entry.lock.release()


def read_memory_token(key: str) -> int:
    """The last token given out for `key` in this process; 0 if there was none."""
    return _memory_lock(key).token
