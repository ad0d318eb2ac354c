"""JSON as it was meant: one value, no repeated members, no NaN.

Python's own reader keeps the last of several members with one name, and reads NaN and Infinity.
Here both are refused at any depth, and so is nesting that Python cannot follow.

Integers are exact; every refusal is a `ValueError` that says why.
"""

from __future__ import annotations

import json
from typing import Any


def read_json(text: str) -> Any:
    """The value that a text holds."""
    try:
        return json.loads(text, object_pairs_hook=_distinct, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise ValueError(_syntax(error)) from None
    except RecursionError:
        raise ValueError("the value is nested too deeply") from None


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise ValueError(f"the member {_shortened(name)!r} occurs twice in one object")
            seen.add(name)
    return found


def _shortened(name: str) -> str:
    text = name.encode("utf-8", "backslashreplace").decode("utf-8")
    return text if len(text) <= 120 else f"{text[:120]}…"


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _syntax(error: json.JSONDecodeError) -> str:
    if error.msg == "Extra data":
        return f"there is more than one value on the line, from column {error.colno} on"
    return f"{error.msg[0].lower()}{error.msg[1:]} (column {error.colno})"
