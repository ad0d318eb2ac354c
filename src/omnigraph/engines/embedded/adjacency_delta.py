"""Adjacency of a later version from that of an earlier one.

Guarantees: equal to what `adjacency` would build; arrays of the earlier version are never changed.
Deliberately absent: when this is allowed. `neighbours` asks `lineage`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.engines.embedded.adjacency import Endpoints, Neighbours, are_neighbours
from omnigraph.engines.embedded.lineage import Delta
from omnigraph.engines.embedded.rownumbers import NOBODY, Array, Numbering
from omnigraph.errors import InvariantViolationError
from omnigraph.model.catalog import DST_COLUMN, SRC_COLUMN
from omnigraph.storage.table import ROW_ID

# Above this many new edges, sorting all edges again costs less.
_FEW_EDGES = 4096
_LOW = 0xFFFFFFFF

Find = Callable[[pa.Array], Array]


@dataclass(frozen=True, slots=True)
class Ends:
    """How to find the numbers of both ends by their ids."""

    source: Find
    target: Find


def carry_endpoints(
    older: Endpoints, delta: Delta, numbering: Numbering, ends: Ends
) -> Endpoints | None:
    """Both ends of every edge; None when a new edge lacks an end."""
    sources = _grown(older.sources, numbering.size)
    targets = _grown(older.targets, numbering.size)
    for rows in (delta.inserted, delta.updated):
        if rows.num_rows:
            numbers = numbering.to_numbers(rows.column(ROW_ID).to_numpy())
            sources[numbers] = ends.source(rows.column(SRC_COLUMN).combine_chunks())
            targets[numbers] = ends.target(rows.column(DST_COLUMN).combine_chunks())
            if bool((sources[numbers] < 0).any() or (targets[numbers] < 0).any()):
                return None
    if len(delta.removed):
        gone = numbering.to_numbers(delta.removed)
        sources[gone] = targets[gone] = NOBODY
    return Endpoints(sources, targets)


def carry_neighbours(
    older: Neighbours, before: tuple[Array, Array], after: tuple[Array, Array], size: int
) -> Neighbours | None:
    """Distinct neighbour lists; None when more than a few edges have changed.

    `before` and `after` are the near and the far end of every edge of both versions.
    """
    known = len(before[0])
    differs = (after[0][:known] != before[0]) | (after[1][:known] != before[1])
    changed = np.flatnonzero(differs)
    if len(changed) + len(after[0]) - known > _FEW_EDGES:
        return None
    lost = _pairs(before[0][changed], before[1][changed])
    fresh = np.concatenate([changed, np.arange(known, len(after[0]))])
    gained = _pairs(after[0][fresh], after[1][fresh])
    lists = _without(widened(older, size), _gone(lost, after))
    near, far = gained >> 32, gained & _LOW
    missing = ~are_neighbours(lists, near, far)
    return _inserted(lists, near[missing], far[missing])


def _pairs(near: Array, far: Array) -> Array:
    """Pairs of ends as ascending, distinct integers; those with a missing end left out."""
    there = (near >= 0) & (far >= 0)
    return np.unique(near[there].astype(np.int64) << 32 | far[there].astype(np.int64))


def _gone(lost: Array, after: tuple[Array, Array]) -> Array:
    """Of the pairs that have lost an edge, those that no other edge joins."""
    if not len(lost):
        return lost
    candidates = np.flatnonzero(np.isin(after[0], lost >> 32))
    return np.setdiff1d(lost, _pairs(after[0][candidates], after[1][candidates]))


def _without(lists: Neighbours, gone: Array) -> Neighbours:
    if not len(gone):
        return lists
    near, far = gone >> 32, gone & _LOW
    places = np.array(_places(lists, near, far), np.int64)
    if not np.array_equal(lists.targets.take(places, mode="clip"), far):
        raise InvariantViolationError("An edge that is gone was in no list of neighbours.")
    targets = np.delete(lists.targets, places)
    offsets = lists.offsets.copy()
    offsets[1:] -= np.cumsum(np.bincount(near, minlength=lists.size))
    return Neighbours(offsets, targets)


def _places(lists: Neighbours, near: Array, far: Array) -> list[int]:
    """Where each far end stands, or would stand, in the list of its near end."""
    starts, ends = lists.offsets[near].tolist(), lists.offsets[near + 1].tolist()
    return [
        start + int(np.searchsorted(lists.targets[start:end], target))
        for start, end, target in zip(starts, ends, far.tolist(), strict=True)
    ]


def widened(older: Neighbours, size: int) -> Neighbours:
    """The same lists, with empty ones for the nodes that came later."""
    missing = size + 1 - len(older.offsets)
    if missing <= 0:
        return older
    offsets = np.concatenate([older.offsets, np.full(missing, older.offsets[-1])])
    return Neighbours(offsets, older.targets, older.edges)


def _inserted(lists: Neighbours, near: Array, far: Array) -> Neighbours:
    """`near` and `far` ascend together and name no pair that is there already."""
    if not len(near):
        return lists
    targets = np.insert(lists.targets, _places(lists, near, far), far.astype(lists.targets.dtype))
    more = np.bincount(near, minlength=lists.size)
    offsets = lists.offsets.copy()
    offsets[1:] += np.cumsum(more)
    return Neighbours(offsets, targets)


def _grown(values: Array, size: int) -> Array:
    found = np.full(size, NOBODY, values.dtype)
    found[: len(values)] = values
    return found
