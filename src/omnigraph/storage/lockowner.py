"""Lock owners and lock tokens.

A writer has a `LockToken` while it holds the lock. The three kinds of lock (OS lock, lock in
memory, lease) differ in how they check that the lock is still held.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from omnigraph.errors import ConflictError


@dataclass(frozen=True, slots=True)
class Holder:
    """The owner of a lock, for error messages."""

    owner: str
    operation: str
    host: str
    pid: int
    thread: str
    since: str

    @classmethod
    def here(cls, owner: str, operation: str) -> Holder:
        """This thread of this process, now."""
        return cls(
            owner=owner,
            operation=operation,
            host=socket.gethostname(),
            pid=os.getpid(),
            thread=threading.current_thread().name,
            since=datetime.now(UTC).isoformat(timespec="milliseconds"),
        )

    @classmethod
    def from_dict(cls, value: Any) -> Holder | None:
        """The holder in a lock file or lease; None if there is none or it cannot be read."""
        if not isinstance(value, dict):
            return None
        try:
            return cls(**value)
        except TypeError:  # Written by another release.
            return None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        place = f"process {self.pid} on {self.host}"
        return f"{self.owner} ({self.operation}, {place}, since {self.since})"


class LockToken:
    """A held lock: its fencing `token`, its `holder`, and `check`."""

    def __init__(
        self, name: str, token: int, holder: Holder, still_ours: Callable[[], str | None]
    ) -> None:
        self.name = name
        self.token = token
        self.holder = holder
        self._still_ours = still_ours
        self._released = False

    def check(self) -> None:
        """Raise `ConflictError` unless the lock is still held. Call right before publishing."""
        if os.getpid() != self.holder.pid:
            raise self._fenced("it belongs to the process that forked this one")
        if self._released:
            raise self._fenced("it was released")
        if (reason := self._still_ours()) is not None:
            raise self._fenced(reason)

    def mark_released(self) -> None:
        """Make every later `check` fail."""
        self._released = True

    def _fenced(self, reason: str) -> ConflictError:
        return ConflictError(
            f"The writer lock {self.name!r} is no longer held by this process: {reason}.",
            hint="Nothing was published; read the branch again and repeat the write.",
            lock=self.name,
            token=self.token,
        )


def next_token(last: int) -> int:
    """A token greater than `last`, which increases with time even if `last` was lost."""
    return max(last + 1, time.time_ns() // 1000)
