"""Commits, proposals and what must hold for a proposal to land.

Guarantees: a proposal is data (staged writes and requirements); only the commit door turns it
into a commit.
Deliberately absent: rows. A staged write names files that are written but not yet visible.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from omnigraph.model.snapshot import Snapshot, TableVersion

RECOVERY_ACTOR = "omnigraph:recovery"


class CommitKind(StrEnum):
    INIT = "init"
    MUTATE = "mutate"
    LOAD = "load"
    MERGE = "merge"
    REVERT = "revert"
    CHERRY_PICK = "cherry_pick"
    SCHEMA = "schema"
    MAINTENANCE = "maintenance"
    RECOVERY = "recovery"


@dataclass(frozen=True, slots=True)
class Damage:
    """Why a commit's record cannot be read as it should, and the record itself. `is_total`: only
    the columns beside the record are known, not what the commit changed."""

    reason: str
    stored: str = field(repr=False)
    is_total: bool


@dataclass(frozen=True, slots=True)
class Commit:
    """One entry of a branch's history.

    `sequence` numbers the commits of a branch from its root without gaps. `changes` are the table
    versions of this commit, `dropped` the tables that it removed from the graph. `damage` is None
    unless the stored record is damaged.
    """

    id: str
    sequence: int
    parents: tuple[str, ...]
    branch: str
    actor: str
    kind: CommitKind
    message: str
    created_at_us: int
    schema_hash: str
    changes: tuple[TableVersion, ...] = ()
    dropped: tuple[int, ...] = ()
    idempotency_key: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    damage: Damage | None = None


@dataclass(frozen=True, slots=True)
class StagedWrite:
    """Files of one table, written but not committed.

    `base` is the version they were staged against, None when the table is born here. `fork` is
    the line that they will land on: the base's own, or one that was forked for this write.
    `transaction` is opaque outside `storage`. `logical` is False for maintenance, `replaces` is
    True when all rows are replaced at once.
    """

    table_id: int
    path: str
    fork: str | None
    base: TableVersion | None
    transaction: Any
    rows_after: int
    logical: bool = True
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class TableUnchanged:
    """The content of a table is still what validation read. `logical` None: it did not exist."""

    table_id: int
    logical: int | None


@dataclass(frozen=True, slots=True)
class HeadIs:
    """The branch still stands at this commit."""

    commit_id: str


Requirement = TableUnchanged | HeadIs


@dataclass(frozen=True, slots=True)
class Signature:
    """Who asked for a change, of what kind it is, and how it is recorded. `commit_id`: the id that
    of its commit, if a caller waits for that id."""

    actor: str
    kind: CommitKind
    message: str = ""
    idempotency_key: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    commit_id: str | None = None


@dataclass(frozen=True)
class Proposal:
    """A change that the commit door may publish, with all that must still hold when it does.

    `adopted` are table versions of another branch that are taken over as they are; a staged write
    may stand on one of them. `after_us`: the commit must be younger than that, as a merge is
    younger than both of its parents. `also` are further commits of the same publish, in order:
    requests that share their staged writes with the first, in which the tables' versions stand.
    `commit_id` is the first one's id, if it shall have a certain one.
    """

    base: Snapshot
    staged: tuple[StagedWrite, ...]
    actor: str
    kind: CommitKind
    message: str = ""
    requires: tuple[Requirement, ...] = ()
    merged_parent: str | None = None
    schema_hash: str | None = None  # None: the schema stays as in the base
    dropped: tuple[int, ...] = ()
    idempotency_key: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    adopted: tuple[TableVersion, ...] = ()
    after_us: int = 0
    also: tuple[Signature, ...] = ()
    commit_id: str | None = None


@dataclass(frozen=True)
class FastForward:
    """Commits of another branch, oldest first, that the branch takes over as they are. They must
    continue it: the first one's first parent is the head of the branch."""

    commits: tuple[Commit, ...]


# What the commit door publishes.
Offer = Proposal | FastForward
