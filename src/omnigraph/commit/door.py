"""The commit protocol: publishes a proposal atomically.

    lock → heal → check → arm the sidecar → land the tables → publish → disarm → unlock

Guarantees: between arming and disarming, any later process can complete or roll back the operation;
before arming nothing has changed; an error names the failed requirement and states whether the
commit can still become visible. Retries of whole operations are the responsibility of the caller.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from omnigraph import faults
from omnigraph.commit import idempotency, journal
from omnigraph.commit.fastforward import take_over
from omnigraph.commit.idempotency import refuse_used_keys
from omnigraph.commit.journal import Sidecar, TableIntent
from omnigraph.commit.preconditions import (
    check_requirements,
    refuse_bad_texts,
    refuse_drift,
    refuse_gone,
    refuse_repeats,
    refuse_replacement,
    refuse_strangers,
)
from omnigraph.commit.publish import Claim, claim, number, publish
from omnigraph.commit.recovery import heal
from omnigraph.errors import (
    CommitOutcomeUnknownError,
    ConflictError,
    DurabilityError,
    OmniGraphError,
    RecoveryRequiredError,
    StorageError,
    StorageUnknownError,
)
from omnigraph.history.log import BranchLog
from omnigraph.history.refs import Branch, read_branch
from omnigraph.model.commit import Commit, CommitKind, FastForward, Offer, Proposal
from omnigraph.model.snapshot import TableVersion
from omnigraph.model.ulid import new_ulid
from omnigraph.storage.locks import LockToken, writer_lock
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.tablehead import (
    has_drifted,
    is_fresh,
    land,
    landed_version,
    later_ids,
    transaction_id,
)

LOCK_TIMEOUT_MS = 30_000
log = logging.getLogger(__name__)


def commit(
    root: GraphRoot,
    branch_name: str,
    actor: str,
    kind: CommitKind,
    prepare: Callable[[BranchLog], Offer | None],
    *,
    meanwhile: Callable[[], None] | None = None,
    settle: Callable[[Sequence[Commit] | None], None] | None = None,
    lock_timeout_ms: int = LOCK_TIMEOUT_MS,
) -> list[Commit]:
    """Publish what `prepare` returns for the branch, or nothing if it returns None.

    Args:
        root: The graph.
        branch_name: The branch to write to.
        actor: The owner of the lock while this runs.
        kind: The operation that the lock names to other writers.
        prepare: Called while the lock is held, with the newest state of the branch. It builds a
            proposal there, or returns one that was built before the lock was taken.
        meanwhile: Called while other writers hold the lock; it may end the wait by raising.
        settle: Called before the lock is released, with the published commits, or with None when
            certainly nothing was published.
        lock_timeout_ms: How long to wait for the lock.

    Returns:
        The commits that were published, oldest first.

    Raises:
        UsedKeyError: A request of the proposal was committed before under its idempotency key.
        ConflictError: The branch changed in a way that the proposal does not allow.
    """
    branch = read_branch(root, branch_name)
    faults.hit("commit.before_lock")
    with _locked(root, branch, actor, kind, lock_timeout_ms, meanwhile) as token:
        line = _entered(root, branch, token)
        settled = settle or (lambda commits: None)
        try:
            offer = prepare(line)
            commits = [] if offer is None else _admit(root, line, offer, token)
        except (ConflictError, StorageError):
            settled(None)  # after a table has changed, errors have other classes
            raise
        settled(commits)
        return commits


def _locked(
    root: GraphRoot,
    branch: Branch,
    actor: str,
    kind: CommitKind,
    timeout_ms: int,
    meanwhile: Callable[[], None] | None,
) -> AbstractContextManager[LockToken]:
    return writer_lock(
        root.objects,
        branch.id,
        owner=actor,
        operation=str(kind),
        timeout_ms=timeout_ms,
        meanwhile=meanwhile,
    )


def _entered(root: GraphRoot, branch: Branch, token: LockToken) -> BranchLog:
    """The current state of the branch, read under its lock."""
    faults.hit("commit.after_lock")
    refuse_gone(root, branch)
    return heal(root, BranchLog(root, branch.id), token)


def _admit(root: GraphRoot, line: BranchLog, offer: Offer, token: LockToken) -> list[Commit]:
    if isinstance(offer, FastForward):
        return take_over(line, offer.commits, claim(line, token))
    return _admit_proposal(root, line, offer, token)


def _admit_proposal(
    root: GraphRoot, line: BranchLog, proposal: Proposal, token: LockToken
) -> list[Commit]:
    refuse_repeats(proposal)
    refuse_used_keys(line, proposal)
    refuse_replacement(line, proposal)
    refuse_bad_texts(proposal)
    check_requirements(line, proposal)
    refuse_strangers(proposal.staged, line.branch_id)
    refuse_drift(root, proposal.staged, line.branch_id)
    planned = plan_commits(line, proposal)
    for one in planned:
        idempotency.remember(root, line, one)
    return _carry_out(root, line, proposal, planned, claim(line, token))


def plan_commits(line: BranchLog, proposal: Proposal) -> list[Commit]:
    """The commits of a proposal, each with the previous one as its parent."""
    first = plan_commit(line, proposal)
    others = [
        replace(
            first,
            id=one.commit_id or new_ulid(),
            parents=(),
            actor=one.actor,
            kind=one.kind,
            message=one.message,
            changes=(),
            dropped=(),
            idempotency_key=one.idempotency_key,
            details=one.details,
        )
        for one in proposal.also
    ]
    return number(line, [first, *others])


def plan_commit(line: BranchLog, proposal: Proposal) -> Commit:
    """The commit as it will be published, unless there is a concurrent publish."""
    head = line.state.head
    merged = (proposal.merged_parent,) if proposal.merged_parent else ()
    return Commit(
        id=proposal.commit_id or new_ulid(),
        sequence=head.sequence + 1,
        parents=(head.id, *merged),
        branch=proposal.base.branch,
        actor=proposal.actor,
        kind=proposal.kind,
        message=proposal.message,
        created_at_us=max(time.time_ns() // 1000, head.created_at_us + 1, proposal.after_us + 1),
        schema_hash=proposal.schema_hash or head.schema_hash,
        changes=_changes(proposal),
        dropped=proposal.dropped,
        idempotency_key=proposal.idempotency_key,
        details=proposal.details,
    )


def _changes(proposal: Proposal) -> tuple[TableVersion, ...]:
    """The table versions after the commit: staged and adopted ones."""
    label = proposal.base.incarnation
    landed = tuple(replace(landed_version(staged), incarnation=label) for staged in proposal.staged)
    written = {version.table_id for version in landed}
    taken = [version for version in proposal.adopted if version.table_id not in written]
    return (*landed, *taken)


def _carry_out(
    root: GraphRoot, line: BranchLog, proposal: Proposal, planned: Sequence[Commit], claimed: Claim
) -> list[Commit]:
    if not proposal.staged:
        return _publish(line, proposal, planned, claimed)
    sidecar = _sidecar(line.branch_id, planned, proposal)
    etag = journal.arm(root, sidecar)
    _land_all(root, sidecar, proposal, etag, claimed.token)
    try:
        published = _publish(line, proposal, planned, claimed)
    except (ConflictError, StorageError) as error:
        raise _unsettled(sidecar) from error
    except DurabilityError as error:
        if error.details.get("commit_id") is None:  # before the publish
            journal.condemn_quietly(root, sidecar)
        raise
    _disarm_quietly(root, sidecar)
    return published


def _publish(
    line: BranchLog, proposal: Proposal, planned: Sequence[Commit], claimed: Claim
) -> list[Commit]:
    faults.hit("commit.before_publish")
    published = publish(line, planned, claimed, lambda now: check_requirements(now, proposal))
    faults.hit("commit.after_publish")
    return published


def _sidecar(branch_id: str, planned: Sequence[Commit], proposal: Proposal) -> Sidecar:
    return Sidecar(
        id=planned[0].id,
        branch_id=branch_id,
        branch=planned[0].branch,
        commits=tuple(planned),
        tables=tuple(
            TableIntent(
                table_id=staged.table_id,
                path=staged.path,
                fork=staged.fork,
                expected=staged.base.version if staged.base else 0,
                transaction=transaction_id(staged),
                fresh=is_fresh(staged),
                then=later_ids(staged),
            )
            for staged in proposal.staged
        ),
        needs_confirmation=planned[0].kind is CommitKind.MERGE,
    )


def _land_all(
    root: GraphRoot, sidecar: Sidecar, proposal: Proposal, etag: str, token: LockToken
) -> None:
    """Commit every table. After a failure that changed no table the sidecar is deleted; otherwise
    it is kept for recovery."""
    landed = 0
    try:
        # The lock is held now, so a later owner finds the sidecar and fences this writer off.
        token.check()
        for write in proposal.staged:
            faults.hit("commit.before_table")
            land(root, write)
            landed += 1
            faults.hit("commit.after_table")
        if sidecar.needs_confirmation:
            journal.confirm(root, sidecar, etag)
    except (ConflictError, StorageError) as error:
        if landed == 0 and _nothing_landed(root, proposal, error):
            _disarm_quietly(root, sidecar)
            raise
        if _may_roll_forward(sidecar, landed, error):
            raise _unsettled(sidecar) from error
        raise _half_way(sidecar) from error


def _may_roll_forward(sidecar: Sidecar, landed: int, error: OmniGraphError) -> bool:
    """Whether recovery may find that all tables are committed."""
    missing = len(sidecar.tables) - landed
    if isinstance(error, StorageUnknownError):
        return missing <= 1
    return missing == 0 and not sidecar.needs_confirmation


def _nothing_landed(root: GraphRoot, proposal: Proposal, error: OmniGraphError) -> bool:
    """Whether the first table is certainly unchanged."""
    if isinstance(error, StorageUnknownError):
        return False
    try:
        return not has_drifted(root, proposal.staged[0])
    except StorageError:
        return False


def _half_way(sidecar: Sidecar) -> RecoveryRequiredError:
    return RecoveryRequiredError(
        f"Operation {sidecar.id} was interrupted; none of its changes is visible.",
        hint="Open the graph read-write, which rolls the operation back.",
        operation_id=sidecar.id,
    )


def _unsettled(sidecar: Sidecar) -> CommitOutcomeUnknownError:
    return CommitOutcomeUnknownError(
        f"Commit {sidecar.id} was written, but it is unknown whether it is visible.",
        hint="The next write or read-write open settles it; look the commit up after that, before "
        "you repeat the write.",
        commit_id=sidecar.id,
    )


def _disarm_quietly(root: GraphRoot, sidecar: Sidecar) -> None:
    """The commit is valid even if its sidecar could not be deleted; the next writer deletes it."""
    try:
        journal.disarm(root, sidecar)
    except StorageError as error:
        log.warning("the recovery record %s could not be deleted: %s", sidecar.id, error)
