"""Arithmetic of integers, exact for every type.

`+`, `-` and `*` give U64 where an operand is U64 and I64 otherwise; `%` gives U64 where its left
operand is U64. The checker decides that (`lang.gq.check.rules`); here a result is computed exactly
and then is in the type's range or has no value.

Guarantees: never a wrapped or rounded number. What has no value is null; where a value is about to
be written (`strict`), it is an error instead.
Deliberately absent: `/`, which is a division of floats.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import InvalidArgumentError
from omnigraph.ir.expr import ArithmeticOp

Values = Any  # pa.Array or pa.Scalar


def integer_arithmetic(
    op: ArithmeticOp, left: Values, right: Values, wanted: Any, *, strict: bool
) -> Values:
    """`left op right` for integers, in the type `wanted`."""
    try:
        return _KERNELS[op](left.cast(wanted), right.cast(wanted))
    except pa.ArrowInvalid:
        # An operand or a result leaves the type: compute each value as a Python integer.
        return _one_by_one(op, left, right, wanted, strict)


def absolute(values: Values, wanted: Any, *, strict: bool) -> Values:
    """`abs` of integers."""
    if pa.types.is_unsigned_integer(values.type):
        return values.cast(wanted)
    wide = values.cast(pa.int64())
    smallest = pa.scalar(np.iinfo(np.int64).min, pa.int64())
    beyond = pc.equal(wide, smallest)
    if strict and pc.any(beyond).as_py():
        raise _out_of_range(f"abs({smallest.as_py()})", -smallest.as_py(), wanted)
    return pc.abs(pc.if_else(beyond, pa.scalar(None, pa.int64()), wide)).cast(wanted)


def _one_by_one(op: ArithmeticOp, left: Values, right: Values, wanted: Any, strict: bool) -> Values:
    rows = max((len(v) for v in (left, right) if isinstance(v, pa.Array)), default=1)
    info = np.iinfo(wanted.to_pandas_dtype())
    found: list[int | None] = []
    for a, b in zip(_items(left, rows), _items(right, rows), strict=True):
        value = None if a is None or b is None else _EXACT[op](a, b)
        if value is not None and not info.min <= value <= info.max:
            if strict:
                raise _out_of_range(f"{a} {op} {b}", value, wanted)
            value = None
        found.append(value)
    array = pa.array(found, wanted)
    return array if isinstance(left, pa.Array) or isinstance(right, pa.Array) else array[0]


def _items(values: Values, rows: int) -> list[Any]:
    if isinstance(values, pa.Scalar):
        return [values.as_py()] * rows
    found: list[Any] = values.to_pylist()
    return found


def _remainder(left: Values, right: Values) -> Values:
    """The remainder of division towards zero; it has the sign of the left side."""
    zero = pa.scalar(0, right.type)
    known = pc.and_(pc.is_valid(left), pc.and_(pc.is_valid(right), pc.not_equal(right, zero)))
    divisor = pc.if_else(pc.equal(right, zero), pa.scalar(1, right.type), right)
    found = np.fmod(_numbers(left), _numbers(divisor))
    if not isinstance(found, np.ndarray):
        made: Values = pa.scalar(found.item(), left.type)
    else:
        made = pa.array(found, left.type)
    return pc.if_else(pc.fill_null(known, False), made, pa.scalar(None, left.type))


def _numbers(values: Values) -> Any:
    dtype = values.type.to_pandas_dtype()
    if isinstance(values, pa.Scalar):
        value = values.as_py()
        return dtype(1 if value is None else value)
    return values.fill_null(1).to_numpy(zero_copy_only=False)


def _remainder_of(a: int, b: int) -> int | None:
    return None if b == 0 else abs(a) % abs(b) * (1 if a >= 0 else -1)


def _out_of_range(shown: str, value: int, wanted: Any) -> InvalidArgumentError:
    name = {pa.int64(): "I64", pa.uint64(): "U64"}.get(wanted, str(wanted))
    return InvalidArgumentError(
        f"`{shown}` is {value}, which {name} cannot hold; nothing was written.",
        hint="Restrict the write with `where` to rows whose new value fits.",
    )


_KERNELS: dict[ArithmeticOp, Callable[[Any, Any], Any]] = {
    ArithmeticOp.ADD: pc.add_checked,
    ArithmeticOp.SUB: pc.subtract_checked,
    ArithmeticOp.MUL: pc.multiply_checked,
    ArithmeticOp.MOD: _remainder,
}
_EXACT: dict[ArithmeticOp, Callable[[int, int], int | None]] = {
    ArithmeticOp.ADD: lambda a, b: a + b,
    ArithmeticOp.SUB: lambda a, b: a - b,
    ArithmeticOp.MUL: lambda a, b: a * b,
    ArithmeticOp.MOD: _remainder_of,
}
