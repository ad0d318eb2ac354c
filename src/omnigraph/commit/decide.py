"""What to do about a sidecar, as a pure function of what is seen.

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
    UNTOUCHED = "untouched"  # the head is where the writer found it
    PARTLY = "partly"  # the writer's first version is the head, and further ones were to follow
    LANDED = "landed"  # the writer's own version, the last of them, is the head
    BURIED = "buried"  # the writer's version is below the head: a roll-back had begun
    FENCED = "fenced"  # a recovery had put it back before the writer could reach it
    FOREIGN = "foreign"  # the version was written by another program
    BELOW = "below"  # the head is older than what was committed before: never right


_MOVED = frozenset({TableStatus.PARTLY, TableStatus.LANDED, TableStatus.BURIED})


class Outcome(StrEnum):
    FINISHED = "finished"  # the commit was published; only the sidecar was left
    ROLLED_FORWARD = "rolled_forward"  # every table had arrived; the commit is published now
    ROLLED_BACK = "rolled_back"  # some tables had moved; they are put back
    DISCARDED = "discarded"  # nothing had moved
    BRANCH_GONE = "branch_gone"  # the branch was deleted; there is nothing to keep
    STUCK = "stuck"  # what is seen contradicts the record; nothing may be touched


@dataclass(frozen=True, slots=True)
class Decision:
    outcome: Outcome
    statuses: tuple[TableStatus, ...]

    def restores(self, sidecar: Sidecar, *, fence: bool) -> list[TableIntent]:
        """The tables that must be put back. A line that was made for the commit needs none, since
        nothing points to it. `fence`: also those that have not moved, because their writer may
        only be paused: what it lands after a restore, Lance refuses."""
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
    """Judge a sidecar. `heads` are its tables' heads in order; `settled` says that the branch's
    history already holds its commit or a recovery of it."""
    statuses = tuple(
        classify(table, head) for table, head in zip(sidecar.tables, heads, strict=True)
    )
    return Decision(_outcome(sidecar, statuses, settled), statuses)


def classify(table: TableIntent, head: LineHead) -> TableStatus:
    if head.version == 0 and table.fresh:
        return TableStatus.UNTOUCHED  # not born, or its fork was reclaimed: it can never land
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
