"""Execution of write requests, from evaluation to the commit, with retries.

A request is evaluated against a view (what the branch shows, and what members of the same group
did before it) and gives a delta; the deltas of a group become one staged write per table and one
publish, in which every member has a commit of its own.

    prepare → stage → door; on a conflict: prepare again, now holding the branch's lock

Guarantees: the data that the checks of a write read is fenced, so that the write is committed only
on a state on which the checks give the same result; inserts and upserts are prepared again after a
conflict with a concurrent commit, at most `ATTEMPTS` times; a request that changes existing rows
fails with the conflict instead, unless only maintenance happened in between. A member that fails
does not affect the others.
Deliberately absent: forming groups (`groupcommit`), writing for other processes (`handoff`), and
the semantics of requests.
"""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from omnigraph.commit.door import commit_all, commit_prepared
from omnigraph.commit.idempotency import earlier_outcome
from omnigraph.engines.embedded.stagedelta import stage
from omnigraph.engines.embedded.view import LOOKUPS, View
from omnigraph.errors import (
    ConflictError,
    InvalidArgumentError,
    LockTimeoutError,
    OmniGraphError,
    PreconditionFailedError,
    VersionConflictError,
)
from omnigraph.history.log import BranchLog
from omnigraph.history.refs import read_branch
from omnigraph.history.resolve import head_snapshot
from omnigraph.model.commit import (
    Commit,
    HeadIs,
    Proposal,
    Requirement,
    Signature,
    TableUnchanged,
)
from omnigraph.model.snapshot import Snapshot, TableVersion
from omnigraph.model.write import WriteResult
from omnigraph.rows.deltas import Delta, TableDelta
from omnigraph.storage.root import GraphRoot
from omnigraph.writes.handoff import AnsweredError, Guests, Waiting
from omnigraph.writes.request import Conditions, Evaluated, Request, Ticket, result_of

ATTEMPTS = 5
# A member that changes more rows than this is published alone, because its commit lists them.
MOST_LISTED = 64
# After a conflict, writes to the branch are prepared under its lock for this time.
_CONTENDED_S = 2.0


@dataclass(frozen=True)
class _Member:
    ticket: Ticket
    evaluated: Evaluated
    reads: frozenset[int]


@dataclass(frozen=True)
class _Prepared:
    """A group over one snapshot. `settled` are outcomes that hold if the group is published."""

    snapshot: Snapshot
    members: tuple[_Member, ...]
    settled: tuple[tuple[Ticket, WriteResult | Exception], ...]
    delta: Delta
    proposal: Proposal | None

    @property
    def involved(self) -> list[Ticket]:
        return [member.ticket for member in self.members]


class BranchWriter:
    """Executes requests to one branch and commits them."""

    def __init__(self, root: GraphRoot, branch: str) -> None:
        self.root = root
        self.branch = branch

    def write(self, tickets: Sequence[Ticket], *, optimistic: int = 1) -> None:
        """Execute as many tickets as fit together; the others are left for the next group.

        The first `optimistic` attempts are prepared without holding the lock.
        """
        for attempt in range(ATTEMPTS):
            waiting = [ticket for ticket in tickets if not ticket.is_done]
            if not waiting:
                return
            locked = attempt >= optimistic or (attempt == 0 and self._skips_ahead(waiting))
            # The tickets that get an error: all, until the members are known.
            involved = list(waiting)
            try:
                self._attempt(waiting, locked, involved)
                return
            except OmniGraphError as error:
                if attempt + 1 == ATTEMPTS or not _may_repeat(error):
                    _fail(involved, error)
                    return
                _note_contention(self.root, self.branch)

    def _skips_ahead(self, tickets: Sequence[Ticket]) -> bool:
        """Whether to skip the optimistic attempt, because the branch was contended recently."""
        if any(ticket.request.is_strict for ticket in tickets):
            return False
        return _is_contended(self.root, self.branch)

    def _attempt(self, tickets: Sequence[Ticket], locked: bool, involved: list[Ticket]) -> None:
        if locked:
            self._attempt_locked(tickets, involved)
            return
        line = BranchLog(self.root, read_branch(self.root, self.branch).id)
        prepared = self._prepare(line, tickets)
        involved[:] = prepared.involved
        commits = commit_all(self.root, prepared.proposal) if prepared.proposal else []
        self._settle(prepared, commits)

    def _attempt_locked(self, tickets: Sequence[Ticket], involved: list[Ticket]) -> None:
        """While another process owns the lock, it may execute our tickets; once we own it, we
        execute those of other processes together with ours."""
        first = tickets[0].request
        guests = Guests(self.root, tickets)
        prepared: list[_Prepared] = []

        def prepare(line: BranchLog) -> Proposal | None:
            ours = waiting.settle(line)
            if not ours:
                return None
            prepared.append(self._prepare_with(line, ours, guests))
            involved[:] = prepared[0].involved
            return prepared[0].proposal

        def settle(commits: Sequence[Commit] | None) -> None:
            if prepared and commits is not None:
                self._settle(prepared[0], commits)
            guests.answer()

        with Waiting(self.root, self.branch, tickets) as waiting, suppress(AnsweredError):
            commit_prepared(
                self.root,
                self.branch,
                first.conditions.actor,
                first.kind,
                prepare,
                meanwhile=waiting.look,
                settle=settle,
            )
        if guests.were_there or waiting.was_served:
            _note_contention(self.root, self.branch)

    # Preparing

    def _prepare_with(self, line: BranchLog, ours: Sequence[Ticket], guests: Guests) -> _Prepared:
        """Our tickets and those of guests (other processes); only ours if the guests cause a
        failure."""
        invited = guests.take(line)
        try:
            return self._prepare(line, [*ours, *invited])
        except Exception:
            if not invited:
                raise
            guests.answer()
            return self._prepare(line, ours)

    def _prepare(self, line: BranchLog, tickets: Sequence[Ticket]) -> _Prepared:
        snapshot = head_snapshot(self.root, self.branch, line)
        members: list[_Member] = []
        settled: list[tuple[Ticket, WriteResult | Exception]] = []
        view, joined = self._evaluate_equals(View(self.root, snapshot), tickets)
        members.extend(joined)
        for ticket in tickets[len(joined) :]:
            if members and not _may_follow(ticket):
                continue
            outcome = self._evaluate(line, view.again(), ticket)
            if not isinstance(outcome, _Member):
                settled.append((ticket, outcome))
            elif _fits(outcome, members, view.over):
                members.append(outcome)
                view = view.followed_by(outcome.evaluated.delta)
            else:
                ticket.seen.clear()  # it starts again, after the members that it cannot share with
        proposal = self._proposal(line, snapshot, members, view.over) if members else None
        return _Prepared(snapshot, tuple(members), tuple(settled), view.over, proposal)

    def _evaluate_equals(self, view: View, tickets: Sequence[Ticket]) -> tuple[View, list[_Member]]:
        """The first tickets with equal queries, evaluated together; otherwise none."""
        equals = _leading_equals(tickets)
        joint = equals[0].request.joint if len(equals) > 1 else None
        if joint is None:
            return view, []
        asked = view.again()
        found = joint.evaluate(asked, [ticket.request for ticket in equals])
        if found is None:
            return view, []
        reads = frozenset(asked.reads)
        members = [_Member(t, e, reads) for t, e in zip(equals, found.each, strict=True)]
        return view.followed_by(found.whole), members

    def _evaluate(
        self, line: BranchLog, view: View, ticket: Ticket
    ) -> _Member | WriteResult | Exception:
        request, snapshot = ticket.request, view.snapshot
        try:
            earlier = earlier_outcome(line, request.conditions.idempotency_key)
            if earlier is not None:
                return _repeated(earlier, request)
            _check_head(snapshot, request.conditions)
            _check_seen(ticket, snapshot)
            evaluated = request.evaluate(view)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is this member's alone
            return error
        finally:
            for table_id in view.reads:
                ticket.seen.setdefault(table_id, snapshot.table(table_id))
        moving = {i: change for i, change in evaluated.delta.items() if not change.is_empty}
        if not moving:
            return WriteResult(None, evaluated.affected)
        return _Member(ticket, Evaluated(moving, evaluated.affected), frozenset(view.reads))

    def _proposal(
        self, line: BranchLog, snapshot: Snapshot, members: Sequence[_Member], over: Delta
    ) -> Proposal | None:
        staged = stage(View(self.root, snapshot), line.branch_id, over)
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

    # Settling

    def _settle(self, prepared: _Prepared, commits: Sequence[Commit]) -> None:
        for ticket, outcome in prepared.settled:
            _finish(ticket, outcome)
        for place, member in enumerate(prepared.members):
            commit = commits[place] if commits else None
            affected = member.evaluated.affected if commit else {}
            _finish(member.ticket, WriteResult(commit, affected))
        for version in commits[0].changes if commits else ():
            delta = prepared.delta[version.table_id]
            LOOKUPS.moved(self.root, prepared.snapshot.table(version.table_id), version, delta)


def _may_repeat(error: OmniGraphError) -> bool:
    """Whether to prepare the write again. A condition that failed under the lock concerns one
    member only, which gets the error when it is evaluated again."""
    if isinstance(error, LockTimeoutError):
        return False
    return isinstance(error, PreconditionFailedError) or (
        isinstance(error, ConflictError) and error.retryable
    )


def _leading_equals(tickets: Sequence[Ticket]) -> list[Ticket]:
    """The first tickets, while they share a `joint` and have no condition."""
    joint = tickets[0].request.joint
    if joint is None:
        return []
    return list(takewhile(lambda t: t.request.joint == joint and _is_plain(t), tickets))


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


def _check_head(snapshot: Snapshot, conditions: Conditions) -> None:
    if conditions.if_commit not in (None, snapshot.commit_id):
        raise PreconditionFailedError(
            f"The head of the branch is {snapshot.commit_id}, not {conditions.if_commit}.",
            expected=conditions.if_commit,
            actual=snapshot.commit_id,
        )


def _check_seen(ticket: Ticket, snapshot: Snapshot) -> None:
    """A request that changes existing rows continues only if the data that it read is unchanged."""
    if not ticket.request.is_strict:
        return
    for table_id, before in ticket.seen.items():
        now = snapshot.table(table_id)
        if _logical(before) != _logical(now):
            table = snapshot.catalog.table(table_id)
            name = table.name if table else f"table {table_id}"
            expected, actual = (v.version if v else None for v in (before, now))
            raise VersionConflictError(
                f"Another commit changed {name} while this write was prepared: it read version "
                f"{expected}, and now there is {actual}.",
                table=name,
                expected=expected,
                actual=actual,
                maintenance_only=False,
            )


def _logical(version: TableVersion | None) -> int | None:
    return version.logical if version else None


def _requirements(snapshot: Snapshot, members: Sequence[_Member]) -> list[Requirement]:
    found: list[Requirement] = []
    if_commit = members[0].ticket.request.conditions.if_commit
    if if_commit is not None:
        found.append(HeadIs(if_commit))
    for table_id in sorted({table_id for member in members for table_id in member.reads}):
        found.append(TableUnchanged(table_id, _logical(snapshot.table(table_id))))
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


def _repeated(commit: Commit, request: Request) -> WriteResult:
    first = commit.details.get("request")
    if None not in (first, request.fingerprint) and first != request.fingerprint:
        raise InvalidArgumentError(
            f"The idempotency key {request.conditions.idempotency_key!r} was used for another "
            f"request, which became commit {commit.id}.",
            hint="Use a new key for a new request.",
        )
    return result_of(commit, repeated=True)


def _finish(ticket: Ticket, outcome: WriteResult | Exception) -> None:
    if isinstance(outcome, WriteResult):
        ticket.result = outcome
    else:
        ticket.error = outcome


def _fail(tickets: Sequence[Ticket], error: OmniGraphError) -> None:
    """Give each ticket its own copy of the error, because several threads raise it."""
    for ticket in tickets:
        if not ticket.is_done:
            ticket.error = copy.copy(error)
            ticket.error.__cause__ = error.__cause__


# Branches with recent conflicts.

_contended: dict[tuple[str, str], float] = {}
_contended_guard = threading.Lock()


def _note_contention(root: GraphRoot, branch: str) -> None:
    with _contended_guard:
        if len(_contended) > 1024:
            _contended.clear()
        _contended[root.key, branch] = time.monotonic() + _CONTENDED_S


def _is_contended(root: GraphRoot, branch: str) -> bool:
    return time.monotonic() < _contended.get((root.key, branch), 0.0)
