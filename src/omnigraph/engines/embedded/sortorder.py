"""Total order: sort keys, then ids; and the first rows of it without sorting the rest.

Guarantees: nulls first ascending and last descending; rows that are equal in everything that the
order looks at keep their order.
Deliberately absent: what breaks ties; the plan lists those names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from omnigraph.engines.embedded.frame import Frame, stack
from omnigraph.engines.embedded.frameexpr import column
from omnigraph.engines.embedded.ranks import (
    Codes,
    codes_of,
    codes_of_entities,
    rank_values,
    single_codes,
)
from omnigraph.engines.embedded.rownumbers import Array
from omnigraph.engines.embedded.run import Run
from omnigraph.engines.expressions.evaluate import bounds_of
from omnigraph.ir.expr import Entity, ValueRef
from omnigraph.ir.query import OrderKey
from omnigraph.plan.operators import Limit, Sort, TopK

# Looking for candidates first pays when the frame is this many times longer than what is kept.
_WORTH_CUTTING = 4


def sort(operator: Sort, frame: Frame, run: Run) -> Frame:
    """All rows in order."""
    if frame.rows < 2:
        return frame
    order = _order(operator.keys, operator.ties, frame, run)
    return frame if order is None else frame.take(order)


def top_k(operator: TopK, parts: Iterator[Frame], run: Run) -> Frame:
    """The first rows of the order, after those that are skipped."""
    skipped, wanted = bounds_of(operator.offset, operator.limit, run)
    assert wanted is not None
    kept = skipped + wanted
    best = first_rows(operator, next(parts), kept, run)
    for part in parts:
        both = stack([best, first_rows(operator, part, kept, run)])
        best = first_rows(operator, both, kept, run)
    return best.cut(skipped, wanted)


def first_rows(operator: Sort | TopK, frame: Frame, kept: int, run: Run) -> Frame:
    """The first so many rows of an order, in order."""
    if kept == 0:
        return frame.cut(0, 0)
    if frame.rows > kept * _WORTH_CUTTING:
        frame = _candidates(operator, frame, kept, run)
    order = _order(operator.keys, operator.ties, frame, run)
    return frame.cut(0, kept) if order is None else frame.take(order[:kept])


def limit(operator: Limit, frame: Frame, run: Run) -> Frame:
    skipped, wanted = bounds_of(operator.offset, operator.limit, run)
    return frame.cut(skipped, frame.rows if wanted is None else wanted)


def _candidates(operator: Sort | TopK, frame: Frame, kept: int, run: Run) -> Frame:
    """The rows that could be among the first, by the most significant key alone."""
    first = _comparable(operator.keys[0], frame, run) if operator.keys else None
    if first is None:
        codes = next(_all_keys(operator.keys, operator.ties, frame, run), None)
        if codes is None:
            return frame
        first = codes.codes
    bar = np.partition(first, kept - 1)[kept - 1]
    return frame.take(np.flatnonzero(first <= bar))


def _comparable(key: OrderKey, frame: Frame, run: Run) -> Array | None:
    """A key's values as numbers that ascend with it, if they are numbers and all there."""
    if not isinstance(key.expr, ValueRef):
        return None
    values = column(key.expr, frame, run)
    if values.null_count or not pa.types.is_integer(values.type):
        return None
    numbers: Array = values.to_numpy()
    # Turning the bits around reverses the order, for signed and unsigned numbers alike.
    return ~numbers if key.descending else numbers


def _order(keys: Sequence[OrderKey], ties: Sequence[str], frame: Frame, run: Run) -> Array | None:
    """The rows in order; None when they are in order already."""
    parts = list(_all_keys(keys, ties, frame, run))
    if not parts:
        return None
    run.bounds.check()
    whole = single_codes(parts)
    if whole is None:
        columns = [part.codes for part in reversed(parts)]
        return run.bounds.wait(lambda: np.lexsort(columns), len(parts) * frame.rows)
    if bool(np.all(whole.codes[1:] >= whole.codes[:-1])):
        return None
    return run.bounds.wait(lambda: np.argsort(whole.codes, kind="stable"), frame.rows)


def _all_keys(
    keys: Sequence[OrderKey], ties: Sequence[str], frame: Frame, run: Run
) -> Iterator[Codes]:
    """Codes of every key, most significant first, descending ones turned around."""
    for key in keys:
        yield _key(key, frame, run)
    for name in ties:
        yield _tie(name, frame, run)


def _key(key: OrderKey, frame: Frame, run: Run) -> Codes:
    codes = (
        codes_of_entities(frame.entities[key.expr.var], run)
        if isinstance(key.expr, Entity)
        else codes_of(key.expr, frame, run)
    )
    if not key.descending:
        return codes
    # Turned around so that null, the smallest, comes last; codes stay within their range.
    return Codes(codes.size - 2 - codes.codes, codes.size)


def _tie(name: str, frame: Frame, run: Run) -> Codes:
    if name in frame.entities:
        return codes_of_entities(frame.entities[name], run)
    return rank_values(frame.values[name], run.bounds)
