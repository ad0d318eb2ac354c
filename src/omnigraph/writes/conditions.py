"""What must hold before a request is prepared: its key, the branch's head, the tables it has read.

Guarantees: the same rules for every kind of write. A used key gives the earlier outcome; the same
key with another request is refused.
"""

from __future__ import annotations

from omnigraph.commit.idempotency import earlier_outcome
from omnigraph.errors import InvalidArgumentError, PreconditionFailedError, VersionConflictError
from omnigraph.history.log import BranchLog
from omnigraph.model.commit import Commit
from omnigraph.model.snapshot import Snapshot, TableVersion
from omnigraph.model.write import WriteResult
from omnigraph.writes.request import Conditions, Request, Ticket, result_of


def check_conditions(line: BranchLog, snapshot: Snapshot, ticket: Ticket) -> WriteResult | None:
    """The outcome of the request if it was committed before, else None.

    Raises:
        InvalidArgumentError: The idempotency key was used for another request.
        PreconditionFailedError: The branch is not at the commit that the request names.
        VersionConflictError: The request changes rows, and a table that it read has changed.
    """
    request = ticket.request
    earlier = earlier_outcome(line, request.conditions.idempotency_key)
    if earlier is not None:
        return _repeated(earlier, request)
    _check_head(snapshot, request.conditions)
    _check_seen(ticket, snapshot)
    return None


def logical(version: TableVersion | None) -> int | None:
    """A number that changes with the rows of a table, and not with maintenance."""
    return version.logical if version else None


def _repeated(commit: Commit, request: Request) -> WriteResult:
    first = commit.details.get("request")
    if None not in (first, request.fingerprint) and first != request.fingerprint:
        raise InvalidArgumentError(
            f"The idempotency key {request.conditions.idempotency_key!r} was used for another "
            f"request, which became commit {commit.id}.",
            hint="Use a new key for a new request.",
        )
    return result_of(commit, repeated=True)


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
        if logical(before) != logical(now):
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
