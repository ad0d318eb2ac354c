"""Caches of this process, all within one memory budget.

    tables: Cache[str, Table] = Cache(entries=256)
    found = tables.get(key, make=lambda: open(key))

Every cache evicts its least recently used entries beyond limits of its own, and all caches that
share a `MemoryBudget` evict theirs, oldest first, when their sum exceeds it. The budget of the
process is a share of the memory that the machine or the container (cgroup) has.

An entry is made once even if several threads need it. An entry that exceeds a limit by itself is
returned but not kept. Keys identify immutable values, so nothing has to be invalidated. All methods
are thread-safe; a forked process starts with the entries of its parent, or with none if a thread of
the parent was changing them.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from itertools import count
from typing import Any, Generic, TypeAlias, TypeVar, cast
from weakref import WeakSet

from omnigraph import headroom

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
T = TypeVar("T")

_SHARE_OF_MEMORY = 4
_LARGEST_BUDGET = 5 << 30

_ticks = count()
_budgets: WeakSet[MemoryBudget] = WeakSet()


class MemoryBudget:
    """The bytes that some caches may hold together."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.caches: WeakSet[Cache[Any, Any]] = WeakSet()
        self.lock = threading.Lock()
        _budgets.add(self)

    @property
    def held_bytes(self) -> int:
        return sum(cache.held_bytes for cache in self.caches)

    def evict(self) -> list[Any]:
        """Remove the oldest entries of all caches until the rest fits. The lock is held."""
        removed: list[Any] = []
        excess = self.held_bytes - self.limit_bytes
        while excess > 0:
            oldest = min(self.caches, key=Cache.age)
            value, size = oldest.evict()
            removed.append(value)
            excess -= size
        return removed


def process_budget() -> int:
    """A quarter of the memory of the machine or container, at most 5 GiB."""
    return min(_LARGEST_BUDGET, headroom.total_bytes() // _SHARE_OF_MEMORY)


SHARED = MemoryBudget(process_budget())


class Cache(Generic[K, V]):
    """Values by key. `limit_bytes` and `entries` bound this cache, `budget` all of them together;
    `nominal_bytes` is the size of entries whose size is not known."""

    def __init__(
        self,
        limit_bytes: int | None = None,
        *,
        entries: int | None = None,
        nominal_bytes: int = 0,
        budget: MemoryBudget = SHARED,
    ) -> None:
        self.limit_bytes = budget.limit_bytes if limit_bytes is None else limit_bytes
        self.held_bytes = 0
        self._limit_entries = entries
        self._nominal_bytes = nominal_bytes
        self._budget = budget
        self._entries: OrderedDict[K, list[Any]] = OrderedDict()  # value, size, last use
        self._making: dict[K, threading.Lock] = {}
        budget.caches.add(self)

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def _lock(self) -> threading.Lock:
        return self._budget.lock

    def peek(self, key: K) -> V | None:
        """The value of a key, if there is one."""
        with self._budget.lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
            entry[2] = next(_ticks)
            found: V = entry[0]
            return found

    def get(self, key: K, make: Callable[[], T], size: Callable[[T], int] | None = None) -> T:
        """The value of a key, or what `make` returns, which one thread calls at a time."""
        found: Any = self.peek(key)
        if found is not None:
            return cast(T, found)
        with self._lock:
            gate = self._making.setdefault(key, threading.Lock())
        with gate:
            again: Any = self.peek(key)
            if again is not None:
                return cast(T, again)
            try:
                made = make()
                self.put(key, cast(Any, made), None if size is None else size(made))
            finally:
                with self._lock:
                    self._making.pop(key, None)
            return made

    def put(self, key: K, value: V, size: int | None = None) -> None:
        """Keep a value, in place of an older one with the same key."""
        bytes_ = self._nominal_bytes if size is None else size
        removed: list[Any] = []  # destroyed after the lock is released
        with self._lock:
            removed.append(self._drop(key))
            if bytes_ > min(self.limit_bytes, self._budget.limit_bytes):
                return
            self._entries[key] = [value, bytes_, next(_ticks)]
            self.held_bytes += bytes_
            while self._is_over():
                removed.append(self.evict())
            removed += self._budget.evict()

    def drop(self, key: K) -> None:
        """Forget one entry."""
        with self._lock:
            removed = self._drop(key)
        del removed

    def items(self) -> list[tuple[K, V]]:
        """All entries, least recently used first."""
        with self._lock:
            return [(key, entry[0]) for key, entry in self._entries.items()]

    def clear(self) -> None:
        with self._lock:
            removed = list(self._entries.values())
            self._entries.clear()
            self.held_bytes = 0
        del removed

    # For `MemoryBudget`, which holds the lock

    def age(self) -> float:
        """The last use of the oldest entry; infinite without entries that occupy memory."""
        if not self.held_bytes:
            return float("inf")
        return float(next(iter(self._entries.values()))[2])

    def evict(self) -> tuple[Any, int]:
        """Remove the oldest entry."""
        _, (value, size, _) = self._entries.popitem(last=False)
        self.held_bytes -= size
        return value, size

    def start_over(self) -> None:
        """Forget everything, in a process that may have inherited half a change."""
        self._entries = OrderedDict()
        self._making = {}
        self.held_bytes = 0

    def _is_over(self) -> bool:
        if self._limit_entries is not None and len(self._entries) > self._limit_entries:
            return True
        return self.held_bytes > self.limit_bytes

    def _drop(self, key: K) -> Any:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self.held_bytes -= entry[1]
        return entry


AnyCache: TypeAlias = Cache[Hashable, Any]


def _after_fork() -> None:
    for budget in _budgets:
        for cache in budget.caches:
            if budget.lock.locked():
                cache.start_over()
            cache._making = {}
        budget.lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
