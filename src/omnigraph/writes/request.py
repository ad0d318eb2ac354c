"""Write requests, their conditions, and their results.

Guarantees: a request can be evaluated again and again, on any view; evaluating writes nothing.
Deliberately absent: the execution of requests (`attempt`), and the semantics of each kind.
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
    """The conditions of a request, and the metadata of its commit. `details` are further fields of
    the commit. `principal` is the digest of the principal that was admitted; a request without one
    is not handed to another process."""

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
    """The result of evaluating a request on a view."""

    delta: Delta
    affected: Mapping[str, Affected]


@dataclass(frozen=True)
class EvaluatedTogether:
    """The result of evaluating several independent requests: combined, and for each."""

    whole: Delta
    each: tuple[Evaluated, ...]


class Joint(Protocol):
    """The common part of equal requests, which allows to evaluate them together."""

    def evaluate(self, view: View, requests: Sequence[Any]) -> EvaluatedTogether | None:
        """None: they must be evaluated one after another."""
        ...


class Request(Protocol):
    """A write request."""

    @property
    def kind(self) -> CommitKind: ...

    @property
    def conditions(self) -> Conditions: ...

    @property
    def is_strict(self) -> bool:
        """Whether it changes existing rows, so that a concurrent change is a conflict."""
        ...

    @property
    def fingerprint(self) -> str | None:
        """A hash that identifies the request among requests with the same idempotency key."""
        ...

    @property
    def joint(self) -> Joint | None:
        """Requests with an equal value may be evaluated together."""
        ...

    def evaluate(self, view: View) -> Evaluated: ...


@dataclass(eq=False)
class Ticket:
    """A request in execution, with its outcome."""

    request: Request
    result: WriteResult | None = None
    error: Exception | None = None
    # The tables that it read, as they were when it was first evaluated.
    seen: dict[int, TableVersion | None] = field(default_factory=dict)
    # The required id of its commit, if the request came from another process.
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
        """The request as JSON. None if JSON cannot represent it, or if it must be executed in this
        process."""

    @classmethod
    @abstractmethod
    def from_text(cls, told: Any, author: Conditions) -> Request:
        """The request of such a text, which was read as JSON, recorded under the actor and the
        principal of `author`. Raises ValueError, KeyError or TypeError if the text is not one."""


def result_of(commit: Commit, *, repeated: bool = False) -> WriteResult:
    """The result of a request, derived from its commit."""
    affected = commit.details.get("affected", {})
    found = {name: Affected.from_json(value) for name, value in affected.items()}
    return WriteResult(commit, found, repeated=repeated)
