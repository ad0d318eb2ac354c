"""Comparing results: exact, but for the last digits of floats."""

from __future__ import annotations

import math
from typing import Any


def assert_same_rows(
    found: list[dict[str, Any]], expected: list[dict[str, Any]], what: str
) -> None:
    if not same(found, expected):
        raise AssertionError(f"{what}\nexpected {expected}\nfound    {found}")


def same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(same(one[k], other[k]) for k in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)
