"""Rows of people, and which of them the two sides of a merge change."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

CHANGED = 2_000


def people(numbers: Iterable[int], offset: int = 0) -> dict[str, list[Any]]:
    chosen = list(numbers)
    return {
        "name": [f"person-{number:08d}" for number in chosen],
        "age": [int(number + offset) % 90 for number in chosen],
        "city": [f"city {number % 997}" for number in chosen],
    }


def person(number: int, rows: int) -> str:
    """Somebody who is there; another for each number."""
    return f"person-{number * 7919 % rows:08d}"


def two_sides(rows: int, number: int) -> list[Any]:
    """Rows of one side and of the other, none of them in both."""
    chosen = np.random.default_rng(number).choice(rows, 2 * CHANGED, replace=False)
    return [np.sort(chosen[:CHANGED]), np.sort(chosen[CHANGED:])]
