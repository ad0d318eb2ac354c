"""Admission: one question before every verb, whatever the surface it comes from.

    admit(context, Action.CHANGE, Resource.branch("main"))

A gate answers it. The default gate allows everything; a read-only context refuses what writes
before the gate is asked. The actions are named as in policy files.

Guarantees: `admit` returns or raises DeniedError; it reads and writes nothing itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from omnigraph.errors import DeniedError

if TYPE_CHECKING:
    from omnigraph.history.resolve import Target
    from omnigraph.model.principal import Principal
    from omnigraph.operations.context import Context


class Action(StrEnum):
    """What a verb does to its resource."""

    READ = "read"
    EXPORT = "export"
    CHANGE = "change"
    SCHEMA_APPLY = "schema_apply"
    BRANCH_CREATE = "branch_create"
    BRANCH_DELETE = "branch_delete"
    BRANCH_RENAME = "branch_rename"
    BRANCH_MERGE = "branch_merge"
    TAG_CREATE = "tag_create"
    TAG_DELETE = "tag_delete"
    MAINTAIN = "maintain"
    RECOVER = "recover"
    ADMIN = "admin"


class ResourceKind(StrEnum):
    GRAPH = "graph"
    BRANCH = "branch"
    TAG = "tag"


@dataclass(frozen=True, slots=True)
class Resource:
    """What a verb acts on.

    `branch` is the branch that is read or written, or the source of a merge; `target_branch` is the
    branch that is created, deleted or merged into. `branch` is None if the verb concerns the whole
    graph, or names a commit or a tag, which may lie on any branch: a rule that is limited to some
    branches then does not apply. `types` are the node and edge types that the request names; empty
    if it names none.
    """

    kind: ResourceKind = ResourceKind.GRAPH
    branch: str | None = None
    target_branch: str | None = None
    types: tuple[str, ...] = ()

    @classmethod
    def of_branch(cls, name: str, types: tuple[str, ...] = ()) -> Resource:
        return cls(ResourceKind.BRANCH, name, None, types)

    @classmethod
    def of_target(cls, target: Target | None, types: tuple[str, ...] = ()) -> Resource:
        """The state that a target names."""
        if target is None:
            return cls(ResourceKind.BRANCH, "main", None, types)
        if target.tag is not None or target.commit is not None:
            return cls(ResourceKind.GRAPH, None, None, types)
        return cls(ResourceKind.BRANCH, target.branch, None, types)


class Gate(Protocol):
    """Decides which principal may do what."""

    def admit(self, principal: Principal, action: Action, resource: Resource) -> None:
        """Return if it is allowed; raise DeniedError if not."""
        ...


class OpenGate:
    """Allows everything."""

    def admit(self, principal: Principal, action: Action, resource: Resource) -> None:
        return None


OPEN_GATE = OpenGate()
READS = frozenset({Action.READ, Action.EXPORT})
# What begins at a pinned state and leaves it as it is.
_FROM_PINNED = READS | {Action.BRANCH_CREATE, Action.TAG_CREATE}


def admit(context: Context, action: Action, resource: Resource) -> None:
    """Ask whether the principal of a context may do this.

    Raises:
        DeniedError: The graph was opened read-only or is pinned to a state, or the gate refuses.
    """
    if action not in READS:
        _refuse_read_only(context, action)
    context.gate.admit(context.principal, action, resource)


def _refuse_read_only(context: Context, action: Action) -> None:
    if context.read_only:
        raise DeniedError(
            "The graph was opened read-only.", hint="Open it read-write to change it."
        )
    if context.is_pinned and action not in _FROM_PINNED:
        raise DeniedError(
            "The graph is pinned to one state, which does not change.",
            hint="Write to a branch: `graph.on(branch)` leaves the pinned state.",
        )
