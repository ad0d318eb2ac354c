"""Finding a small program that still fails: parts are left out as long as it goes wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def shrink(items: list[T], fails: Callable[[list[T]], bool], most_tries: int = 120) -> list[T]:
    """A sublist that fails, from which nothing more can be left out within so many tries."""
    size = max(1, len(items) // 2)
    while most_tries > 0:
        smaller = None
        for start in range(0, len(items), size):
            if most_tries <= 0:
                break
            candidate = items[:start] + items[start + size :]
            most_tries -= 1
            if candidate and fails(candidate):
                smaller = candidate
                break
        if smaller is not None:
            items = smaller
        elif size == 1:
            break
        else:
            size = max(1, size // 2)
    return items
