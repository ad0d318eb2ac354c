"""Which edges lie on a way of so many hops from some types to others.

    found = ways(options, src, dst, low, high)
    found.options      the edges that some way uses
    found.src, .dst    the types at which some way begins and ends

Guarantees: nothing that a walk within its bounds could use is removed. For bounds up to
`_EXACT_HOPS` nothing else is kept.
Deliberately absent: nodes. This is about types alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from omnigraph.ir.query import Direction
from omnigraph.model.catalog import EdgeType

# Hop counts beyond this are not distinguished: `{1000,}` is treated as `{64,}`.
_EXACT_HOPS = 64


class Option(NamedTuple):
    """An edge type walked in one direction, from a node of type `src` to one of type `dst`."""

    edge: EdgeType
    direction: Direction
    src: str
    dst: str


class Ways(NamedTuple):
    """What is left of a walk between given types."""

    options: list[Option]
    src: list[str]
    dst: list[str]


def ways(
    options: Sequence[Option],
    src: Iterable[str] | None,
    dst: Iterable[str] | None,
    low: int,
    high: int | None,
) -> Ways:
    """The options on a way of `low` to `high` hops from `src` to `dst`; None is any type."""
    if high == 1:
        return _single(options, src, dst)
    sources = dict.fromkeys(option.src for option in options) if src is None else src
    targets = dict.fromkeys(option.dst for option in options) if dst is None else dst
    low = min(low, _EXACT_HOPS)
    most = _most_hops(options, low, high)
    forth = _distances(sources, [(o.src, o.dst) for o in options], most)
    back = _distances(targets, [(o.dst, o.src) for o in options], most)
    window = (1 << most + 1) - (1 << low)  # one bit for each allowed number of hops
    kept = [o for o in options if _meets(forth.get(o.src, 0), back.get(o.dst, 0), window)]
    return Ways(
        kept,
        [name for name in sources if back.get(name, 0) & window],
        [name for name in targets if forth.get(name, 0) & window],
    )


def _single(
    options: Sequence[Option], src: Iterable[str] | None, dst: Iterable[str] | None
) -> Ways:
    near, far = None if src is None else set(src), None if dst is None else set(dst)
    kept = [
        option
        for option in options
        if (near is None or option.src in near) and (far is None or option.dst in far)
    ]
    return Ways(kept, [option.src for option in kept], [option.dst for option in kept])


def _most_hops(options: Sequence[Option], low: int, high: int | None) -> int:
    """The longest way that has to be looked at. A longer one visits a type twice before or after
    the hop in question and can be cut short there, as long as `low` hops are left."""
    types = {name for option in options for name in (option.src, option.dst)}
    enough = low + 2 * len(types) + 1
    return enough if high is None else min(high, enough)


def _distances(starts: Iterable[str], hops: Sequence[tuple[str, str]], most: int) -> dict[str, int]:
    """By type: bit `n` is set if it can be reached in exactly `n` hops."""
    found: dict[str, int] = {}
    level = set(starts)
    for count in range(most + 1):
        for name in level:
            found[name] = found.get(name, 0) | 1 << count
        level = {there for here, there in hops if here in level}
    return found


def _meets(before: int, after: int, window: int) -> bool:
    """Whether some number of hops before, the hop itself and some number after fit the window."""
    while before:
        first = before & -before
        if (after * first << 1) & window:
            return True
        before ^= first
    return False
