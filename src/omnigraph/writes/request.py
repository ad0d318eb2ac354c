"""Requests: what callers want written, before it is known what becomes of it.

Guarantees: a request can be evaluated again and again, on any view; evaluating writes nothing.
Deliberately absent: how requests are carried out (`attempt`), and what each kind of them means.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from omnigraph.engines.embedded.view import View
from omnigraph.model.commit import Commit, CommitKind
from omnigraph.model.snapshot import TableVersion
from omnigraph.model.texts import check_text
from omnigraph.model.write import Affected, WriteResult
from omnigraph.rows.deltas import Delta


@dataclass(frozen=True, slots=True)
class Conditions:
    """Under what conditions a request may be carried out, and how it is recorded. `details` are
    further facts for the commit. `principal` is the digest of the principal that was admitted; a
    request without one is not handed to another process."""

    actor: str
    message: str = ""
    if_commit: str | None = None
    idempotency_key: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    principal: str | None = None

    def __post_init__(self) -> None:
        # Here, and not only at the door, so that an invalid text does not fail other members of the
        # group.
        check_text(self.message, "message")


@dataclass(frozen=True)
class Evaluated:
    """What a request comes to on some view."""

    delta: Delta
    affected: Mapping[str, Affected]


@dataclass(frozen=True)
class EvaluatedTogether:
    """What several requests come to that do not touch each other: all of them, and each."""

    whole: Delta
    each: tuple[Evaluated, ...]


class Joint(Protocol):
    """What equal requests have in common, so that they can be evaluated at once."""

    def evaluate(self, view: View, requests: Sequence[Any]) -> EvaluatedTogether | None:
        """None: they must be evaluated one after another."""
        ...


class Request(Protocol):
    """Something that a caller wants written."""

    @property
    def kind(self) -> CommitKind: ...

    @property
    def conditions(self) -> Conditions: ...

    @property
    def is_strict(self) -> bool:
        """Whether it changes existing rows, so that a change under its feet is a conflict."""
        ...

    @property
    def fingerprint(self) -> str | None:
        """What tells it from another request with the same idempotency key."""
        ...

    @property
    def joint(self) -> Joint | None:
        """Requests that are equal in this may be evaluated together."""
        ...

    def evaluate(self, view: View) -> Evaluated: ...


@dataclass(eq=False)
class Ticket:
    """A request on its way, and what became of it."""

    request: Request
    result: WriteResult | None = None
    error: Exception | None = None
    # The tables that it read, as they were when it was first evaluated.
    seen: dict[int, TableVersion | None] = field(default_factory=dict)
    # The id that its commit shall have, if another process asked for it and looks for that one.
    commit_id: str | None = None

    @property
    def is_guest(self) -> bool:
        return self.commit_id is not None

    @property
    def is_done(self) -> bool:
        return self.result is not None or self.error is not None

    def outcome(self) -> WriteResult:
        if self.error is not None:
            raise self.error
        assert self.result is not None
        return self.result


class Portable(ABC):
    """A request that another process can carry out. Its text names no actor."""

    @abstractmethod
    def to_text(self) -> bytes | None:
        """As JSON. None: it says something that JSON cannot, or must be carried out here."""

    @classmethod
    @abstractmethod
    def from_text(cls, told: Any, author: Conditions) -> Request:
        """The request of such a text, which was read as JSON, recorded under the actor and the
        principal of `author`. Raises ValueError, KeyError or TypeError if the text is not one."""


def result_of(commit: Commit, *, repeated: bool = False) -> WriteResult:
    """What a request did, as its commit tells."""
    affected = commit.details.get("affected", {})
    found = {name: Affected.from_json(value) for name, value in affected.items()}
    return WriteResult(commit, found, repeated=repeated)
