"""Walks of several hops: for each source, every node once, at its smallest distance.

Breadth first over a space that holds all types that the legs touch. Sources run together, each with
a set of visited nodes of its own, as one array of (source, node) keys.

The language's rule for self-loops: an edge from a node to itself yields the node one hop after the
node was reached, within the bounds, unless it was yielded already; it is not searched again.

Guarantees: at most one row per (source, node); memory is bounded by chunks of sources.
Deliberately absent: paths. Only ends and distances are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from omnigraph.engines.embedded.bounds import Bounds
from omnigraph.engines.embedded.catalog_view import Space
from omnigraph.engines.embedded.neighbours import Leg
from omnigraph.engines.embedded.rownumbers import Array

# Visited marks of one chunk of sources, in bytes.
_MARKS = 64 << 20
_UNBOUNDED = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Reached:
    """`sources` are places in the list of sources; `nodes` are numbers of the walk's space."""

    sources: Array
    nodes: Array
    hops: Array


def walk(
    starts: Array,
    space: Space,
    legs: Sequence[Leg],
    min_hops: int,
    max_hops: int | None,
    bounds: Bounds,
    *,
    probe: bool = False,
    backwards: bool = False,
) -> Reached:
    """Everything within the bounds of hops from each start (distinct numbers of `space`).

    `backwards`: the starts are the far ends, so it is their self-loops that count.
    """
    most = _UNBOUNDED if max_hops is None else max_hops
    step = max(1, _MARKS // max(1, space.size))
    parts: list[Reached] = []
    for first in range(0, len(starts), step):
        chunk = starts[first : first + step]
        walker = _Walker(space, legs, bounds, probe, len(chunk))
        bounds.allocate(sum(part.nodes.nbytes * 5 for part in parts))
        for found in walker.levels(chunk, min_hops, most, backwards):
            parts.append(Reached(found.sources + first, found.nodes, found.hops))
    return _joined(parts, space)


class _Walker:
    """One chunk of sources on its way outwards."""

    def __init__(
        self, space: Space, legs: Sequence[Leg], bounds: Bounds, probe: bool, sources: int
    ) -> None:
        self._space = space
        self._legs = legs
        self._bounds = bounds
        self._probe = probe
        self._size = max(1, space.size)
        # Zeroed memory is only paid for where it is touched.
        self._visited = np.zeros(sources * self._size, bool)

    def levels(self, starts: Array, min_hops: int, max_hops: int, backwards: bool) -> list[Reached]:
        found: list[Reached] = []
        keys = np.arange(len(starts), dtype=np.int64) * self._size + starts
        self._visited[keys] = True
        looping = np.zeros(len(starts), bool)
        hop = 0
        while hop < max_hops and len(keys):
            hop += 1
            before = keys
            keys, loops = self._outwards(before)
            if hop == 1:
                looping[loops // self._size] = True
            if hop == min_hops:
                again = before[looping[before // self._size]] if backwards else loops
                found.append(self._level(again, hop))
            if hop >= min_hops:
                found.append(self._level(keys, hop))
        return found

    def _level(self, keys: Array, hop: int) -> Reached:
        sources, nodes = np.divmod(keys, self._size)
        return Reached(sources, nodes, np.full(len(keys), hop, np.int64))

    def _outwards(self, keys: Array) -> tuple[Array, Array]:
        """The keys of the next level, and those of nodes here that have an edge to themselves."""
        self._bounds.check()
        sources, nodes = np.divmod(keys, self._size)
        reached: list[Array] = []
        loops: list[Array] = []
        for leg in self._legs:
            far, looping = self._along(leg, sources, nodes)
            reached.append(far)
            loops.append(looping)
        return self._fresh(np.concatenate(reached)), np.unique(np.concatenate(loops))

    def _along(self, leg: Leg, sources: Array, nodes: Array) -> tuple[Array, Array]:
        near, far = self._space.base(leg.near.name), self._space.base(leg.far.name)
        assert near is not None
        assert far is not None
        here = nodes - near
        inside = (here >= 0) & (here < leg.near.numbering.size)
        if not inside.all():
            sources, here = sources[inside], here[inside]
        found = leg.expand(here, by_edge=False, probe=self._probe)
        at = sources.take(found.rows) * self._size
        keys = at + found.targets + far
        if leg.near is not leg.far:
            return keys, _NOTHING
        loop = found.targets == here.take(found.rows)
        return keys, keys[loop] if loop.any() else _NOTHING

    def _fresh(self, keys: Array) -> Array:
        """Keys not visited before, each once; marks them."""
        keys = keys[~self._visited.take(keys)]
        if len(keys) * 8 < len(self._visited):
            keys = np.unique(keys)
            self._visited[keys] = True
            return keys
        marks = np.zeros(len(self._visited), bool)
        marks[keys] = True
        self._visited |= marks
        return np.flatnonzero(marks)


_NOTHING = np.empty(0, np.int64)


def _joined(parts: list[Reached], space: Space) -> Reached:
    if not parts:
        return Reached(_NOTHING, _NOTHING.astype(space.dtype), _NOTHING)
    return Reached(
        np.concatenate([p.sources for p in parts]),
        np.concatenate([p.nodes for p in parts]).astype(space.dtype),
        np.concatenate([p.hops for p in parts]),
    )
