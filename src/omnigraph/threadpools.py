"""Thread pools that are created on first use and again after a fork.

    pool = ThreadPool("omnigraph-query", threads=4)
    pool.submit(work)

A forked process has none of its parent's threads; an executor that was inherited would accept work
and never run it. So every pool forgets its executor in the child. Work that the parent had
submitted runs in the parent only.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar
from weakref import WeakSet

T = TypeVar("T")

_pools: WeakSet[ThreadPool] = WeakSet()


class ThreadPool:
    """At most `threads` threads, whose names begin with `name`."""

    def __init__(self, name: str, threads: int) -> None:
        self.name = name
        self.threads = threads
        self._executor: ThreadPoolExecutor | None = None
        self._guard = threading.Lock()
        _pools.add(self)

    @property
    def executor(self) -> ThreadPoolExecutor:
        """The executor of this process."""
        with self._guard:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(self.threads, thread_name_prefix=self.name)
            return self._executor

    def submit(self, work: Callable[[], T]) -> Future[T]:
        return self.executor.submit(work)

    def _forget(self) -> None:
        self._executor = None
        self._guard = threading.Lock()  # another thread may have held it when the process forked


def _start_over() -> None:
    for pool in _pools:
        pool._forget()


os.register_at_fork(after_in_child=_start_over)
