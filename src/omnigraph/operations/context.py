"""What every verb is given: the graph's root, the principal, and the gate that admits verbs.

Guarantees: immutable. `principal_of` is the only function that makes a principal from what a caller
passes; nothing that is read from a file becomes one.
"""

from __future__ import annotations

import getpass
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from omnigraph.errors import DeniedError, InvalidArgumentError
from omnigraph.model.principal import Principal
from omnigraph.model.visibility import EVERYTHING, Visibility
from omnigraph.operations.admission import OPEN_GATE, Gate
from omnigraph.storage.durability import check_durability
from omnigraph.storage.root import GraphRoot

if TYPE_CHECKING:
    from omnigraph.commit.damage import Loss
    from omnigraph.history.entitydiff import Shown
    from omnigraph.history.resolve import Target
    from omnigraph.model.snapshot import Snapshot

ACTOR_VARIABLE = "OMNIGRAPH_ACTOR"


@dataclass(frozen=True)
class Context:
    """`losses` are what opening found to be damaged or lost. `author` is set by verbs that repeat a
    commit of another actor: it is recorded, but the principal is admitted."""

    root: GraphRoot
    principal: Principal
    read_only: bool = False
    losses: tuple[Loss, ...] = ()
    gate: Gate = OPEN_GATE
    is_pinned: bool = False
    author: str | None = None
    # What reads of this context see. Nothing sets it yet but tests: policy will.
    visibility: Visibility = EVERYTHING

    def snapshot(self, target: Target | None = None) -> Snapshot:
        """The state that a read sees: pinned, and restricted to what is visible."""
        from omnigraph.history.resolve import resolve  # Lance is loaded when something is read

        return resolve(self.root, target).seen_through(self.visibility)

    def shown(self) -> Shown | None:
        """What restricts differences to what is visible; None if everything is."""
        if self.visibility.is_everything:
            return None
        from omnigraph.engines.snapshotreader import VisibleChanges

        return VisibleChanges(self.visibility)

    def whole(self, what: str) -> Context:
        """This context, for work that cannot be restricted to visible rows yet.

        Raises:
            DeniedError: A visibility is set.
        """
        if not self.visibility.is_everything:
            raise DeniedError(
                f"{what} needs to see all rows and properties, and some are hidden.",
                hint="Use an identity without restrictions.",
            )
        return self

    @property
    def actor(self) -> str:
        """The name that commits record."""
        return self.author or self.principal.id

    def with_durability(self, durability: str | None) -> Context:
        if durability is None:
            return self
        chosen = check_durability(durability)
        return replace(self, root=self.root.with_durability(chosen))

    def acting_as(self, actor: str | Principal | None) -> Context:
        return self if actor is None else replace(self, principal=principal_of(actor))


def principal_of(actor: str | Principal | None) -> Principal:
    """The principal that a caller names.

    Args:
        actor: A principal, or the id of one that has neither groups nor attributes. None: the actor
            of the environment variable OMNIGRAPH_ACTOR, or else the user who is logged in.

    Raises:
        InvalidArgumentError: The id is blank, reserved, or no line of text.
    """
    if isinstance(actor, Principal):
        return actor
    if actor is not None:
        return Principal.named(actor)
    named = os.environ.get(ACTOR_VARIABLE)
    if named:
        return Principal.named(named)
    try:
        return Principal.named(getpass.getuser())
    except (KeyError, OSError, InvalidArgumentError):  # no such user on this machine
        return Principal.named("anonymous")
