"""Scalar functions, arithmetic and tests on strings, over Arrow arrays.

Guarantees: null in, null out, except for `coalesce`; division is exact; what has no value, such as
a division by zero or an integer beyond its type (`integers`), is null and never a wrong number.
Deliberately absent: expressions; these functions see values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engines.expressions.integers import absolute, integer_arithmetic
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


def arithmetic(
    op: ArithmeticOp, left: Values, right: Values, wanted: Any, *, strict: bool = False
) -> Values:
    """`left op right` in the type that the checker gave it."""
    if pa.types.is_integer(wanted):
        return integer_arithmetic(op, left, right, wanted, strict=strict)
    return _KERNELS[op](as_type(left, wanted), as_type(right, wanted))


def _not_zero(values: Values) -> Values:
    zero = pa.scalar(0, values.type)
    return pc.if_else(pc.equal(values, zero), pa.scalar(None, values.type), values)


def _remainder(left: Values, right: Values) -> Values:
    """The remainder of division towards zero; it has the sign of the left side."""
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
    ArithmeticOp.ADD: pc.add,
    ArithmeticOp.SUB: pc.subtract,
    ArithmeticOp.MUL: pc.multiply,
    ArithmeticOp.DIV: lambda left, right: pc.divide(left, _not_zero(right)),
    ArithmeticOp.MOD: lambda left, right: _remainder(left, _not_zero(right)),
}


def call(name: str, args: list[Values], wanted: Any, *, strict: bool = False) -> Values:
    """A scalar function by name."""
    if name == "coalesce":
        return pc.coalesce(*(as_type(arg, wanted) for arg in args))
    if name == "abs" and pa.types.is_integer(wanted):
        return absolute(args[0], wanted, strict=strict)
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
        return values if pa.types.is_integer(values.type) else kernel(values)

    return rounded


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
    "abs": pc.abs,
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
