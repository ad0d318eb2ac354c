"""What every verb is given: the graph's root, who asks, and whether writing is allowed.

Guarantees: immutable; a verb that writes asks `writable` first.
Deliberately absent: caches and handles; those belong to the rooms that fill them.
"""

from __future__ import annotations

import getpass
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from omnigraph.errors import DeniedError, InvalidArgumentError
from omnigraph.model.commit import RECOVERY_ACTOR
from omnigraph.model.texts import check_line
from omnigraph.storage.durability import check_durability
from omnigraph.storage.root import GraphRoot

if TYPE_CHECKING:
    from omnigraph.commit.damage import Loss

ACTOR_VARIABLE = "OMNIGRAPH_ACTOR"


@dataclass(frozen=True)
class Context:
    root: GraphRoot
    actor: str
    read_only: bool = False
    # What opening found to be damaged or lost.
    losses: tuple[Loss, ...] = ()

    def writable(self) -> Context:
        if self.read_only:
            raise DeniedError(
                "The graph was opened read-only.", hint="Open it read-write to change it."
            )
        return self

    def with_durability(self, durability: str | None) -> Context:
        if durability is None:
            return self
        chosen = check_durability(durability)
        return replace(self, root=self.root.with_durability(chosen))

    def acting_as(self, actor: str | None) -> Context:
        return self if actor is None else replace(self, actor=check_actor(actor))


def default_actor() -> str:
    """The default actor: that of the environment, or else the user who is logged in."""
    named = os.environ.get(ACTOR_VARIABLE)
    if named:
        return check_actor(named)
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no such user on this machine
        return "anonymous"


def check_actor(actor: str) -> str:
    if not check_line(actor, "actor").strip():
        raise InvalidArgumentError("An actor needs a name.")
    if actor == RECOVERY_ACTOR:
        raise InvalidArgumentError(f"The actor {RECOVERY_ACTOR} is reserved for recovery.")
    return actor
