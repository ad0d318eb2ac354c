"""Comparisons and membership over Arrow arrays, exact across number types.

Guarantees: null on either side gives null; whole numbers of any width, floats, dates and times
compare by value, never by a rounded copy of it.
Deliberately absent: expressions; these functions see values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from omnigraph.ir.expr import CompareOp
from omnigraph.model.types import Kind, ValueType
from omnigraph.rows.coercion import Fitted, fit, fit_options, mirrored

__all__ = ["in_constants", "in_lists", "mirrored", "one_zero", "to_column", "to_constant"]

Values = Any  # pa.Array or pa.Scalar

_KERNELS: dict[CompareOp, Callable[[Any, Any], Any]] = {
    CompareOp.EQ: pc.equal,
    CompareOp.NE: pc.not_equal,
    CompareOp.LT: pc.less,
    CompareOp.LE: pc.less_equal,
    CompareOp.GT: pc.greater,
    CompareOp.GE: pc.greater_equal,
}
# Wide enough for every 64-bit whole number, signed or not.
_EXACT = pa.decimal128(20, 0)


def to_constant(op: CompareOp, values: Values, type_: ValueType, value: Any) -> Values:
    """`values op value` for a constant."""
    if value is None:
        return pa.scalar(None, pa.bool_())
    question = fit(op, type_.kind, value)
    if isinstance(question, Fitted):
        return _KERNELS[question.op](values, pa.scalar(question.value, values.type))
    return pc.if_else(pc.is_valid(values), question, pa.scalar(None, pa.bool_()))


def to_column(op: CompareOp, left: Values, right: Values) -> Values:
    """`left op right` row by row."""
    if left.type == right.type:
        return _KERNELS[op](left, right)
    if _is_wide(left.type) and pa.types.is_floating(right.type):
        return _wide_to_float(op, left, right)
    if _is_wide(right.type) and pa.types.is_floating(left.type):
        return _wide_to_float(mirrored(op), right, left)
    exact = _EXACT if _is_wide(left.type) or _is_wide(right.type) else _common(left, right)
    return _KERNELS[op](left.cast(exact), right.cast(exact))


def _common(left: Values, right: Values) -> Any:
    """Of two different types without wide whole numbers, one that holds both."""
    if pa.types.is_floating(left.type) or pa.types.is_floating(right.type):
        return pa.float64()
    return pa.int64() if pa.types.is_integer(left.type) else left.type


def _is_wide(type_: Any) -> bool:
    """Whole numbers that a double cannot hold."""
    return bool(pa.types.is_integer(type_) and type_.bit_width == 64)


def _wide_to_float(op: CompareOp, whole: Values, floats: Values) -> Values:
    """Compare with the float's whole part first, then with what is left of it."""
    rows = max(len(v) for v in (whole, floats) if isinstance(v, pa.Array))
    whole, floats = _spread(whole, rows), _spread(floats, rows)
    known = pc.and_(pc.is_valid(whole), pc.is_valid(floats))
    numbers = whole.fill_null(0).to_numpy(zero_copy_only=False)
    values = floats.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
    signs = _signs(numbers, values)
    tests = {
        CompareOp.EQ: signs == 0,
        CompareOp.NE: signs != 0,
        CompareOp.LT: signs < 0,
        CompareOp.LE: signs <= 0,
        CompareOp.GT: signs > 0,
        CompareOp.GE: signs >= 0,
    }
    return pc.if_else(known, pa.array(tests[op]), pa.scalar(None, pa.bool_()))


def _signs(numbers: NDArray[Any], values: NDArray[Any]) -> NDArray[Any]:
    """The sign of `numbers - values`, exactly; NaN where a value is none."""
    info = np.iinfo(numbers.dtype)
    floor = np.floor(values)
    above, below = floor >= float(info.max), floor < float(info.min)
    inside = ~(above | below | np.isnan(values))
    whole = np.where(inside, floor, 0.0).astype(numbers.dtype)
    signs = (numbers > whole).astype(np.float64) - (numbers < whole)
    signs = np.where((signs == 0) & (values > floor), -1.0, signs)
    signs = np.where(above, -1.0, np.where(below, 1.0, signs))
    return np.where(np.isnan(values), np.nan, signs)


def in_constants(values: Values, type_: ValueType, options: Sequence[Any] | None) -> Values:
    """Whether each value is one of a few constants."""
    if options is None:
        return pa.scalar(None, pa.bool_())
    wanted = one_zero(pa.array(fit_options(type_.kind, options), values.type))
    found = pc.is_in(one_zero(values), value_set=wanted)
    unknown = pa.scalar(None, pa.bool_())
    if any(option is None for option in options):
        found = pc.if_else(found, True, unknown)
    return pc.if_else(pc.is_valid(values), found, unknown)


def one_zero(values: Values) -> Values:
    """Kernels that hash floats tell -0.0 from 0.0; the sum turns the one into the other."""
    if not pa.types.is_floating(values.type):
        return values
    return pc.add(values, pa.scalar(0.0, values.type))


def in_lists(lists: Values, type_: ValueType, items: Values, rows: int) -> Values:
    """Whether each row's list holds that row's item."""
    lists, items = _spread(lists, rows), _spread(items, rows)
    parents = pc.list_parent_indices(lists)
    members = pc.list_flatten(lists)
    if type_.item is not None and pa.types.is_null(members.type):
        members = members.cast(ValueType(type_.item).to_arrow())
    equal = to_column(CompareOp.EQ, members, items.take(parents)).fill_null(False)
    held = np.zeros(rows, bool)
    held[parents.to_numpy()[equal.to_numpy(zero_copy_only=False)]] = True
    known = pc.and_(pc.is_valid(lists), pc.is_valid(items))
    return pc.if_else(known, pa.array(held), pa.scalar(None, pa.bool_()))


def _spread(values: Values, rows: int) -> pa.Array:
    return pa.repeat(values, rows) if isinstance(values, pa.Scalar) else values


def is_exact(kind: Kind) -> bool:
    """Whether storage compares this kind as these functions do, also at the odd values.

    Storage orders floats totally: there, -0.0 is less than 0.0 and NaN is larger than all.
    """
    return kind not in (Kind.F32, Kind.F64)
