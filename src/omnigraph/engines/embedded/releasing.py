"""Giving memory back to the system after work that needed much of it for a moment.

Arrow's pool and the C library keep what was freed, in case it is wanted again soon. After a large
table has been read once, it is not.

Guarantees: frees nothing that is in use; does nothing where the system cannot be asked.
Deliberately absent: any setting of allocators, which belong to the whole process.
"""

from __future__ import annotations

import ctypes
import sys

import pyarrow as pa


def give_back() -> None:
    """Return what is free to the system. Takes milliseconds: not for every query."""
    pa.default_memory_pool().release_unused()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it, musl does not
        if trim is not None:
            trim(0)
