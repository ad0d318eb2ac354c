"""The memory budget of an operation for rows.

    with holding.bounded(limit, "merge"):
        ...                                      # who reads rows lets them pass through `held`

What passes the bound is refused with both numbers while it is being read, instead of growing until
the system ends the process; who sets no bound pays for one lookup.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeVar

from omnigraph.errors import LimitExceededError


class _Rows(Protocol):
    @property
    def nbytes(self) -> int: ...


R = TypeVar("R", bound=_Rows)


class _Bound:
    """Shared by the threads of one operation."""

    def __init__(self, limit_bytes: int, what: str) -> None:
        self._limit = limit_bytes
        self._what = what
        self._held = 0
        self._guard = threading.Lock()

    def add(self, size_bytes: int) -> None:
        with self._guard:
            self._held += size_bytes
            held = self._held
        if held > self._limit:
            raise LimitExceededError(
                f"The {self._what} would hold more rows than fit into this machine's memory: "
                f"{_gib(held)} were read, and there is room for {_gib(self._limit)}.",
                resource="memory_bytes",
                limit=float(self._limit),
                actual=float(held),
                hint="Merge the changes in parts, or use a machine with more memory.",
            )


_bound: ContextVar[_Bound | None] = ContextVar("omnigraph_held", default=None)


@contextmanager
def bounded(limit_bytes: int, what: str) -> Iterator[None]:
    """Refuse to read more than so many bytes of rows in the block."""
    token = _bound.set(_Bound(limit_bytes, what))
    try:
        yield
    finally:
        _bound.reset(token)


def held(parts: Iterable[R]) -> Iterator[R]:
    """The parts, each counted against the bound, if there is one."""
    bound = _bound.get()
    for part in parts:
        if bound is not None:
            bound.add(part.nbytes)
        yield part


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / 2**30:.1f} GiB"
