"""Preparing requests that give rows: members of one group, over one snapshot.

A request is evaluated against a view (what the branch shows, and what members of the same group
did before it) and gives a delta; the deltas of a group become one staged write per table and one
proposal, in which every member has a commit of its own.

Guarantees: the data that the checks of a member read is fenced, so that the group is committed only
on a state on which the checks give the same result. A member that fails does not affect the others.
Deliberately absent: repeating what was overtaken (`attempt`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from omnigraph.engines.embedded.stagedelta import stage
from omnigraph.engines.embedded.view import LOOKUPS, View
from omnigraph.history.log import BranchLog
from omnigraph.model.commit import (
    Commit,
    HeadIs,
    Proposal,
    Requirement,
    Signature,
    TableUnchanged,
)
from omnigraph.model.snapshot import Snapshot
from omnigraph.model.write import WriteResult
from omnigraph.rows.deltas import Delta, TableDelta
from omnigraph.storage.root import GraphRoot
from omnigraph.writes.conditions import check_conditions, logical
from omnigraph.writes.request import Evaluated, LoneRequest, RowRequest, Ticket

# A member that changes more rows than this is published alone, because its commit lists them.
MOST_LISTED = 64


@dataclass(frozen=True)
class _Member:
    ticket: Ticket
    evaluated: Evaluated
    reads: frozenset[int]


@dataclass(frozen=True)
class _Group:
    """A group over one snapshot. `settled` are outcomes that hold if the group is published."""

    root: GraphRoot
    snapshot: Snapshot
    members: tuple[_Member, ...]
    settled: tuple[tuple[Ticket, WriteResult | Exception], ...]
    delta: Delta
    offer: Proposal | None

    @property
    def involved(self) -> list[Ticket]:
        return [member.ticket for member in self.members]

    def settle(self, commits: Sequence[Commit]) -> None:
        for ticket, outcome in self.settled:
            ticket.finish(outcome)
        for place, member in enumerate(self.members):
            commit = commits[place] if commits else None
            affected = member.evaluated.affected if commit else {}
            member.ticket.finish(WriteResult(commit, affected))
        for version in commits[0].changes if commits else ():
            delta = self.delta[version.table_id]
            LOOKUPS.moved(self.root, self.snapshot.table(version.table_id), version, delta)


def prepare_rows(line: BranchLog, snapshot: Snapshot, tickets: Sequence[Ticket]) -> _Group:
    """The tickets that fit together, evaluated and staged."""
    root = line.root
    members: list[_Member] = []
    settled: list[tuple[Ticket, WriteResult | Exception]] = []
    view, joined = _evaluate_equals(View(root, snapshot), tickets)
    members.extend(joined)
    for ticket in tickets[len(joined) :]:
        if members and not _may_follow(ticket):
            continue
        outcome = _evaluate(line, view.again(), ticket)
        if not isinstance(outcome, _Member):
            settled.append((ticket, outcome))
        elif _fits(outcome, members, view.over):
            members.append(outcome)
            view = view.followed_by(outcome.evaluated.delta)
        else:
            ticket.seen.clear()  # it starts again, after the members that it cannot share with
    proposal = _proposal(line, snapshot, members, view.over) if members else None
    return _Group(root, snapshot, tuple(members), tuple(settled), view.over, proposal)


def _evaluate_equals(view: View, tickets: Sequence[Ticket]) -> tuple[View, list[_Member]]:
    """The first tickets with equal queries, evaluated together; otherwise none."""
    equals = _leading_equals(tickets)
    joint = _rows_of(equals[0]).joint if len(equals) > 1 else None
    if joint is None:
        return view, []
    asked = view.again()
    found = joint.evaluate(asked, [ticket.request for ticket in equals])
    if found is None:
        return view, []
    reads = frozenset(asked.reads)
    members = [_Member(t, e, reads) for t, e in zip(equals, found.each, strict=True)]
    return view.followed_by(found.whole), members


def _evaluate(line: BranchLog, view: View, ticket: Ticket) -> _Member | WriteResult | Exception:
    snapshot = view.snapshot
    try:
        earlier = check_conditions(line, snapshot, ticket)
        if earlier is not None:
            return earlier
        evaluated = _rows_of(ticket).evaluate(view)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is this member's alone
        return error
    finally:
        for table_id in view.reads:
            ticket.seen.setdefault(table_id, snapshot.table(table_id))
    moving = {i: change for i, change in evaluated.delta.items() if not change.is_empty}
    if not moving:
        return WriteResult(None, evaluated.affected)
    return _Member(ticket, Evaluated(moving, evaluated.affected), frozenset(view.reads))


def _rows_of(ticket: Ticket) -> RowRequest:
    assert not isinstance(ticket.request, LoneRequest)
    return ticket.request


def _proposal(
    line: BranchLog, snapshot: Snapshot, members: Sequence[_Member], over: Delta
) -> Proposal | None:
    staged = stage(View(line.root, snapshot), line.branch_id, over)
    if not staged:
        return None
    signatures = _signatures(members)
    first = signatures[0]
    return Proposal(
        base=snapshot,
        staged=staged,
        actor=first.actor,
        kind=first.kind,
        message=first.message,
        requires=tuple(_requirements(snapshot, members)),
        idempotency_key=first.idempotency_key,
        details=first.details,
        also=signatures[1:],
        commit_id=first.commit_id,
    )


def _leading_equals(tickets: Sequence[Ticket]) -> list[Ticket]:
    """The first tickets, while they share a `joint` and have no condition."""
    joint = _rows_of(tickets[0]).joint
    if joint is None:
        return []
    return list(takewhile(lambda t: _rows_of(t).joint == joint and _is_plain(t), tickets))


def _is_plain(ticket: Ticket) -> bool:
    conditions = ticket.request.conditions
    return conditions.if_commit is None and conditions.idempotency_key is None


def _may_follow(ticket: Ticket) -> bool:
    """A condition on the head can only be met by the first member of a group."""
    return ticket.request.conditions.if_commit is None


def _fits(member: _Member, members: Sequence[_Member], over: Delta) -> bool:
    """Whether a member can share the staged writes of those before it.

    Each row belongs to one member, so that the changes of every commit can be determined. Guests
    may only write to tables that we also write to. So they cannot cause errors in other tables, and
    a write to one table, which recovery can always complete, remains one.
    """
    delta = member.evaluated.delta
    if member.ticket.is_guest and not delta.keys() <= over.keys():
        return False
    if not members:
        return True
    if _touched(delta) > MOST_LISTED or _touched(members[0].evaluated.delta) > MOST_LISTED:
        return False
    return all(_apart(over[i], change) for i, change in delta.items() if i in over)


def _apart(one: TableDelta, other: TableDelta) -> bool:
    if one.replaces or other.replaces:
        return False
    if one.fresh and other.fresh:
        return True
    mine = {*one.ids.to_pylist(), *one.removed.to_pylist()}
    return mine.isdisjoint([*other.ids.to_pylist(), *other.removed.to_pylist()])


def _touched(delta: Delta) -> int:
    return sum(change.rows.num_rows + len(change.removed) for change in delta.values())


def _requirements(snapshot: Snapshot, members: Sequence[_Member]) -> list[Requirement]:
    found: list[Requirement] = []
    if_commit = members[0].ticket.request.conditions.if_commit
    if if_commit is not None:
        found.append(HeadIs(if_commit))
    for table_id in sorted({table_id for member in members for table_id in member.reads}):
        found.append(TableUnchanged(table_id, logical(snapshot.table(table_id))))
    return found


def _signatures(members: Sequence[_Member]) -> tuple[Signature, ...]:
    return tuple(
        Signature(
            actor=member.ticket.request.conditions.actor,
            kind=member.ticket.request.kind,
            message=member.ticket.request.conditions.message,
            idempotency_key=member.ticket.request.conditions.idempotency_key,
            details=_details(member, place, len(members)),
            commit_id=member.ticket.commit_id,
        )
        for place, member in enumerate(members)
    )


def _details(member: _Member, place: int, size: int) -> dict[str, Any]:
    request = member.ticket.request
    details: dict[str, Any] = {
        **request.conditions.details,
        "affected": {name: a.to_json() for name, a in member.evaluated.affected.items()},
    }
    if request.conditions.idempotency_key is not None and request.fingerprint is not None:
        details["request"] = request.fingerprint
    if size > 1:
        # The table versions are in the first commit; these are the rows of this commit.
        details["group"] = {
            "place": place,
            "size": size,
            "rows": {
                str(table_id): [*change.ids.to_pylist(), *change.removed.to_pylist()]
                for table_id, change in member.evaluated.delta.items()
            },
        }
    return details
