"""Scalar functions, arithmetic and tests on strings, over Arrow arrays.

Guarantees: null in, null out, except for `coalesce`; division is exact; what has no value, such as
a division by zero or a whole number beyond 64 bits, is null and never a wrong number.
Deliberately absent: expressions; these functions see values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import InvalidArgumentError
from omnigraph.ir.expr import ArithmeticOp, StringOp

Values = Any  # pa.Array or pa.Scalar

_UNKNOWN = pa.scalar(None, pa.bool_())


def string_test(op: StringOp, values: Values, wanted: str | None, ignore_case: bool) -> Values:
    """A test of many strings against one."""
    if wanted is None:
        return _UNKNOWN
    if op is StringOp.MATCHES:
        return _matches(values, wanted, ignore_case)
    if ignore_case:
        values, wanted = pc.utf8_lower(values), _lower(wanted)
    match op:
        case StringOp.CONTAINS:
            return pc.match_substring(values, wanted)
        case StringOp.STARTS_WITH:
            return pc.starts_with(values, wanted)
        case StringOp.ENDS_WITH:
            return pc.ends_with(values, wanted)
        case _:
            return pc.equal(values, wanted)


def _matches(values: Values, pattern: str, ignore_case: bool) -> Values:
    try:
        return pc.match_substring_regex(values, pattern, ignore_case=ignore_case)
    except pa.ArrowInvalid as error:
        raise _bad_pattern(pattern, error) from error


def _lower(text: str) -> str:
    lowered: str = pc.utf8_lower(pa.scalar(text)).as_py()
    return lowered


def string_test_by_row(
    op: StringOp, left: Values, right: Values, ignore_case: bool, rows: int
) -> pa.Array:
    """A test of each string against one of its own row."""
    if ignore_case and op is not StringOp.MATCHES:
        left, right = pc.utf8_lower(left), pc.utf8_lower(right)
    test = _BY_ROW[op]
    pairs = zip(_texts(left, rows), _texts(right, rows), strict=True)
    found = [None if a is None or b is None else test(a, b, ignore_case) for a, b in pairs]
    return pa.array(found, pa.bool_())


def _texts(values: Values, rows: int) -> list[str | None]:
    if isinstance(values, pa.Scalar):
        return [values.as_py()] * rows
    found: list[str | None] = values.to_pylist()
    return found


def _search(text: str, pattern: str, ignore_case: bool) -> bool:
    found: bool = _matches(pa.array([text]), pattern, ignore_case)[0].as_py()
    return found


_BY_ROW: dict[StringOp, Callable[[str, str, bool], bool]] = {
    StringOp.CONTAINS: lambda a, b, _: b in a,
    StringOp.STARTS_WITH: lambda a, b, _: a.startswith(b),
    StringOp.ENDS_WITH: lambda a, b, _: a.endswith(b),
    StringOp.EQUALS: lambda a, b, _: a == b,
    StringOp.MATCHES: _search,
}


def arithmetic(op: ArithmeticOp, left: Values, right: Values, wanted: Any) -> Values:
    """`left op right` in the type that the checker gave it."""
    try:
        return _KERNELS[op](as_type(left, wanted), as_type(right, wanted))
    except pa.ArrowInvalid:
        # Some whole number leaves its range. Slowly then, and null for that one alone: an error
        # would depend on which rows a plan happens to look at.
        return _exactly(op, left, right, wanted)


def _exactly(op: ArithmeticOp, left: Values, right: Values, wanted: Any) -> Values:
    rows = max((len(v) for v in (left, right) if isinstance(v, pa.Array)), default=1)
    info = np.iinfo(np.int64)
    found: list[int | None] = []
    for a, b in zip(_items(left, rows), _items(right, rows), strict=True):
        value = None if a is None or b is None else _EXACT[op](a, b)
        found.append(value if value is not None and info.min <= value <= info.max else None)
    array = pa.array(found, wanted)
    return array if isinstance(left, pa.Array) or isinstance(right, pa.Array) else array[0]


def _items(values: Values, rows: int) -> list[Any]:
    if isinstance(values, pa.Scalar):
        return [values.as_py()] * rows
    found: list[Any] = values.to_pylist()
    return found


def _remainder_of(a: int, b: int) -> int | None:
    return None if b == 0 else abs(a) % abs(b) * (1 if a >= 0 else -1)


_EXACT: dict[ArithmeticOp, Callable[[int, int], int | None]] = {
    ArithmeticOp.ADD: lambda a, b: a + b,
    ArithmeticOp.SUB: lambda a, b: a - b,
    ArithmeticOp.MUL: lambda a, b: a * b,
    ArithmeticOp.MOD: _remainder_of,
}


def _not_zero(values: Values) -> Values:
    zero = pa.scalar(0, values.type)
    return pc.if_else(pc.equal(values, zero), pa.scalar(None, values.type), values)


def _remainder(left: Values, right: Values) -> Values:
    """The remainder of division towards zero; it has the sign of the left side."""
    if pa.types.is_integer(left.type):
        whole = pc.divide(left, right)
        return pc.subtract(left, pc.multiply(whole, right))
    rows = len(left) if isinstance(left, pa.Array) else None
    rows = len(right) if isinstance(right, pa.Array) else rows
    known = pc.and_(pc.is_valid(left), pc.is_valid(right))
    found = np.fmod(_floats(left), _floats(right))
    if rows is None:
        return pc.if_else(known, pa.scalar(float(found)), pa.scalar(None, left.type))
    return pc.if_else(known, pa.array(found), pa.scalar(None, left.type))


def _floats(values: Values) -> Any:
    if isinstance(values, pa.Scalar):
        return np.nan if values.as_py() is None else values.as_py()
    return values.fill_null(1.0).to_numpy(zero_copy_only=False)


_KERNELS: dict[ArithmeticOp, Callable[[Any, Any], Any]] = {
    ArithmeticOp.ADD: pc.add_checked,
    ArithmeticOp.SUB: pc.subtract_checked,
    ArithmeticOp.MUL: pc.multiply_checked,
    ArithmeticOp.DIV: lambda left, right: pc.divide(left, _not_zero(right)),
    ArithmeticOp.MOD: lambda left, right: _remainder(left, _not_zero(right)),
}


def call(name: str, args: list[Values], wanted: Any) -> Values:
    """A scalar function by name."""
    if name == "coalesce":
        return pc.coalesce(*(_within(arg, wanted) for arg in args))
    return as_type(_FUNCTIONS[name](args[0]), wanted)


def as_type(values: Values, wanted: Any) -> Values:
    """Values in another type; a whole number becomes the nearest float, all else is exact."""
    if values.type == wanted:
        return values
    rounds = pa.types.is_integer(values.type) and pa.types.is_floating(wanted)
    return pc.cast(values, wanted, safe=not rounds)


def _length(values: Values) -> Values:
    if pa.types.is_list(values.type):
        return pc.list_value_length(values)
    return pc.utf8_length(values)


def _whole_or(kernel: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Rounding leaves whole numbers alone; Arrow would make them floats first."""

    def rounded(values: Values) -> Values:
        return _within(values, pa.int64()) if pa.types.is_integer(values.type) else kernel(values)

    return rounded


def _absolute(values: Values) -> Values:
    if pa.types.is_signed_integer(values.type):
        values = values.cast(pa.int64())
        smallest = pa.scalar(np.iinfo(np.int64).min, pa.int64())
        values = pc.if_else(pc.equal(values, smallest), pa.scalar(None, pa.int64()), values)
    return _within(pc.abs(values), pa.int64() if pa.types.is_integer(values.type) else values.type)


def _within(values: Values, wanted: Any) -> Values:
    """Values in another type, null where they leave its range."""
    if values.type == pa.uint64() and wanted == pa.int64():
        largest = pa.scalar(np.iinfo(np.int64).max, pa.uint64())
        fits = pc.less_equal(values, largest)
        values = pc.if_else(fits, values, pa.scalar(None, pa.uint64()))
    return as_type(values, wanted)


def _round(values: Values) -> Values:
    return pc.round(values, round_mode="half_towards_infinity")


def _second(values: Values) -> Values:
    return pc.second(values)


def _to_string(values: Values) -> Values:
    if pa.types.is_timestamp(values.type):
        return pc.strftime(values.cast(pa.timestamp("ms")), format="%Y-%m-%dT%H:%M:%SZ")
    if pa.types.is_floating(values.type):
        return _by_value(values, _float_text)
    return values.cast(pa.string())


def _by_value(values: Values, change: Callable[[Any], str]) -> Values:
    if isinstance(values, pa.Scalar):
        value = values.as_py()
        return pa.scalar(None if value is None else change(value), pa.string())
    return pa.array([None if v is None else change(v) for v in values.to_pylist()], pa.string())


def _float_text(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "lower": pc.utf8_lower,
    "upper": pc.utf8_upper,
    "trim": pc.utf8_trim_whitespace,
    "length": _length,
    "abs": _absolute,
    "round": _whole_or(_round),
    "floor": _whole_or(pc.floor),
    "ceil": _whole_or(pc.ceil),
    "year": pc.year,
    "month": pc.month,
    "day": pc.day,
    "hour": pc.hour,
    "minute": pc.minute,
    "second": _second,
    "to_string": _to_string,
}


def _bad_pattern(pattern: str, error: Exception) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"The pattern {pattern!r} is not a regular expression: {error}.",
        hint="Escape special characters, or use `contains`.",
        pattern=pattern,
    )
