"""Legs of a traversal whose steps have a filter on edges.

A filtered leg gives what a leg over a table of only the matching edges would give: distinct
neighbours stay distinct. Without a filter, the legs of the run are used as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from omnigraph.engines.embedded.adjacency import Neighbours, build_by_edge, build_distinct
from omnigraph.engines.embedded.neighbours import Found, Leg
from omnigraph.engines.embedded.rownumbers import Array
from omnigraph.engines.embedded.run import Run
from omnigraph.engines.embedded.scans import marked, tested
from omnigraph.ir.query import EDGE, EdgeStep

# Testing whole columns is cheaper than testing single edges from this share of a table on.
_WHOLE_SHARE = 4


def legs_of(steps: Sequence[EdgeStep], run: Run, *, reverse: bool) -> list[Leg]:
    """The legs of a traversal's steps, walked from its src or, in reverse, from its dst."""
    if not any(step.where for step in steps):
        return run.legs(steps, reverse=reverse)
    found: list[Leg] = []
    for step in steps:
        for leg in run.legs([step], reverse=reverse):
            found.append(_filtered(leg, step, run) if step.where else leg)
    return found


def _filtered(leg: Leg, step: EdgeStep, run: Run) -> Leg:
    # The plan keeps its steps alive, so their identity is unique while the query runs.
    key = (id(step), leg.outwards)
    found = run.filtered_legs.get(key)
    if found is None:
        found = run.filtered_legs[key] = FilteredLeg(leg, _Matching(leg, step, run))
    return found


class _Matching:
    """The edges of one type that satisfy the filter of a step."""

    def __init__(self, leg: Leg, step: EdgeStep, run: Run) -> None:
        self._view = leg.edge
        self._where = step.where
        self._run = run
        self._marks: Array | None = None

    def marks(self) -> Array:
        """By edge number."""
        if self._marks is None:
            self._marks = marked(self._view, EDGE, self._where, self._run)
        return self._marks

    def of(self, edges: Array) -> Array:
        """Marks of some edges."""
        if self._marks is not None or len(edges) * _WHOLE_SHARE >= self._view.numbering.size:
            return self.marks().take(edges)
        distinct = np.unique(edges)
        return np.isin(edges, tested(self._view, EDGE, distinct, self._where, self._run))


class FilteredLeg(Leg):
    """A leg over the matching edges only."""

    def __init__(self, base: Leg, matching: _Matching) -> None:
        ends = (base.edge, base.near, base.far, base.outwards)
        super().__init__(*ends, base.cache, base.bounds)
        self._base = base
        self._matching = matching
        self._lists: dict[bool, Neighbours] = {}

    def turned(self) -> Leg:
        return FilteredLeg(self._base.turned(), self._matching)

    def is_held(self, by_edge: bool = False) -> bool:
        return by_edge in self._lists

    def neighbours(self, by_edge: bool = False) -> Neighbours:
        found = self._lists.get(by_edge)
        if found is None:
            build = self._listed_by_edge if by_edge else self._listed
            found = self._lists[by_edge] = build()
        return found

    def _matching_ends(self) -> tuple[Array, Array, Array]:
        """Numbers of the matching edges, and their near and far ends."""
        numbers = np.flatnonzero(self._matching.marks())
        near, far = self._oriented(self._base.endpoints())
        return numbers, near.take(numbers), far.take(numbers)

    def _listed(self) -> Neighbours:
        _, near, far = self._matching_ends()
        return build_distinct(near, far, self.near.numbering.size, self.bounds)

    def _listed_by_edge(self) -> Neighbours:
        numbers, near, far = self._matching_ends()
        lists = build_by_edge(near, far, self.near.numbering.size, self.bounds)
        assert lists.edges is not None
        return Neighbours(lists.offsets, lists.targets, numbers.take(lists.edges))

    def expand(self, numbers: Array, *, by_edge: bool, probe: bool) -> Found:
        if self.is_held(by_edge) or not probe:
            return super().expand(numbers, by_edge=by_edge, probe=False)
        found = self._base.expand(numbers, by_edge=True, probe=True)
        assert found.edges is not None
        kept = self._matching.of(found.edges)
        rows, targets, edges = found.rows[kept], found.targets[kept], found.edges[kept]
        if by_edge:
            return Found(rows, targets, edges)
        _, first = np.unique(np.stack([rows, targets]), axis=1, return_index=True)
        return Found(rows[first], targets[first], None)
