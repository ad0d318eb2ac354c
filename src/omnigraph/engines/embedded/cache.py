"""The shared cache of queries: columns, numberings and adjacency of immutable table versions.

The sum of what is held stays within a byte budget, least recently used first out; an entry is made
once even when several threads want it; an entry that alone exceeds the budget is handed out but not
held. Keys name immutable things, so nothing ever has to be invalidated.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

T = TypeVar("T")

_SHARE_OF_MEMORY = 4
_LARGEST_DEFAULT = 4 << 30


class ByteCache:
    """Values by key, with the bytes that each one holds."""

    def __init__(self, budget_bytes: int | None = None) -> None:
        self.budget_bytes = default_budget() if budget_bytes is None else budget_bytes
        self._entries: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()
        self._making: dict[Hashable, threading.Lock] = {}

    @property
    def held_bytes(self) -> int:
        return self._bytes

    def peek(self, key: Hashable) -> Any | None:
        """What is held under a key, if anything."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
            return entry[0]

    def get(self, key: Hashable, make: Callable[[], T], size: Callable[[T], int]) -> T:
        """What is held under a key, or what `make` gives; made by one thread at a time."""
        found: T | None = self.peek(key)
        if found is not None:
            return found
        with self._lock:
            gate = self._making.setdefault(key, threading.Lock())
        with gate:
            again: T | None = self.peek(key)
            if again is not None:
                return again
            try:
                made = make()
                self.put(key, made, size(made))
            finally:
                with self._lock:
                    self._making.pop(key, None)
            return made

    def put(self, key: Hashable, value: Any, size: int) -> None:
        with self._lock:
            self._drop(key)
            if size > self.budget_bytes:
                return
            self._entries[key] = (value, size)
            self._bytes += size
            while self._bytes > self.budget_bytes:
                _, (_, freed) = self._entries.popitem(last=False)
                self._bytes -= freed

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()
            self._bytes = 0

    def _drop(self, key: Hashable) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._bytes -= entry[1]


def default_budget() -> int:
    """A quarter of the machine's memory, and no more than 4 GiB."""
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return min(_LARGEST_DEFAULT, pages * size // _SHARE_OF_MEMORY)
