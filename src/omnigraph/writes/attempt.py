"""The retry loop: requests to one branch, up to their commits.

    prepare → door; on a conflict: prepare again, in the end while holding the branch's lock

Every write of rows, loads, merges, schema changes and maintenance goes through here. A request
that shares its commit's tables with others is prepared by `rowgroup`, any other by itself
(`request.LoneRequest`).

Guarantees: after a conflict with a concurrent commit a request is prepared again, as often as its
`Attempts` allow; a request that changes existing rows fails with the conflict instead, unless only
maintenance happened in between; a request with a used idempotency key gets the earlier result. A
member that fails does not affect the others.
Deliberately absent: forming groups (`groupcommit`), writing for other processes (`handoff`), and
the semantics of requests.
"""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Sequence
from contextlib import suppress

from omnigraph.commit import door
from omnigraph.commit.idempotency import UsedKeyError
from omnigraph.errors import (
    ConflictError,
    LockTimeoutError,
    OmniGraphError,
    PreconditionFailedError,
)
from omnigraph.history.log import BranchLog
from omnigraph.history.refs import read_branch
from omnigraph.history.resolve import head_snapshot
from omnigraph.model.commit import Commit, Offer
from omnigraph.storage.root import GraphRoot
from omnigraph.writes.handoff import AnsweredError, Guests, Waiting
from omnigraph.writes.request import Attempts, LoneRequest, Prepared, Ticket
from omnigraph.writes.rowgroup import prepare_rows
from omnigraph.writes.standalone import prepare_alone

# For a request that others may wait for.
SMALL = Attempts()
# After a conflict, writes to the branch are prepared under its lock for this time.
_CONTENDED_S = 2.0


class BranchWriter:
    """Executes requests to one branch and commits them."""

    def __init__(self, root: GraphRoot, branch: str) -> None:
        self.root = root
        self.branch = branch

    def write(self, tickets: Sequence[Ticket], attempts: Attempts = SMALL) -> None:
        """Execute as many tickets as fit together; the others are left for the next group."""
        failed = 0
        while waiting := [ticket for ticket in tickets if not ticket.is_done]:
            locked = failed >= attempts.unlocked or (not failed and self._skips_ahead(waiting))
            # The tickets that get an error: all, until the members are known.
            involved = list(waiting)
            try:
                self._attempt(waiting, locked, involved)
                return
            except UsedKeyError:
                continue  # the next attempt finds the earlier commit, and prepares nothing for it
            except OmniGraphError as error:
                failed += 1
                if failed == attempts.total or not _may_repeat(error):
                    _fail(involved, error)
                    return
                _note_contention(self.root, self.branch)

    def _skips_ahead(self, tickets: Sequence[Ticket]) -> bool:
        """Whether to take the lock at once: the branch was contended, and the request is short."""
        requests = [ticket.request for ticket in tickets]
        if any(request.is_strict or isinstance(request, LoneRequest) for request in requests):
            return False
        return _is_contended(self.root, self.branch)

    def _attempt(self, tickets: Sequence[Ticket], locked: bool, involved: list[Ticket]) -> None:
        log, tickets[0].log = tickets[0].log, None
        if locked:
            self._attempt_locked(tickets, involved)
            return
        if log is None or len(tickets) > 1:
            log = BranchLog(self.root, read_branch(self.root, self.branch).id)
        prepared = self._prepare(log, tickets)
        involved[:] = prepared.involved
        offer, first = prepared.offer, tickets[0].request
        commits: Sequence[Commit] = ()
        if offer is not None:
            actor = first.conditions.actor
            commits = door.commit(self.root, self.branch, actor, first.kind, lambda line: offer)
        prepared.settle(commits)

    def _attempt_locked(self, tickets: Sequence[Ticket], involved: list[Ticket]) -> None:
        """While another process owns the lock, it may execute our tickets; once we own it, we
        execute those of other processes together with ours."""
        first = tickets[0].request
        guests = Guests(self.root, tickets)
        prepared: list[Prepared] = []

        def prepare(line: BranchLog) -> Offer | None:
            ours = waiting.settle(line)
            if not ours:
                return None
            prepared.append(self._prepare_with(line, ours, guests))
            involved[:] = prepared[0].involved
            return prepared[0].offer

        def settle(commits: Sequence[Commit] | None) -> None:
            if prepared and commits is not None:
                prepared[0].settle(commits)
            guests.answer()

        with Waiting(self.root, self.branch, tickets) as waiting, suppress(AnsweredError):
            door.commit(
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

    def _prepare_with(self, line: BranchLog, ours: Sequence[Ticket], guests: Guests) -> Prepared:
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

    def _prepare(self, line: BranchLog, tickets: Sequence[Ticket]) -> Prepared:
        snapshot = head_snapshot(self.root, self.branch, line)
        if isinstance(tickets[0].request, LoneRequest):
            return prepare_alone(line, snapshot, tickets[0])
        return prepare_rows(line, snapshot, tickets)


def _may_repeat(error: OmniGraphError) -> bool:
    """Whether to prepare the write again. A condition that failed under the lock concerns one
    member only, which gets the error when it is evaluated again."""
    if isinstance(error, LockTimeoutError):
        return False
    return isinstance(error, PreconditionFailedError) or (
        isinstance(error, ConflictError) and error.retryable
    )


def _fail(tickets: Sequence[Ticket], error: OmniGraphError) -> None:
    """Give each ticket the error; its own copy if there are several, because several threads raise
    it."""
    for ticket in tickets:
        if not ticket.is_done:
            ticket.error = error if len(tickets) == 1 else copy.copy(error)
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
