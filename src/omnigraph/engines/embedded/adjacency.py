"""Neighbour lists of one edge type at one version, over dense node numbers.

`Neighbours` is compressed sparse rows: the neighbours of node `i` are
`targets[offsets[i]:offsets[i + 1]]`, ascending. `distinct` lists name each neighbour once, as
traversals without an edge variable need it; the others name each edge, with its number.

Guarantees: built by sorting packed 64-bit integers, so at memory speed; never changed afterwards;
edges whose end is missing are left out.
Deliberately absent: where edges come from (`neighbours`), later versions (`adjacency_delta`), and
walks over more than one hop (`walk`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from omnigraph.engines.embedded.bounds import Bounds
from omnigraph.engines.embedded.rownumbers import Array

_PIECE = 1 << 18


@dataclass(frozen=True, eq=False)
class Endpoints:
    """By edge number: the numbers of both ends, `NOBODY` where an end is missing."""

    sources: Array
    targets: Array

    @cached_property
    def dangles(self) -> bool:
        """Whether some end is missing; a later version of the nodes might hold it."""
        return bool((self.sources < 0).any() or (self.targets < 0).any())

    @property
    def nbytes(self) -> int:
        return int(self.sources.nbytes + self.targets.nbytes)


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Neighbour lists by node number. `edges` has the edge of each entry, if that is kept."""

    offsets: Array
    targets: Array
    edges: Array | None = None

    @property
    def size(self) -> int:
        return len(self.offsets) - 1

    @property
    def nbytes(self) -> int:
        held = (self.offsets, self.targets, self.edges)
        return sum(int(array.nbytes) for array in held if array is not None)

    @cached_property
    def degrees(self) -> Array:
        return np.diff(self.offsets)

    def counts(self, numbers: Array) -> Array:
        """How many entries each of these nodes has."""
        found: Array = self.degrees.take(numbers)
        return found

    def places(self, numbers: Array, counts: Array) -> Array:
        """Where the entries of these nodes lie in `targets`, node by node."""
        if len(numbers) == 1:
            start = int(self.offsets[numbers[0]])
            return np.arange(start, start + int(counts[0]))
        total = int(counts.sum())
        ends = np.cumsum(counts)
        starts = self.offsets.take(numbers)
        # Each entry's place is its running number, moved to where its node's list begins.
        shift = np.repeat(starts - (ends - counts), counts)
        return shift + np.arange(total, dtype=shift.dtype)


def build_distinct(near: Array, far: Array, size: int, bounds: Bounds) -> Neighbours:
    """Each neighbour once, ascending."""
    keys = bounds.wait(lambda: _sorted_pairs(near, far), 2 * len(near))
    if len(keys) > 1:
        fresh = np.empty(len(keys), bool)
        fresh[0] = True
        np.not_equal(keys[1:], keys[:-1], out=fresh[1:])
        if not fresh.all():
            keys = keys[fresh]
    return Neighbours(_offsets(keys, size), _low_halves(keys))


def build_by_edge(near: Array, far: Array, size: int, bounds: Bounds) -> Neighbours:
    """Each edge, in the order of edge numbers."""
    numbers = np.flatnonzero((near >= 0) & (far >= 0)).astype(np.int32)
    keys = bounds.wait(lambda: _sorted_pairs(near.take(numbers), numbers), 2 * len(near))
    edges = _low_halves(keys)
    return Neighbours(_offsets(keys, size), far.take(edges), edges)


def _sorted_pairs(high: Array, low: Array) -> Array:
    """(high, low) packed into one integer each, ascending; pairs with a missing part left out."""
    there = (high >= 0) & (low >= 0)
    if not there.all():
        high, low = high[there], low[there]
    del there
    # In place, because this is where memory peaks: twice the size of all lists in one direction.
    keys = high.astype(np.uint64)
    keys <<= np.uint64(32)
    np.bitwise_or(keys, low, out=keys, dtype=np.uint64, casting="unsafe")
    keys.sort()
    return keys


def _low_halves(keys: Array) -> Array:
    return keys.astype(np.uint32).view(np.int32)


def _offsets(keys: Array, size: int) -> Array:
    """Where the keys of each high half begin, counted piece by piece."""
    offsets = np.zeros(size + 1, np.int64)
    for first in range(0, len(keys), _PIECE):
        rows = (keys[first : first + _PIECE] >> np.uint64(32)).astype(np.int64)
        start = int(rows[0])
        counts = np.bincount(rows - start)
        offsets[start + 1 : start + 1 + len(counts)] += counts
    np.cumsum(offsets, out=offsets)
    return offsets


def are_neighbours(lists: Neighbours, here: Array, there: Array) -> Array:
    """Whether each `there` is in the ascending neighbour list of its `here`."""
    low, high = lists.offsets.take(here), lists.offsets.take(here + 1)
    end = high.copy()
    while True:
        open_ = low < high
        if not bool(open_.any()):
            break
        middle = (low + high) >> 1
        less = np.zeros(len(low), bool)
        less[open_] = lists.targets.take(middle[open_]) < there[open_]
        low = np.where(open_ & less, middle + 1, low)
        high = np.where(open_ & ~less, middle, high)
    hit = low < end
    hit[hit] = lists.targets.take(low[hit]) == there[hit]
    return hit
