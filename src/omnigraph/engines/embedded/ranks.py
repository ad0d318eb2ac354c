"""Values as whole numbers that sort and group like the values themselves.

The code of a value is its rank among the distinct values; null is -1, which puts it before
everything, as the language wants it. Codes of whole columns are kept per numbering, so that
grouping and sorting by a property is grouping and sorting by integers.

Guarantees: equal values have equal codes and smaller values smaller ones; NaN is larger than any
number; texts compare by code points, lists item by item.
Deliberately absent: descending order. Callers negate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engines.embedded.bounds import Bounds
from omnigraph.engines.embedded.frame import Entities, Frame
from omnigraph.engines.embedded.frameexpr import column
from omnigraph.engines.embedded.nodeobjects import property_values
from omnigraph.engines.embedded.rownumbers import Array, pick
from omnigraph.engines.embedded.run import Run
from omnigraph.engines.expressions.comparisons import one_zero
from omnigraph.ir.expr import Expr, Property
from omnigraph.model.catalog import ID_COLUMN

# Coding a whole column pays from this share of its rows on, and then it is there for later.
_WHOLE_SHARE = 8
# How many values tell whether a column repeats itself.
_SAMPLE = 1024


@dataclass(frozen=True, slots=True)
class Codes:
    """`codes` by row, from -1 to `size` - 1."""

    codes: Array
    size: int

    @property
    def nbytes(self) -> int:
        return int(self.codes.nbytes)

    def take(self, rows: Array) -> Codes:
        return Codes(self.codes.take(rows), self.size)


def codes_of(expr: Expr, frame: Frame, run: Run) -> Codes:
    """The codes of an expression's values."""
    if isinstance(expr, Property):
        entities = frame.entities[expr.var]
        if entities.space.is_single:
            found = _of_property(entities, expr.name, run)
            if found is not None:
                return found
    return rank_values(column(expr, frame, run), run.bounds)


def _of_property(entities: Entities, name: str, run: Run) -> Codes | None:
    """By the codes of the whole column, if those are held or soon pay for themselves."""
    (view,) = entities.space.views
    physical = view.physical(name)
    if physical is None or not view.resident.has(physical[0]):
        return None
    key = (view.arrays.label, "codes", physical[0])
    whole: Codes | None = run.cache.peek(key)
    if whole is None:
        many = len(entities.numbers) * _WHOLE_SHARE >= view.numbering.size
        values = view.column(name) if many else None
        if values is None:
            return None
        whole = run.cache.get(key, lambda: rank_values(values, run.bounds), lambda c: c.nbytes)
    if entities.whole:
        return whole
    return Codes(pick(whole.codes, entities.numbers, -1), whole.size)


def codes_of_entities(entities: Entities, run: Run) -> Codes:
    """Bound nodes or edges by the order of their ids, then by the order of their types."""
    space, numbers = entities.space, entities.numbers
    if space.is_single:
        (view,) = space.views
        many = len(numbers) * _WHOLE_SHARE >= view.numbering.size
        if many or view.arrays.is_ordered:
            if view.numbering.size == 0:
                return Codes(np.full(len(numbers), -1, np.int64), 0)
            rank = view.arrays.id_rank()
            return Codes(pick(rank, numbers, -1), len(rank))
    ranks = rank_values(property_values(entities, ID_COLUMN, pa.string()), run.bounds)
    if space.is_single:
        return ranks
    places = space.places(numbers)
    width = len(space.views)
    mixed = np.where(numbers < 0, -1, ranks.codes.astype(np.int64) * width + places)
    return Codes(mixed, ranks.size * width)


def rank_values(values: Any, bounds: Bounds) -> Codes:
    """The rank of each value among the distinct ones; -1 for null."""
    return bounds.wait(lambda: _ranked(values), len(values))


def _ranked(values: pa.Array) -> Codes:
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if _is_list(values.type):
        values = _lists_as_bytes(values)
    values = one_zero(values)
    if _is_numeric(values.type) and values.null_count == 0:
        distinct, codes = np.unique(_numbers(values), return_inverse=True)
        return Codes(codes, len(distinct))
    if values.null_count == 0 and _hardly_repeats(values):
        places = pc.rank(values, "ascending", tiebreaker="dense").to_numpy()
        return Codes(places.astype(np.int64) - 1, int(places.max()))
    encoded = pc.dictionary_encode(values)
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    rank = np.empty(len(order) + 1, np.int64)
    rank[order] = np.arange(len(order))
    rank[-1] = -1
    places = encoded.indices.fill_null(len(order)).to_numpy(zero_copy_only=False)
    return Codes(rank.take(places), len(order))


def _hardly_repeats(values: pa.Array) -> bool:
    """Whether a dictionary of these would hold most of them again: judged by a few, spread out,
    and only for texts, whose order both ways of ranking agree on."""
    if len(values) < _SAMPLE or not pa.types.is_string(values.type):
        return False
    few = values.take(np.linspace(0, len(values) - 1, _SAMPLE).astype(np.int64))
    return len(pc.unique(few)) > 0.9 * _SAMPLE


def _is_numeric(type_: Any) -> bool:
    return bool(
        pa.types.is_integer(type_)
        or pa.types.is_floating(type_)
        or pa.types.is_timestamp(type_)
        or pa.types.is_date(type_)
    )


def _numbers(values: pa.Array) -> Array:
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    elif pa.types.is_date(values.type):
        values = values.cast(pa.int32())
    found: Array = values.to_numpy(zero_copy_only=False)
    return found


def _is_list(type_: Any) -> bool:
    return bool(pa.types.is_list(type_) or pa.types.is_fixed_size_list(type_))


def _lists_as_bytes(lists: pa.Array) -> pa.Array:
    """A text of bytes for each list: its items' codes, which compare as the lists do."""
    # Arrow neither hashes nor sorts lists. A list that begins another comes before it.
    items = (_ranked(lists.flatten()).codes + 1).astype(">u4")
    lengths = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)
    offsets = np.zeros(len(lists) + 1, np.int64)
    np.cumsum(lengths * items.itemsize, out=offsets[1:])
    held = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(lists), [None, pa.py_buffer(offsets), pa.py_buffer(items)]
    )
    return pc.if_else(lists.is_valid(), held, None)


def single_codes(parts: list[Codes]) -> Codes | None:
    """Several codes as one, most significant first, if that fits 62 bits."""
    size = 1
    for part in parts:
        size *= part.size + 1
    if size >= 2**62:
        return None
    mixed = np.zeros(len(parts[0].codes), np.int64)
    for part in parts:
        mixed = mixed * (part.size + 1) + (part.codes + 1)
    return Codes(mixed, size)
