"""Sets of row ids, in the form in which Lance takes them as a prefilter.

Lance reads a serialized roaring treemap (`row_addr_allowlist`): for each block of 2³² ids a
portable roaring bitmap. On tables with stable row ids those are the ids. Lance brings an encoder,
but it takes a Python list; for the 100 000 ids that a traversal may hand over, encoding arrays
here is about ten times faster, and that would otherwise be most of the cost of such a search.

Order and repeats in the input do not matter; an empty set allows nothing.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

RowIds = NDArray[np.uint64]

_COOKIE = 12346  # a roaring bitmap without run containers
_ARRAY_LIMIT = 4096  # larger containers are bitmaps
_CONTAINER_BITS = 16


def row_ids(values: ArrayLike) -> RowIds:
    """Row ids, ascending and without repeats."""
    ids = np.asarray(values, dtype=np.uint64)
    return ids if bool(np.all(ids[1:] > ids[:-1])) else np.unique(ids)


def encode(ids: RowIds) -> bytes:
    """The serialized set of ascending, distinct row ids."""
    blocks = _split(ids >> np.uint64(32), ids & np.uint64(0xFFFFFFFF))
    parts = [struct.pack("<I", len(blocks))]
    for block, low in blocks:
        bitmap = _bitmap(low)
        parts += [struct.pack("<II", block, len(bitmap)), bitmap]
    return b"".join(parts)


def _bitmap(low: NDArray[Any]) -> bytes:
    shift = low.dtype.type(_CONTAINER_BITS)
    mask = low.dtype.type((1 << _CONTAINER_BITS) - 1)
    containers = _split(low >> shift, low & mask)
    header, bodies = b"", []
    for key, values in containers:
        header += struct.pack("<HH", key, len(values) - 1)
        bodies.append(_container(values))
    start = 8 + len(header) + 4 * len(bodies)
    ends = np.cumsum([start, *(len(body) for body in bodies)], dtype=np.uint32)
    offsets = ends[:-1].astype("<u4").tobytes()
    return struct.pack("<II", _COOKIE, len(bodies)) + header + offsets + b"".join(bodies)


def _container(values: NDArray[Any]) -> bytes:
    if len(values) <= _ARRAY_LIMIT:
        return values.astype("<u2").tobytes()
    bits = np.zeros(1 << _CONTAINER_BITS, dtype=np.bool_)
    bits[values] = True
    return np.packbits(bits, bitorder="little").tobytes()


def _split(keys: NDArray[Any], values: NDArray[Any]) -> list[tuple[int, NDArray[Any]]]:
    """Values grouped by their ascending keys."""
    if len(keys) == 0:
        return []
    starts = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
    groups = np.split(values, starts[1:])
    return [(int(keys[start]), group) for start, group in zip(starts, groups, strict=True)]
