"""What operators and functions mean, over plain Python values. None is null.

Whole numbers are exact, and a result outside of its type raises BeyondError; a division by zero is
null.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

I64 = (-(2**63), 2**63 - 1)
U64 = (0, 2**64 - 1)


class Unsigned(int):
    """A whole number of type U64. Every other int here is signed."""


class BeyondError(Exception):
    """An integer is outside of its type: null in a read, an error in a value to be written."""


def unsigned(value: Any) -> Any:
    return Unsigned(value) if isinstance(value, int) else value


def fit(value: int, like: type = int) -> int:
    low, high = U64 if like is Unsigned else I64
    if not low <= value <= high:
        raise BeyondError(str(value))
    return like(value)


def arithmetic(op: str, left: Any, right: Any) -> Any:
    if left is None or right is None:
        return None
    if op == "/":
        return None if right == 0 else left / right
    if op == "%":
        return _remainder(left, right)
    result = {"+": lambda: left + right, "-": lambda: left - right, "*": lambda: left * right}[op]()
    if not isinstance(result, int):
        return result
    return fit(result, Unsigned if Unsigned in (type(left), type(right)) else int)


def _remainder(left: Any, right: Any) -> Any:
    """The sign is that of the dividend."""
    if right == 0:
        return None
    if isinstance(left, int) and isinstance(right, int):
        size = abs(left) % abs(right)
        return fit(-size if left < 0 else size, type(left))
    return math.fmod(left, right)


def compare(op: str, left: Any, right: Any) -> bool | None:
    if left is None or right is None:
        return None
    return bool(_COMPARISONS[op](left, right))


def _contains(left: Any, right: Any) -> bool:
    return right in left


def _matches(left: str, right: str) -> bool:
    return re.search(re.sub(r"\$$", r"\\Z", right), left) is not None


_COMPARISONS: dict[str, Any] = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "contains": _contains,
    "starts_with": lambda a, b: a.startswith(b),
    "ends_with": lambda a, b: a.endswith(b),
    "icontains": lambda a, b: b.lower() in a.lower(),
    "istarts_with": lambda a, b: a.lower().startswith(b.lower()),
    "iends_with": lambda a, b: a.lower().endswith(b.lower()),
    "ieq": lambda a, b: a.lower() == b.lower(),
    "matches": _matches,
}


def both(left: bool | None, right: bool | None) -> bool | None:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def either(left: bool | None, right: bool | None) -> bool | None:
    if left is True or right is True:
        return True
    return None if left is None or right is None else False


def member(value: Any, items: list[Any]) -> bool | None:
    if value is None:
        return None
    return value in items


def call(name: str, args: list[Any]) -> Any:
    if name == "coalesce":
        found = next((arg for arg in args if arg is not None), None)
        return unsigned(found) if any(isinstance(arg, Unsigned) for arg in args) else found
    return None if args[0] is None else _FUNCTIONS[name](args[0])


def _round(value: Any) -> Any:
    return value if isinstance(value, int) else math.copysign(math.floor(abs(value) + 0.5), value)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return value.isoformat() if isinstance(value, date) else str(value)


def _whole(function: Any) -> Any:
    """Integers stay integers, floats stay floats."""
    return lambda value: value if isinstance(value, int) else float(function(value))


_FUNCTIONS: dict[str, Any] = {
    "lower": str.lower,
    "upper": str.upper,
    "trim": str.strip,
    "length": len,
    "abs": lambda v: fit(abs(v), type(v)) if isinstance(v, int) else abs(v),
    "round": _round,
    "floor": _whole(math.floor),
    "ceil": _whole(math.ceil),
    "to_string": _text,
    **{part: (lambda v, part=part: getattr(v, part)) for part in ("year", "month", "day")},
    **{part: (lambda v, part=part: getattr(v, part)) for part in ("hour", "minute", "second")},
}


class Bag(list[Any]):
    """A list whose order nobody promises."""


@dataclass(frozen=True)
class Near:
    """A float that depends on the order of additions."""

    value: float
    scale: float


def aggregate(name: str, distinct: bool, values: list[Any], ordered: bool = True) -> Any:
    """Over values in the order of rows; `count(*)` hands in something for every row."""
    found = [value for value in values if value is not None]
    if distinct:
        found = list(dict.fromkeys(found))
    if name == "count":
        return len(found)
    if name == "collect":
        return found if ordered and not distinct else Bag(found)
    if not found:
        return None
    if name in ("sum", "avg"):
        scale = math.fsum(abs(value) for value in found)
        return Near(math.fsum(found) / (len(found) if name == "avg" else 1), scale)
    return min(found) if name == "min" else max(found)
