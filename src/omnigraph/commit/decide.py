"""The recovery decision for a sidecar, as a pure function of the observed state.

Guarantees: no I/O, so that every combination can be tested; all tables go the same way.
Deliberately absent: doing it (`recovery`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from omnigraph.commit.journal import Sidecar, TableIntent
from omnigraph.storage.tablehead import LineHead


class TableStatus(StrEnum):
    UNTOUCHED = "untouched"  # the HEAD is unchanged
    PARTLY = "partly"  # the first of several versions of the writer is the HEAD
    LANDED = "landed"  # the last version of the writer is the HEAD
    BURIED = "buried"  # the version of the writer is below the HEAD: a rollback had begun
    FENCED = "fenced"  # a recovery had restored it before the writer committed it
    FOREIGN = "foreign"  # the version was written by another program
    BELOW = "below"  # the HEAD is older than the published version: an inconsistency


_MOVED = frozenset({TableStatus.PARTLY, TableStatus.LANDED, TableStatus.BURIED})


class Outcome(StrEnum):
    FINISHED = "finished"  # the commit was published; only the sidecar was left
    ROLLED_FORWARD = "rolled_forward"  # all tables were committed; the commit is published now
    ROLLED_BACK = "rolled_back"  # some tables were committed; they are restored
    DISCARDED = "discarded"  # no table was committed
    BRANCH_GONE = "branch_gone"  # the branch was deleted; there is nothing to keep
    STUCK = "stuck"  # the state contradicts the sidecar; nothing may be changed


@dataclass(frozen=True, slots=True)
class Decision:
    outcome: Outcome
    statuses: tuple[TableStatus, ...]

    def restores(self, sidecar: Sidecar, *, fence: bool) -> list[TableIntent]:
        """The tables that must be restored. A fork that was created for the commit is not restored,
        because it is unreferenced. `fence`: also restore unchanged tables, because their writer may
        only be paused: Lance rejects its commits after a restore."""
        if self.outcome not in (Outcome.ROLLED_BACK, Outcome.DISCARDED):
            return []
        wanted = {*_MOVED, TableStatus.FENCED}
        if fence:
            wanted.add(TableStatus.UNTOUCHED)
        return [
            table
            for table, status in zip(sidecar.tables, self.statuses, strict=True)
            if status in wanted and not table.fresh
        ]


def decide(sidecar: Sidecar, heads: Sequence[LineHead], settled: bool) -> Decision:
    """Decide about a sidecar. `heads` are the HEADs of its tables in order; `settled`: the history
    of the branch already contains its commit or its recovery."""
    statuses = tuple(
        classify(table, head) for table, head in zip(sidecar.tables, heads, strict=True)
    )
    return Decision(_outcome(sidecar, statuses, settled), statuses)


def classify(table: TableIntent, head: LineHead) -> TableStatus:
    if head.version == 0 and table.fresh:
        return TableStatus.UNTOUCHED  # not created, or its fork was removed
    if head.version < table.expected:
        return TableStatus.BELOW
    if head.version == table.expected:
        return TableStatus.UNTOUCHED
    if head.transaction != table.transaction:
        return TableStatus.FENCED if head.restored else TableStatus.FOREIGN
    if head.then != table.then[: len(head.then)]:
        return TableStatus.BURIED
    missing = table.expected + 1 + len(table.then) - head.version
    if missing > 0:
        return TableStatus.PARTLY
    return TableStatus.LANDED if missing == 0 else TableStatus.BURIED


def _outcome(sidecar: Sidecar, statuses: Sequence[TableStatus], settled: bool) -> Outcome:
    seen = set(statuses)
    if TableStatus.BELOW in seen:
        return Outcome.STUCK
    if settled:
        return Outcome.FINISHED
    ours = seen & _MOVED
    if seen <= {TableStatus.LANDED}:
        sure = sidecar.confirmed or not sidecar.needs_confirmation
        trusted = sure and not sidecar.condemned
        return Outcome.ROLLED_FORWARD if trusted else Outcome.ROLLED_BACK
    if not ours:
        return Outcome.DISCARDED
    return Outcome.STUCK if TableStatus.FOREIGN in seen else Outcome.ROLLED_BACK
