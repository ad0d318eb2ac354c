"""Where the memory of queries comes from, and what becomes of it when it is free.

Arrow's pool and the C library keep some of what was freed, in case it is wanted again soon. Arrays
of one query are wanted by the next; after a large table has been read once, what that took is not.

Frees nothing that is in use; does nothing where the system cannot be asked; a choice made for the
process is kept.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

_REUSED_BYTES = 8 << 20
# By these a process says itself what Arrow is to allocate with, or how.
_CHOSEN_BY = ("ARROW_DEFAULT_MEMORY_POOL", "MIMALLOC_ALLOW_THP")


def give_back() -> None:
    """Return what is free to the system. Takes milliseconds: not for every query."""
    pa.default_memory_pool().release_unused()
    trim = _malloc_trim()
    if trim is not None:
        trim(0)


@cache
def suit_queries() -> None:
    """Set memory up for queries, at the first one: a process that only writes has other needs."""
    if _malloc_trim() is not None:
        _reuse_small()
        _use_small_pages()


def _reuse_small() -> None:
    """Reuse arrays of up to some MiB, instead of mapping them again, page by page, in each query.

    glibc learns from what is freed: blocks up to the largest that has come back are reused from
    then on. This one is never touched, so it takes no memory.
    """
    np.empty(_REUSED_BYTES, np.uint8)


def _use_small_pages() -> None:
    """Have Arrow allocate with the C library, as numpy and Lance do.

    Its own allocator, mimalloc, asks the system for pages of 2 MiB: several for each thread,
    however little is in one. When eight threads had asked, they were two fifths of what the
    process had grown by, and nothing was faster for them.
    """
    is_chosen = any(name in os.environ for name in _CHOSEN_BY)
    if not is_chosen and pa.default_memory_pool().backend_name == "mimalloc":
        pa.set_memory_pool(pa.system_memory_pool())


@cache
def _malloc_trim() -> Callable[[int], Any] | None:
    """glibc has it, musl and other systems do not."""
    if sys.platform != "linux":
        return None
    return getattr(ctypes.CDLL(None), "malloc_trim", None)
