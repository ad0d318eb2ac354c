"""Seeds of random programs: play one, and find a small program that still fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


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


def play_or_shrink(
    name: str,
    ops: list[T],
    attempt: Callable[[list[T]], R],
    signature: Callable[[Exception], str],
    tries: int,
) -> R:
    """What `attempt` returns for a program; its failure is reported with a small program that fails
    with the same signature."""

    def fails(fewer: list[T]) -> bool:
        try:
            attempt(fewer)
        except Exception as again:  # noqa: BLE001  # it may be what we look for
            return signature(again) == wanted
        return False

    try:
        return attempt(ops)
    except Exception as error:
        wanted = signature(error)
        small = shrink(ops, fails, tries)
        listed = "\n".join(f"    {op}," for op in small)
        raise AssertionError(
            f"{name} failed: {type(error).__name__}: {error}\n"
            f"a program of {len(small)} operations that fails:\n{listed}"
        ) from error


def seed_range(arguments: list[str]) -> range:
    """`17` or `100 200`, as given on the command line."""
    first = int(arguments[0])
    return range(first, int(arguments[1]) if len(arguments) > 1 else first + 1)
