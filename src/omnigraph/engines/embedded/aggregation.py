"""Groups, aggregates and distinct rows.

Guarantees: sums of integers are exact and rounded once, to F64; weights count as repeats; nulls
take part in no aggregate but form a group of their own
as a key; without keys there is exactly one group; groups come in the order of their first row.
Deliberately absent: the order of results; a sort follows where it can be seen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engines.embedded.frame import Entities, Frame
from omnigraph.engines.embedded.frameexpr import column
from omnigraph.engines.embedded.ranks import Codes, codes_of, rank_values, single_codes
from omnigraph.engines.embedded.reduction import sums_by_row
from omnigraph.engines.embedded.rownumbers import Array
from omnigraph.engines.embedded.run import Run
from omnigraph.ir.expr import Aggregate as AggregateExpr
from omnigraph.ir.expr import AggregateFn, Entity, Expr
from omnigraph.ir.query import Projection
from omnigraph.plan.operators import Aggregate

# A table of counts by code beats sorting while it is not much longer than the rows.
_SMALL_TABLE = 1 << 20
_EXACT_FLOATS = 1 << 53
_PIECE_BITS = 22


@dataclass(frozen=True, slots=True)
class Groups:
    """`of` has each row's group, `first` each group's first row."""

    of: Array
    first: Array

    @property
    def count(self) -> int:
        return len(self.first)


def aggregate(operator: Aggregate, frame: Frame, run: Run) -> Frame:
    """One row per group: its keys and its aggregates."""
    groups = groups_of(operator.keys, frame, run)
    representatives = frame.take(groups.first) if operator.keys else frame
    entities: dict[str, Entities] = {}
    values: dict[str, pa.Array] = {}
    for key in operator.keys:
        if isinstance(key.expr, Entity):
            entities[key.name] = representatives.entities[key.expr.var]
        else:
            values[key.name] = column(key.expr, representatives, run)
    for name, call in operator.aggregates:
        run.bounds.check()
        values[name] = _aggregated(call, frame, groups, run)
    return Frame(groups.count, entities, values)


def distinct(frame: Frame, run: Run) -> Frame:
    """Each combination of values once, at its first row."""
    parts = [_entity_codes(e) for e in frame.entities.values()]
    parts += [rank_values(v, run.bounds) for v in frame.values.values()]
    if not parts:
        return frame.cut(0, 1)
    return frame.take(_grouped(parts).first)


def groups_of(keys: Sequence[Projection], frame: Frame, run: Run) -> Groups:
    """Rows by equal keys; all in one group when there are no keys."""
    if not keys:
        return Groups(np.zeros(frame.rows, np.int64), np.zeros(1, np.int64))
    return _grouped([_key_codes(key.expr, frame, run) for key in keys])


def _key_codes(expr: Expr, frame: Frame, run: Run) -> Codes:
    if isinstance(expr, Entity):
        return _entity_codes(frame.entities[expr.var])
    return codes_of(expr, frame, run)


def _entity_codes(entities: Entities) -> Codes:
    """Nodes are distinguished by their numbers; their order does not matter here."""
    return Codes(entities.numbers, entities.space.size)


def _grouped(parts: list[Codes]) -> Groups:
    whole = single_codes(parts) if len(parts) > 1 else Codes(parts[0].codes + 1, parts[0].size + 1)
    if whole is None:
        rows = np.stack([part.codes for part in parts])
        _, first, of = np.unique(rows, axis=1, return_index=True, return_inverse=True)
        return Groups(of.reshape(-1), first)
    if whole.size <= 4 * len(whole.codes) + _SMALL_TABLE:
        return _by_table(whole)
    _, first, of = np.unique(whole.codes, return_index=True, return_inverse=True)
    return Groups(of, first)


def _by_table(codes: Codes) -> Groups:
    rows = len(codes.codes)
    first = np.full(codes.size, rows, np.int64)
    # Written backwards, so that the first row of each code is the one that stays.
    first[codes.codes[::-1]] = np.arange(rows - 1, -1, -1)
    present = first < rows
    place = np.cumsum(present) - 1
    return Groups(place.take(codes.codes), first[present])


# Aggregates


def _aggregated(call: AggregateExpr, frame: Frame, groups: Groups, run: Run) -> pa.Array:
    if call.fn is AggregateFn.COUNT:
        return pa.array(_count(call, frame, groups, run))
    assert call.arg is not None
    values = column(call.arg, frame, run)
    rows = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
    if call.distinct:
        rows = _first_of_each(values, rows, groups, run)
    weight = None if frame.weight is None or call.distinct else frame.weight[rows]
    part = Part(values.take(pa.array(rows)), groups.of[rows], weight, groups.count)
    return _FOLDS[call.fn](part).cast(call.type.to_arrow())


def _count(call: AggregateExpr, frame: Frame, groups: Groups, run: Run) -> Array:
    if call.arg is None:
        return sums_by_row(groups.of, frame.weight, groups.count)
    if isinstance(call.arg, Entity):
        entities = frame.entities[call.arg.var]
        rows = np.flatnonzero(entities.numbers >= 0)
        codes = _entity_codes(entities)
    else:
        values = column(call.arg, frame, run)
        rows = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
        codes = rank_values(values, run.bounds) if call.distinct else Codes(groups.of, 0)
    if call.distinct:
        rows = _first_pairs(codes, rows, groups)
    weight = None if frame.weight is None or call.distinct else frame.weight[rows]
    return sums_by_row(groups.of[rows], weight, groups.count)


def _first_of_each(values: pa.Array, rows: Array, groups: Groups, run: Run) -> Array:
    return _first_pairs(rank_values(values, run.bounds), rows, groups)


def _first_pairs(codes: Codes, rows: Array, groups: Groups) -> Array:
    """Of these rows, the first for each (group, value), in row order."""
    pairs = [Codes(groups.of[rows], groups.count), Codes(codes.codes[rows], codes.size)]
    return rows[np.sort(_grouped(pairs).first)] if len(rows) else rows


@dataclass(frozen=True, slots=True)
class Part:
    """The values that an aggregate sees: not null, with their groups and weights."""

    values: pa.Array
    of: Array
    weight: Array | None
    count: int

    def seen(self) -> Array:
        return np.bincount(self.of, minlength=self.count)

    def sums(self) -> pa.Array:
        if pa.types.is_integer(self.values.type) and not self._fits_float():
            return pa.array(_exact_sums(self), pa.float64(), mask=self.seen() == 0)
        numbers: Array = self.values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        if self.weight is not None:
            numbers = numbers * self.weight
        total = np.bincount(self.of, weights=numbers, minlength=self.count)
        return pa.array(total, mask=self.seen() == 0)

    def _fits_float(self) -> bool:
        """Whether every partial sum of these integers is below 2**53, where floats are exact."""
        if not len(self.values):
            return True
        ends = pc.min_max(self.values)
        largest = max(abs(ends["min"].as_py()), abs(ends["max"].as_py()))
        heaviest = 1 if self.weight is None else int(self.weight.max())
        return bool(largest * heaviest * len(self.values) < _EXACT_FLOATS)


def _exact_sums(part: Part) -> list[float]:
    """Sums of integers by group, in 22-bit pieces, whose sums as floats are exact."""
    if part.weight is not None:
        return _weighed_sums(part)
    numbers: Array = part.values.to_numpy(zero_copy_only=False)
    mask = numbers.dtype.type((1 << _PIECE_BITS) - 1)
    low, middle = numbers & mask, (numbers >> numbers.dtype.type(_PIECE_BITS)) & mask
    high = numbers >> numbers.dtype.type(2 * _PIECE_BITS)
    pieces = [
        np.bincount(part.of, weights=each.astype(np.float64), minlength=part.count)
        for each in (low, middle, high)
    ]
    return [
        float((int(c) << 2 * _PIECE_BITS) + (int(b) << _PIECE_BITS) + int(a))
        for a, b, c in zip(*pieces, strict=True)
    ]


def _weighed_sums(part: Part) -> list[float]:
    total = [0] * part.count
    assert part.weight is not None
    rows = zip(part.of.tolist(), part.values.to_pylist(), part.weight.tolist(), strict=True)
    for group, value, weight in rows:
        total[group] += value * weight
    return [float(each) for each in total]


def average_of(part: Part, rows: Array) -> pa.Array:
    """Sums over numbers of rows."""
    total = part.sums().fill_null(0.0).to_numpy(zero_copy_only=False)
    with np.errstate(invalid="ignore"):
        return pa.array(total / rows, mask=rows == 0)


def _average(part: Part) -> pa.Array:
    weighed = part.weight is not None
    return average_of(
        part, sums_by_row(part.of, part.weight, part.count) if weighed else part.seen()
    )


def extreme_of(part: Part, which: AggregateFn) -> pa.Array:
    """The least or greatest value of each group."""
    table = pa.table({"g": pa.array(part.of), "v": part.values})
    found = pa.TableGroupBy(table, "g").aggregate([("v", which.value)])
    places = np.full(part.count, -1, np.int64)
    places[found.column("g").to_numpy()] = np.arange(found.num_rows)
    values = found.column(f"v_{which.value}").combine_chunks()
    return values.take(pa.array(places, mask=places < 0))


def _collect(part: Part) -> pa.Array:
    order = np.argsort(part.of, kind="stable")
    offsets = np.zeros(part.count + 1, np.int32)
    np.cumsum(part.seen(), out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), part.values.take(pa.array(order)))


_FOLDS: dict[AggregateFn, Callable[[Part], pa.Array]] = {
    AggregateFn.SUM: Part.sums,
    AggregateFn.AVG: _average,
    AggregateFn.MIN: lambda part: extreme_of(part, AggregateFn.MIN),
    AggregateFn.MAX: lambda part: extreme_of(part, AggregateFn.MAX),
    AggregateFn.COLLECT: _collect,
}
