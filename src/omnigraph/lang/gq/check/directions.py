"""Find the types and directions of all walks of a pattern, in whatever order they are written.

A walk is started when one of its ends has a type, because the direction may follow from that. All
walks that can be started are started together, from the same types; walks of one hop come first,
because they only remove possibilities, while a walk of several hops chooses its directions once.
Walks between variables that nothing gives a type lead from left to right, as they are declared.

The result does not depend on the order of the walks.
Not included: what one walk means (`walks`, `paths`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from omnigraph.lang.gq import ast
from omnigraph.lang.gq.check.scope import Context, Scope
from omnigraph.lang.gq.check.walks import Walk, narrow, options_for
from omnigraph.model.catalog import EdgeType


class Draft(NamedTuple):
    """A traversal whose directions are not known yet."""

    node: ast.Traversal
    src: str
    dst: str
    edges: list[EdgeType]

    @property
    def is_single(self) -> bool:
        return self.node.bounds in (None, (1, 1))

    @property
    def is_declared(self) -> bool:
        """Whether the types at the ends have no influence on the direction."""
        one_type = all(edge.src_type == edge.dst_type for edge in self.edges)
        return one_type or self.node.direction != "derived"


Waiting: TypeAlias = Mapping[int, Draft]  # by their places in the pattern


def settle(
    ctx: Context, scope: Scope, drafts: Sequence[Draft], give_up: Callable[[Draft], None]
) -> list[Walk]:
    """Start all walks and bind or narrow their ends; `give_up` takes those that do not fit."""
    found: dict[int, Walk] = {}
    waiting = dict(enumerate(drafts))
    while waiting:
        ready = _ready(scope, waiting)
        batch = ready or _untyped(waiting)
        options = {n: options_for(ctx, scope, *waiting[n]) for n in batch}
        for n, fitting in options.items():
            found[n] = Walk(*waiting.pop(n)[:3], fitting, assumed=not ready)
        narrow(ctx, scope, [found[n] for n in batch], list(found.values()))
        for n, walk in found.items():
            if not walk.options:
                give_up(drafts[n])
    return [found[n] for n in sorted(found) if found[n].options]


def _ready(scope: Scope, waiting: Waiting) -> list[int]:
    """The walks whose direction follows from what is known now."""
    known = [
        n for n, d in waiting.items() if d.is_declared or d.src in scope.vars or d.dst in scope.vars
    ]
    return [n for n in known if waiting[n].is_declared or waiting[n].is_single] or known


def _untyped(waiting: Waiting) -> list[int]:
    return [n for n, draft in waiting.items() if draft.is_single] or list(waiting)
