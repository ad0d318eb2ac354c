"""Counts of pattern branches: the number of matches at each node, without listing them.

A branch is a tree that hangs on its anchor. Weights come up from its leaves: a node's weight is the
product, over its branches, of the sum of the weights of its neighbours. For many anchors that is
one pass over an edge type's adjacency; for a few it only visits what they reach.

Guarantees: exact whole numbers; the same counts as listing all matches would give.
Deliberately absent: branches of several hops; the plan lists those.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from omnigraph.engines.embedded.catalog_view import Space
from omnigraph.engines.embedded.edgefilter import legs_of
from omnigraph.engines.embedded.expansion import acceptable, edges_hold, one_hop
from omnigraph.engines.embedded.frame import Entities, Frame
from omnigraph.engines.embedded.neighbours import Leg
from omnigraph.engines.embedded.rownumbers import Array, distinct, pick
from omnigraph.engines.embedded.run import Run
from omnigraph.engines.embedded.scans import scan
from omnigraph.errors import LimitExceededError
from omnigraph.plan.operators import Access, Branch, Reduce, Reduction

# One pass over all neighbour lists pays from this share of the nodes on.
_WHOLE_SHARE = 8
_LARGEST = 2**62
_CHUNK = 1 << 16
_ENTRIES_AT_ONCE = 1 << 18


def reduce_rows(operator: Reduce, frame: Frame, run: Run) -> Frame:
    """Keep or weigh the rows of a frame by a branch."""
    branch = operator.branch
    anchor = frame.entities[branch.anchor]
    counts = matches(branch, anchor, run)
    match branch.how:
        case Reduction.EXISTS:
            return frame.where(counts > 0)
        case Reduction.ABSENT:
            return frame.where(counts == 0)
        case Reduction.COUNT:
            if frame.weight is not None:
                check_product(frame.weight, counts)
            return frame.weighted(counts)


def matches(branch: Branch, anchor: Entities, run: Run) -> Array:
    """By row: the number of matches of the branch at the anchor node; 0 for `NOBODY`."""
    space, numbers = anchor.space, anchor.numbers
    if len(numbers) * _WHOLE_SHARE >= space.size:
        whole = _for_all(branch, space, run)
        return whole if anchor.whole else pick(whole, numbers, 0)
    once, back = distinct(numbers)
    counts = _for_some(branch, Entities(space, once), run)
    return counts if back is None else counts.take(back)


# All nodes of a space at once


def _for_all(branch: Branch, space: Space, run: Run) -> Array:
    """By number of the space."""
    legs = legs_of(branch.traversal.steps, run, reverse=branch.reverse)
    far = run.space(branch.node.types)
    if len(legs) > 1:
        return _listed(branch, Entities(space, np.arange(space.size, dtype=space.dtype)), run)
    total = np.zeros(space.size, np.int64)
    for leg in legs:
        base, start = space.base(leg.near.name), far.base(leg.far.name)
        if base is None or start is None:
            continue
        weights = _weights(branch, far, run)
        if weights is not None and not far.is_single:
            weights = weights[start : start + leg.far.numbering.size]
        counts = _sums(branch, leg, weights, run)
        if space.is_single:
            return counts
        total[base : base + leg.near.numbering.size] = counts
    return total


def _weights(branch: Branch, far: Space, run: Run) -> Array | None:
    """By number of the far space: marks or weights; None when every node counts once."""
    found: Array | None = None
    if branch.node.predicates or branch.node.key is not None:
        found = np.zeros(far.size, bool)
        found[scan(branch.node, Access.SCAN, run).numbers] = True
    for child in branch.children:
        counts = _for_all(child, far, run)
        factor = counts if child.how is Reduction.COUNT else _as_marks(child, counts)
        found = factor if found is None else _product(found, factor)
    return found


def _as_marks(branch: Branch, counts: Array) -> Array:
    marks: Array = counts == 0 if branch.how is Reduction.ABSENT else counts > 0
    return marks


def _product(left: Array, right: Array) -> Array:
    if left.dtype == bool and right.dtype == bool:
        return left & right
    check_product(left, right)
    return left.astype(np.int64) * right


def _sums(branch: Branch, leg: Leg, weights: Array | None, run: Run) -> Array:
    """By number of the near type: the sum of the weights of its neighbours."""
    by_edge = branch.traversal.edge_var is not None
    if by_edge and branch.edge_predicates:
        return _sums_over_edges(branch, leg, weights, run)
    if weights is None:
        return leg.neighbours(by_edge).degrees
    if weights.dtype == bool and _is_sparse(weights, leg):
        return _spread(leg.turned(), np.flatnonzero(weights), by_edge, leg.near.numbering.size)
    lists = leg.neighbours(by_edge)
    run.bounds.scan(len(lists.targets))
    return run.bounds.wait(
        lambda: segment_sums(
            lambda part: weights.take(lists.targets[part], mode="clip"), lists.offsets
        ),
        len(lists.targets),
    )


def _is_sparse(marks: Array, leg: Leg) -> bool:
    return int(np.count_nonzero(marks)) * 4 < leg.far.numbering.size


def _spread(back: Leg, numbers: Array, by_edge: bool, size: int) -> Array:
    """Count, at the other end, how often each node is a neighbour of these."""
    found = back.expand(numbers, by_edge=by_edge, probe=False)
    return np.bincount(found.targets, minlength=size)


def _sums_over_edges(branch: Branch, leg: Leg, weights: Array | None, run: Run) -> Array:
    lists = leg.neighbours(by_edge=True)
    assert lists.edges is not None
    assert branch.traversal.edge_var is not None
    space = run.space([leg.edge.name], edges=True)
    every = np.arange(space.size, dtype=space.dtype)
    marks = edges_hold(branch.traversal.edge_var, branch.edge_predicates, space, every, run)
    edges, targets = lists.edges, lists.targets

    def values(part: slice) -> Array:
        held: Array = marks.take(edges[part])
        return held if weights is None else _product(held, weights.take(targets[part]))

    return segment_sums(values, lists.offsets)


def segment_sums(values: Callable[[slice], Array], offsets: Array) -> Array:
    """The sum of the values of each neighbour list. `values` gives those of some entries, so that
    there are never more of them at once than the processor's caches hold."""
    entries = int(offsets[-1])
    before = np.zeros(len(offsets), np.int64)  # by list: the sum of all lists before it
    total, done = np.int64(0), 0
    for start in range(0, entries, _ENTRIES_AT_ONCE):
        stop = min(start + _ENTRIES_AT_ONCE, entries)
        running = _running_sums(values(slice(start, stop)))
        last = int(np.searchsorted(offsets, stop, side="right"))
        before[done:last] = running.take(offsets[done:last] - start)
        before[done:last] += total
        total, done = total + running[-1], last
    return np.diff(before)


def _running_sums(values: Array) -> Array:
    """By place: the sum of all values before it; the last is the sum of all."""
    marks = values.dtype == bool
    # Sums of marks fit 32 bits, which halves the memory that is walked over.
    running = np.zeros(len(values) + 1, np.int32 if marks else np.int64)
    np.cumsum(values.view(np.uint8) if marks else values, dtype=running.dtype, out=running[1:])
    return running


# A few nodes


def _for_some(branch: Branch, anchors: Entities, run: Run) -> Array:
    """By row: the same for a few nodes, visiting only what they reach."""
    legs = legs_of(branch.traversal.steps, run, reverse=branch.reverse)
    by_edge = branch.traversal.edge_var is not None
    far = run.space(branch.node.types)
    pairs = one_hop(anchors, legs, far, run, by_edge=by_edge, probe=True)
    pairs = pairs.where(acceptable(branch.node, far, pairs.targets, run))
    if branch.edge_predicates and pairs.edges is not None and branch.traversal.edge_var:
        space = run.space(dict.fromkeys(s.edge for s in branch.traversal.steps), edges=True)
        var = branch.traversal.edge_var
        pairs = pairs.where(edges_hold(var, branch.edge_predicates, space, pairs.edges, run))
    weights: Array | None = None
    for child in branch.children:
        counts = matches(child, Entities(far, pairs.targets), run)
        factor = counts if child.how is Reduction.COUNT else _as_marks(child, counts)
        weights = factor if weights is None else _product(weights, factor)
        # What this child leaves out, the next one need not look at.
        kept = weights > 0
        pairs, weights = pairs.where(kept), weights[kept]
    return sums_by_row(pairs.rows, weights, len(anchors.numbers))


def sums_by_row(rows: Array, weights: Array | None, size: int) -> Array:
    """Whole-number sums of weights by row."""
    if weights is None:
        return np.bincount(rows, minlength=size)
    if weights.dtype == bool:
        return np.bincount(rows[weights], minlength=size)
    total = np.zeros(size, np.int64)
    np.add.at(total, rows, weights)
    return total


def _listed(branch: Branch, anchors: Entities, run: Run) -> Array:
    """Count pair by pair, where several edge types can lead to the same neighbour."""
    parts = [
        _for_some(branch, Entities(anchors.space, anchors.numbers[first : first + _CHUNK]), run)
        for first in range(0, len(anchors.numbers), _CHUNK)
    ]
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def check_product(left: Array, right: Array) -> None:
    """Refuse counts beyond 64 bits instead of wrapping around."""
    if not len(left) or not len(right):
        return
    largest = int(left.max()) * int(right.max()) * max(len(left), 1)
    if largest > _LARGEST and float(np.dot(left.astype(float), right.astype(float))) > _LARGEST:
        raise LimitExceededError(
            "The number of matches exceeds 64 bits.",
            resource="matches",
            limit=_LARGEST,
        )
