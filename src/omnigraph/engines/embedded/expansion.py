"""Walking traversals from the rows of a frame.

Guarantees: without an edge variable each (row, far node) comes once; with one, each edge once; far
ends are tested before rows are made of them.
Deliberately absent: which end to start from; the plan has decided.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.engines.embedded.adjacency import Neighbours, are_neighbours
from omnigraph.engines.embedded.catalog_view import Space, TypeView
from omnigraph.engines.embedded.edgefilter import legs_of
from omnigraph.engines.embedded.frame import Entities, Frame
from omnigraph.engines.embedded.neighbours import Leg
from omnigraph.engines.embedded.rownumbers import Array, distinct, places_of
from omnigraph.engines.embedded.run import Run
from omnigraph.engines.embedded.scans import keyed, marked, tested
from omnigraph.engines.embedded.walk import walk
from omnigraph.ir.expr import Expr
from omnigraph.plan.operators import Access, Expand, NodeVar

# Testing whole columns beats testing single rows from this share of a table on.
_WHOLE_SHARE = 4
# What one step of an expansion may make, so that it ends soon and memory stays bounded.
_ROWS_AT_ONCE = 250_000
_FIRST_WALKS = 16
_WALKS_AT_ONCE = 50_000


@dataclass(frozen=True, slots=True)
class Pairs:
    """Far ends per row; `edges` are numbers of the edge space, `hops` counts."""

    rows: Array
    targets: Array
    edges: Array | None = None
    hops: Array | None = None

    def where(self, kept: Array) -> Pairs:
        if bool(kept.all()):
            return self
        return Pairs(
            self.rows[kept],
            self.targets[kept],
            None if self.edges is None else self.edges[kept],
            None if self.hops is None else self.hops[kept],
        )


def expand_in_parts(operator: Expand, frame: Frame, run: Run) -> Iterator[Frame]:
    """The same as `expand`, in steps that each make no more than so many rows."""
    traversal = operator.traversal
    if frame.rows < 2 or operator.access is Access.INDEX:
        yield expand(operator, frame, run)
    elif traversal.min_hops == 1 and traversal.max_hops == 1:
        for part in _parts(operator, frame, run):
            yield expand(operator, part, run)
    else:
        yield from _walk_in_parts(operator, frame, run)


def _walk_in_parts(operator: Expand, frame: Frame, run: Run) -> Iterator[Frame]:
    """How far a walk reaches shows only when it is walked: a few first, then as many as fit."""
    first, count = 0, _FIRST_WALKS
    while first < frame.rows:
        before = run.bounds.scanned
        found = expand(operator, frame.cut(first, count), run)
        yield found
        first += count
        each = max(run.bounds.scanned - before, found.rows, 1) / count
        count = max(1, min(_WALKS_AT_ONCE, int(_ROWS_AT_ONCE / each)))


def _parts(operator: Expand, frame: Frame, run: Run) -> Iterator[Frame]:
    """Neighbouring rows, cut where their neighbours have become too many."""
    counts = _neighbour_counts(operator, frame.entities[operator.source], run)
    total = int(counts.sum())
    if total <= _ROWS_AT_ONCE:
        yield frame
        return
    bars = np.arange(_ROWS_AT_ONCE, total, _ROWS_AT_ONCE)
    ends = [*np.unique(np.searchsorted(np.cumsum(counts), bars)).tolist(), frame.rows]
    first = 0
    for end in ends:
        if end > first:
            yield frame.cut(first, end - first)
            first = end


def _neighbour_counts(operator: Expand, near: Entities, run: Run) -> Array:
    """By row: how many far ends an expansion will look at, at most."""
    counts = np.zeros(len(near.numbers), np.int64)
    by_edge = operator.traversal.edge_var is not None
    for leg in legs_of(operator.traversal.steps, run, reverse=operator.reverse):
        base = near.space.base(leg.near.name)
        if base is not None:
            rows, numbers = _inside(near, base, leg.near.numbering.size)
            found = leg.neighbours(by_edge).counts(numbers)
            counts[slice(None) if rows is None else rows] += found
    return counts


def expand(operator: Expand, frame: Frame, run: Run) -> Frame:
    """Rows for every acceptable far end, or, when both ends are bound, the rows that connect."""
    space = run.space(operator.node.types)
    pairs = _pairs(operator, frame, space, run)
    if operator.into:
        far = frame.entities[operator.node.var]
        wanted = far.space.moved(far.numbers, space).take(pairs.rows)
        pairs = pairs.where((wanted == pairs.targets) & (wanted >= 0))
    else:
        pairs = pairs.where(acceptable(operator.node, space, pairs.targets, run))
    traversal = operator.traversal
    edge_space = run.space(dict.fromkeys(s.edge for s in traversal.steps), edges=True)
    if traversal.edge_var is not None and operator.edge_predicates:
        pairs = pairs.where(_edges_hold(operator, edge_space, pairs, run))
    run.bounds.allocate(len(pairs.rows) * (8 + frame.nbytes // max(1, frame.rows)))
    found = frame.take(pairs.rows)
    if not operator.into:
        found = found.bind(operator.node.var, Entities(space, pairs.targets))
    if traversal.edge_var is not None and pairs.edges is not None:
        found = found.bind(traversal.edge_var, Entities(edge_space, pairs.edges))
    if traversal.hops_var is not None:
        hops = np.ones(len(pairs.rows), np.int64) if pairs.hops is None else pairs.hops
        found = found.bind_value(traversal.hops_var, pa.array(hops))
    return found


def _pairs(operator: Expand, frame: Frame, space: Space, run: Run) -> Pairs:
    traversal = operator.traversal
    near = frame.entities[operator.source]
    legs = legs_of(traversal.steps, run, reverse=operator.reverse)
    probe = operator.access is Access.INDEX
    if traversal.min_hops == 1 and traversal.max_hops == 1:
        by_edge = traversal.edge_var is not None
        if operator.into and not by_edge and not probe:
            return _connected(operator, frame, legs, space)
        return one_hop(near, legs, space, run, by_edge=by_edge, probe=probe)
    return _many_hops(operator, near, legs, space, run, probe)


def one_hop(
    near: Entities, legs: list[Leg], space: Space, run: Run, *, by_edge: bool, probe: bool = False
) -> Pairs:
    """The neighbours of every row's node."""
    if len(legs) == 1 and not by_edge and near.space.is_single and space.is_single:
        return _plain_hop(near, legs[0], space, probe=probe)
    parts: list[Pairs] = []
    names = list(dict.fromkeys(leg.edge.name for leg in legs))
    edge_space = run.space(names, edges=True) if by_edge else None
    outwards = {leg.edge.name for leg in legs if leg.outwards}
    for leg in legs:
        base, target = near.space.base(leg.near.name), space.base(leg.far.name)
        if base is None or target is None:
            continue
        rows, numbers = _inside(near, base, leg.near.numbering.size)
        found = leg.expand(numbers, by_edge=by_edge, probe=probe)
        targets = found.targets.astype(space.dtype, copy=False) + space.dtype.type(target)
        at = found.rows if rows is None else rows.take(found.rows)
        edges = None
        if edge_space is not None and found.edges is not None:
            edges = found.edges + edge_space.dtype.type(edge_space.base(leg.edge.name) or 0)
        pairs = Pairs(at, targets, edges)
        may_loop = leg.near.name == leg.far.name  # numbers are unique within one type only
        if by_edge and may_loop and not leg.outwards and leg.edge.name in outwards:
            # Walked both ways, an edge from a node to itself is still one edge.
            pairs = pairs.where(found.targets != numbers.take(found.rows))
        parts.append(pairs)
    joined = _stack(parts, space, by_edge)
    return joined if by_edge or len(parts) < 2 else _distinct(joined, space)


def _plain_hop(near: Entities, leg: Leg, space: Space, *, probe: bool) -> Pairs:
    """The same over one edge type between two node types, which is most of what is asked."""
    if leg.near.name != near.space.views[0].name or leg.far.name != space.views[0].name:
        return _stack([], space, by_edge=False)
    rows, numbers = _inside(near, 0, leg.near.numbering.size)
    found = leg.expand(numbers, by_edge=False, probe=probe)
    at = found.rows if rows is None else rows.take(found.rows)
    return Pairs(at, found.targets.astype(space.dtype, copy=False))


def _inside(near: Entities, base: int, size: int) -> tuple[Array | None, Array]:
    """The rows whose node is of the type that begins at `base`, and its numbers there."""
    numbers = near.numbers - base if base else near.numbers
    inside = (numbers >= 0) & (numbers < size)
    if bool(inside.all()):
        return None, numbers
    rows = np.flatnonzero(inside)
    return rows, numbers[rows]


def _stack(parts: list[Pairs], space: Space, by_edge: bool) -> Pairs:
    if len(parts) == 1:
        return parts[0]
    if not parts:
        nothing = np.empty(0, np.int64)
        return Pairs(nothing, nothing.astype(space.dtype), nothing if by_edge else None)
    edges = [p.edges for p in parts if p.edges is not None]
    return Pairs(
        np.concatenate([p.rows for p in parts]),
        np.concatenate([p.targets for p in parts]),
        np.concatenate(edges) if by_edge else None,
    )


def _distinct(pairs: Pairs, space: Space) -> Pairs:
    size = max(1, space.size)
    keys = np.unique(pairs.rows.astype(np.int64) * size + pairs.targets)
    rows, targets = np.divmod(keys, size)
    return Pairs(rows, targets.astype(space.dtype))


def _connected(operator: Expand, frame: Frame, legs: list[Leg], space: Space) -> Pairs:
    """Rows whose two bound ends are neighbours, by binary search in the neighbour lists."""
    near, far = frame.entities[operator.source], frame.entities[operator.node.var]
    wanted = far.space.moved(far.numbers, space)
    found = np.zeros(frame.rows, bool)
    for leg in legs:
        base, target = near.space.base(leg.near.name), space.base(leg.far.name)
        if base is None or target is None:
            continue
        here, there = near.numbers - base, wanted - target
        inside = (here >= 0) & (here < leg.near.numbering.size)
        inside &= (there >= 0) & (there < leg.far.numbering.size)
        rows = np.flatnonzero(inside & ~found)
        found[rows] = are_neighbours(leg.neighbours(), here[rows], there[rows])
    rows = np.flatnonzero(found)
    return Pairs(rows, wanted[rows])


def _many_hops(
    operator: Expand, near: Entities, legs: list[Leg], space: Space, run: Run, probe: bool
) -> Pairs:
    traversal = operator.traversal
    names = [leg.near.name for leg in legs] + [leg.far.name for leg in legs]
    walked = run.space(dict.fromkeys((*near.space.types, *names)))
    starts = near.space.moved(near.numbers, walked)
    once, back = np.unique(starts, return_inverse=True)
    first = int(np.searchsorted(once, 0))  # rows without a node start nowhere
    reached = walk(
        once[first:],
        walked,
        legs,
        traversal.min_hops,
        traversal.max_hops,
        run.bounds,
        probe=probe,
        backwards=operator.reverse,
    )
    targets = walked.moved(reached.nodes, space)
    kept = targets >= 0
    order = np.argsort(reached.sources[kept], kind="stable")
    sources = reached.sources[kept][order]
    offsets = np.searchsorted(sources, np.arange(len(once) - first + 1))
    lists = Neighbours(offsets, targets[kept][order], reached.hops[kept][order])
    places = back - first
    rows = np.flatnonzero(places >= 0)
    counts = lists.counts(places[rows])
    at = lists.places(places[rows], counts)
    assert lists.edges is not None
    return Pairs(np.repeat(rows, counts), lists.targets.take(at), hops=lists.edges.take(at))


def acceptable(node: NodeVar, space: Space, numbers: Array, run: Run) -> Array:
    """Marks of the numbers that satisfy what is said of a variable alone."""
    kept = numbers >= 0
    if space.is_single and bool(kept.all()):
        return _accepted(node, numbers, space.views[0], run)
    for view, base in zip(space.views, space.bases, strict=True):
        local = numbers - base if base else numbers
        inside = (local >= 0) & (local < view.numbering.size)
        rows = np.flatnonzero(inside & kept)
        kept[rows] &= _accepted(node, local[rows], view, run)
    return kept


def _accepted(node: NodeVar, numbers: Array, view: TypeView, run: Run) -> Array:
    if node.key is not None:
        allowed = tested(view, node.var, keyed(view, node.key, run), node.predicates, run)
        return numbers == allowed[0] if len(allowed) == 1 else np.isin(numbers, allowed)
    if not node.predicates:
        return np.ones(len(numbers), bool)
    if len(numbers) * _WHOLE_SHARE >= view.numbering.size:
        found: Array = marked(view, node.var, node.predicates, run).take(numbers)
        return found
    once, back = distinct(numbers)
    allowed = np.zeros(len(once), bool)
    passing = tested(view, node.var, once, node.predicates, run)
    allowed[places_of(once, passing)] = True
    return allowed if back is None else allowed[back]


def _edges_hold(operator: Expand, space: Space, pairs: Pairs, run: Run) -> Array:
    assert operator.traversal.edge_var is not None
    assert pairs.edges is not None
    return edges_hold(
        operator.traversal.edge_var, operator.edge_predicates, space, pairs.edges, run
    )


def edges_hold(
    var: str, predicates: tuple[Expr, ...], space: Space, edges: Array, run: Run
) -> Array:
    """Marks of the edges that satisfy what is said of an edge variable alone."""
    return acceptable(NodeVar(var, space.types, predicates), space, edges, run)
