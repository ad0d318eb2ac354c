"""What becomes of freed memory: kept for the next query, or given back to the system.

Arrow's pool and the C library keep some of what was freed, in case it is wanted again soon. Arrays
of one query are wanted by the next; after a large table has been read once, what that took is not.

Guarantees: frees nothing that is in use; does nothing where the system cannot be asked.
Deliberately absent: settings of allocators, which belong to the whole process.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache

import numpy as np
import pyarrow as pa

_REUSED_BYTES = 8 << 20


def give_back() -> None:
    """Return what is free to the system. Takes milliseconds: not for every query."""
    pa.default_memory_pool().release_unused()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it, musl does not
        if trim is not None:
            trim(0)


@cache
def keep_small() -> None:
    """Have arrays of up to some MiB reused rather than mapped anew, page by page, in each query.
    For processes that query: one that only writes would hold on to more than it needs.

    glibc learns from what is freed: blocks up to the largest that has come back are reused from
    then on. This one is never touched, so it takes no memory.
    """
    np.empty(_REUSED_BYTES, np.uint8)
