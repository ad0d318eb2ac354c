"""Random programs on a few branches: writes, merges in all directions, and what cuts history.

An operation names branches, keys and commits by numbers that are taken modulo what there is, so any
part of a program is a program.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

Op = tuple[Any, ...]
LENGTH = 12
KEYS = ("A:1", "A:2", "B:1")
VALUES = (1, 2, 3)
MOST_BRANCHES = 4

_WEIGHTS = {
    "put": 6,
    "set": 26,
    "delete": 10,
    "branch": 6,
    "merge": 20,
    "cross": 8,
    "unbranch": 5,
    "cleanup": 7,
    "rebase": 9,
    "revert": 5,
    "pick": 5,
    "drop": 3,
    "add": 3,
    "story": 8,
}


def program(seed: int, length: int = LENGTH) -> list[Op]:
    chance = random.Random(seed)
    ops: list[Op] = [
        ("put", 0, "A:1", {"a": 1, "b": 1}),
        ("put", 0, "B:1", {"a": 1}),
        ("branch", 0),
        ("branch", chance.randrange(2)),
    ]
    kinds, weights = list(_WEIGHTS), list(_WEIGHTS.values())
    while len(ops) < length + 4:
        ops.extend(_random_ops(chance, chance.choices(kinds, weights)[0]))
    return ops


def _random_ops(chance: random.Random, kind: str) -> Iterator[Op]:
    one, two, key = chance.randrange(12), chance.randrange(12), chance.choice(KEYS)
    names = ("a", "b", "c")
    if kind == "put":
        yield "put", one, key, {name: chance.choice((None, *VALUES)) for name in names}
    elif kind == "set":
        yield "set", one, key, chance.choice(names), chance.choice(VALUES)
    elif kind == "delete":
        yield "delete", one, key
    elif kind == "merge":
        yield "merge", one, two, chance.choice((None, None, None, "ours", "theirs"))
    elif kind == "cross":
        for branch in (one, two):
            yield "set", branch, chance.choice(KEYS), chance.choice(names), chance.choice(VALUES)
        yield "cross", one, two, chance.choice((None, "ours", "theirs"))
    elif kind in ("revert", "pick"):
        yield kind, one, two, chance.randrange(4)
    elif kind == "rebase":
        yield "rebase", one, two
    elif kind == "story":
        yield from _long_story(chance) if chance.random() < 0.3 else _story(chance, one, two)
    else:
        yield kind, one


def _story(chance: random.Random, one: int, two: int) -> Iterator[Op]:
    """Two branches write and one takes the other in. Then the branch goes on top of the other one,
    or is merged on and deleted, so that later merges must know what lies below."""
    yield from _write(chance, one)
    yield from _write(chance, two)
    yield "merge", two, one, chance.choice((None, "ours", "theirs"))
    yield from _write(chance, two)
    if chance.random() < 0.5:
        yield "rebase", one, two
        return
    yield "merge", one, two, "theirs"
    yield "unbranch", one
    yield "cleanup", 0
    yield from _write(chance, two)


def _long_story(chance: random.Random) -> Iterator[Op]:
    """A branch that two others take in, one of them after the branch took main in, is deleted; what
    it brought is deleted where it came in last, and that meets the other one."""
    first, second, third = chance.sample((1, 2, 3), 3)
    key = chance.choice(KEYS)
    yield from (("branch", 0), ("branch", 0))
    yield "put", first, key, {"a": chance.choice(VALUES)}
    yield "merge", _beside(first, third), third, "theirs"
    yield "set", first, chance.choice(KEYS), "b", chance.choice(VALUES)
    yield "set", 0, chance.choice(KEYS), "b", chance.choice(VALUES)
    yield "merge", 0, first, "ours"
    yield "merge", 0, second, "theirs"
    yield from _write(chance, second)
    yield from _write(chance, first)
    yield "merge", _beside(first, second), second, "theirs"
    yield "delete", second, key
    yield "unbranch", _beside(first, 0)
    yield "cleanup", 0
    # The numbers of those that came after the deleted branch are one less now.
    source, target = (number - (number > first) for number in (second, third))
    yield "merge", _beside(source, target), target, None


def _beside(number: int, other: int) -> int:
    """The number of a branch among those without another one."""
    return number - (number > other)


def _write(chance: random.Random, branch: int) -> Iterator[Op]:
    key = chance.choice(KEYS)
    if chance.random() < 0.3:
        yield "delete", branch, key
    else:
        yield "set", branch, key, chance.choice(("a", "b")), chance.choice(VALUES)
