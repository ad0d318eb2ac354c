"""Write requests, their conditions, and their results.

Guarantees: a request can be evaluated again and again, on any view; evaluating writes nothing.
Deliberately absent: the execution of requests (`attempt`), and the semantics of each kind.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from omnigraph.engines.embedded.view import View
from omnigraph.history.log import BranchLog
from omnigraph.model.commit import Commit, CommitKind, Offer
from omnigraph.model.snapshot import Snapshot, TableVersion
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


@dataclass(frozen=True, slots=True)
class Attempts:
    """How often a request is prepared at most, and how many of these times without holding the
    branch's lock."""

    total: int = 5
    unlocked: int = 1


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


class RowRequest(Request, Protocol):
    """A request that gives rows, and may share its commit's tables with others."""

    @property
    def joint(self) -> Joint | None:
        """Requests with an equal value may be evaluated together."""
        ...

    def evaluate(self, view: View) -> Evaluated: ...


class LoneRequest(ABC):
    """A request that makes a proposal of its own, which no other request shares.

    A subclass may keep what it found in the last call of `prepare`, for the result of its verb.
    """

    attempts: ClassVar[Attempts] = Attempts()
    kind: CommitKind
    conditions: Conditions
    is_strict: bool = False
    fingerprint: str | None = None

    @abstractmethod
    def prepare(self, line: BranchLog, snapshot: Snapshot) -> Offer | WriteResult:
        """What to publish on top of the snapshot, the newest of the branch; or the outcome, if
        nothing has to be published. May be called again and again; nothing that it writes is
        visible."""


@dataclass(eq=False)
class Ticket:
    """A request in execution, with its outcome."""

    request: RowRequest | LoneRequest
    result: WriteResult | None = None
    error: Exception | None = None
    # The tables that it read, as they were when it was first evaluated.
    seen: dict[int, TableVersion | None] = field(default_factory=dict)
    # The required id of its commit, if the request came from another process.
    commit_id: str | None = None
    # The newest state of the branch as the caller read it a moment ago, for the first attempt.
    log: BranchLog | None = None

    @property
    def is_guest(self) -> bool:
        return self.commit_id is not None

    @property
    def is_done(self) -> bool:
        return self.result is not None or self.error is not None

    def finish(self, outcome: WriteResult | Exception) -> None:
        if isinstance(outcome, WriteResult):
            self.result = outcome
        else:
            self.error = outcome

    def outcome(self) -> WriteResult:
        if self.error is not None:
            raise self.error
        assert self.result is not None
        return self.result


class Prepared(Protocol):
    """Tickets over one snapshot, and what to publish for them. `involved`: those that fail if it
    cannot be published."""

    @property
    def offer(self) -> Offer | None: ...

    @property
    def involved(self) -> list[Ticket]: ...

    def settle(self, commits: Sequence[Commit]) -> None:
        """Give each ticket its outcome, once the offer was published as these commits."""
        ...


class Portable(ABC):
    """A request that another process can carry out. Its text names no actor."""

    @abstractmethod
    def to_text(self) -> bytes | None:
        """The request as JSON. None if JSON cannot represent it, or if it must be executed in this
        process."""

    @classmethod
    @abstractmethod
    def from_text(cls, told: Any, author: Conditions) -> RowRequest:
        """The request of such a text, which was read as JSON, recorded under the actor and the
        principal of `author`. Raises ValueError, KeyError or TypeError if the text is not one."""


def result_of(commit: Commit, *, repeated: bool = False) -> WriteResult:
    """The result of a request, derived from its commit."""
    affected = commit.details.get("affected", {})
    found = {name: Affected.from_json(value) for name, value in affected.items()}
    return WriteResult(commit, found, repeated=repeated)
