"""Joins of frames: by equal values, all pairs, and correlated plans inside others.

A correlated plan runs once over all rows of the outer frame, which carry their place along; what
comes back says which places matched.

Guarantees: null equals nothing; rows of the left side keep their order.
Deliberately absent: traversals; those are expansions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from omnigraph.engines.embedded.adjacency import Neighbours
from omnigraph.engines.embedded.frame import Entities, Frame, nobody, stack
from omnigraph.engines.embedded.frameexpr import column
from omnigraph.engines.embedded.ranks import Codes, rank_values, single_codes
from omnigraph.engines.embedded.rownumbers import Array
from omnigraph.engines.embedded.run import Run
from omnigraph.plan.operators import Exists, Join, Optional

_ROW = "#row"
# Outer rows per run of a correlated plan.
_CHUNK = 1 << 18
_PAIRS_AT_ONCE = 2_000_000

Inner = Callable[[Frame], Frame]


def parts_of(operator: Join, left: Frame, right: Frame) -> Iterator[Frame]:
    """Neighbouring rows of the left side, few enough that their pairs do not become too many."""
    step = max(1, _PAIRS_AT_ONCE // max(1, right.rows)) if not operator.keys else left.rows
    for first in range(0, max(1, left.rows), max(1, step)):
        yield left.cut(first, step)


def join(operator: Join, left: Frame, right: Frame, run: Run) -> Frame:
    """Pairs of rows with equal keys."""
    if not operator.keys:
        run.bounds.allocate(left.rows * right.rows * 16)
        rows = np.repeat(np.arange(left.rows), right.rows)
        others = np.tile(np.arange(right.rows), left.rows)
        return left.take(rows).beside(right.take(others))
    ours, theirs = _common_codes(operator, left, right, run)
    order = np.argsort(theirs, kind="stable")
    sorted_codes = theirs[order]
    first = np.searchsorted(sorted_codes, ours, side="left")
    counts = np.searchsorted(sorted_codes, ours, side="right") - first
    counts[ours < 0] = 0
    total = int(counts.sum())
    run.bounds.allocate(total * 32)
    run.bounds.scan(total)
    lists = Neighbours(np.concatenate([first, [0]]), order)
    places = lists.places(np.arange(left.rows), counts)
    return left.take(np.repeat(np.arange(left.rows), counts)).beside(right.take(order.take(places)))


def _common_codes(operator: Join, left: Frame, right: Frame, run: Run) -> tuple[Array, Array]:
    """Codes of both sides' keys over both sides' values; negative where a key is null."""
    parts: list[Codes] = []
    unknown = np.zeros(left.rows + right.rows, bool)
    for here, there in operator.keys:
        values = pa.concat_arrays([column(here, left, run), column(there, right, run)])
        codes = rank_values(values, run.bounds)
        unknown |= codes.codes < 0
        parts.append(codes)
    whole = single_codes(parts)
    if whole is None:
        _, mixed = np.unique(np.stack([p.codes for p in parts]), axis=1, return_inverse=True)
        whole = Codes(mixed.reshape(-1), len(mixed))
    codes_found = np.where(unknown, -1, whole.codes)
    return codes_found[: left.rows], codes_found[left.rows :]


def exists(operator: Exists, frame: Frame, inner: Inner, run: Run) -> Frame:
    """Rows for which the correlated plan finds something; or, negated, nothing."""
    matched = np.zeros(frame.rows, bool)
    for found in _correlated(frame, operator.shared, inner, run):
        matched[_rows_of(found)] = True
    return frame.where(~matched if operator.negated else matched)


def optional(operator: Optional, frame: Frame, inner: Inner, run: Run) -> Frame:
    """Rows extended by what the correlated plan finds, or by nulls."""
    parts: list[Frame] = []
    matched = np.zeros(frame.rows, bool)
    for found in _correlated(frame, operator.shared, inner, run):
        rows = _rows_of(found)
        matched[rows] = True
        parts.append(frame.take(rows).beside(_unweighted(found.only(operator.binds))))
    alone = frame.take(np.flatnonzero(~matched))
    parts.append(alone.beside(_nothing(parts[0].only(operator.binds), alone.rows)))
    return stack([_in_order(part, frame, operator) for part in parts])


def _correlated(frame: Frame, shared: tuple[str, ...], inner: Inner, run: Run) -> list[Frame]:
    """The correlated plan over chunks of the outer rows; at least once, to learn its shape."""
    outer = Frame(
        frame.rows,
        {n: e for n, e in frame.entities.items() if n in shared},
        {n: v for n, v in frame.values.items() if n in shared},
        frame.scores,
    )
    found: list[Frame] = []
    for first in range(0, max(1, frame.rows), _CHUNK):
        run.bounds.check()
        part = outer.cut(first, _CHUNK)
        places = pa.array(np.arange(first, first + part.rows))
        found.append(inner(part.bind_value(_ROW, places)))
    return found


def _rows_of(found: Frame) -> Array:
    rows: Array = found.values[_ROW].to_numpy(zero_copy_only=False)
    return rows


def _unweighted(found: Frame) -> Frame:
    return Frame(found.rows, found.entities, found.values)


def _nothing(shape: Frame, rows: int) -> Frame:
    return Frame(
        rows,
        {name: nobody(rows, e.space) for name, e in shape.entities.items()},
        {name: pa.nulls(rows, v.type) for name, v in shape.values.items()},
    )


def _in_order(part: Frame, frame: Frame, operator: Optional) -> Frame:
    """The same names in the same order, so that parts can be stacked."""
    names = [*frame.entities, *(n for n in operator.binds if n in part.entities)]
    values = [*frame.values, *(n for n in operator.binds if n in part.values)]
    entities: dict[str, Entities] = {name: part.entities[name] for name in names}
    return Frame(part.rows, entities, {n: part.values[n] for n in values}, part.scores, part.weight)
