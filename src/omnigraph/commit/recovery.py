"""Recovery: completes or rolls back interrupted writes.

Runs under the writer lock of the branch. A writer that finds a sidecar only rolls forward (`heal`);
rolling back requires a read-write open (`sweep`).

On local disk a lock ends only with its process, so recovery never runs concurrently with the
interrupted writer. A lease can also be lost by a writer that was paused and then continues. In that
case recovery restores every table of the operation, changed or not, because Lance rejects commits
that are based on a version before a restore. The manifest likewise rejects a publish that is based
on a version before the publish of recovery.

Guarantees: all tables of an operation are rolled forward or back together; each recovery writes one
audit row; repeating an interrupted recovery gives the same result.
Deliberately absent: the decision itself (`decide`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import replace

from omnigraph import faults
from omnigraph.commit import audit, journal
from omnigraph.commit.decide import Decision, Outcome, TableStatus, decide
from omnigraph.commit.journal import Sidecar
from omnigraph.commit.publish import claim, publish
from omnigraph.errors import (
    ConflictError,
    InvariantViolationError,
    LockTimeoutError,
    OmniGraphError,
    RecoveryRequiredError,
    StorageError,
)
from omnigraph.history.log import BranchLog
from omnigraph.history.refs import list_branches
from omnigraph.model.commit import RECOVERY_ACTOR, Commit, CommitKind
from omnigraph.model.snapshot import TableVersion
from omnigraph.model.ulid import new_ulid
from omnigraph.storage.locks import LockToken, writer_lock
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.tablehead import observe, restore

log = logging.getLogger(__name__)


def heal(root: GraphRoot, line: BranchLog, token: LockToken) -> BranchLog:
    """Complete pending operations of this branch that can be rolled forward.

    Returns the branch afterwards. The caller holds its lock.
    """
    for sidecar in list(journal.pending(root)):
        if sidecar.branch_id == line.branch_id:
            _recover(root, line, token, sidecar, may_roll_back=False)
            line = BranchLog(root, line.branch_id)
    return line


def refresh(root: GraphRoot, branch_id: str, *, lock_timeout_ms: int = 30_000) -> None:
    """Complete pending operations of a branch, as a writer would, for a handle that only reads."""
    if not any(sidecar.branch_id == branch_id for sidecar in journal.pending(root)):
        return
    with writer_lock(
        root.objects,
        branch_id,
        owner=RECOVERY_ACTOR,
        operation="recovery",
        timeout_ms=lock_timeout_ms,
    ) as token:
        heal(root, BranchLog(root, branch_id), token)


def sweep(root: GraphRoot, *, lock_timeout_ms: int = 30_000) -> list[Outcome]:
    """Recover every sidecar of the graph. Called when it is opened read-write."""
    outcomes = []
    for sidecar in list(journal.pending(root)):
        try:
            with writer_lock(
                root.objects,
                sidecar.branch_id,
                owner=RECOVERY_ACTOR,
                operation="recovery",
                timeout_ms=lock_timeout_ms,
            ) as token:
                # Read again: its writer may have confirmed or finished it while we waited.
                current = journal.read(root, sidecar.id)
                if current is not None:
                    outcomes.append(_sweep_one(root, token, current))
        except LockTimeoutError as error:
            # The sidecar of a running writer, or one that it recovers before its own work.
            log.warning("the recovery record %s was left to its owner: %s", sidecar.id, error)
    return outcomes


def drift_advice(root: GraphRoot, path: str, branch_id: str) -> OmniGraphError:
    """The error for a table whose HEAD is newer than the manifest, with the matching remedy."""
    what = f"The table {path} has a version that the manifest does not know."
    try:
        covered = any(
            sidecar.branch_id == branch_id and any(table.path == path for table in sidecar.tables)
            for sidecar in journal.pending(root)
        )
    except OmniGraphError as error:
        return RecoveryRequiredError(
            f"{what} The recovery records could not be listed ({error.message}).",
            hint="Reopen the graph read-write if an operation was interrupted; otherwise run "
            "`omnigraph repair`.",
        )
    if covered:
        return RecoveryRequiredError(f"{what} It was left by an interrupted operation.")
    return RecoveryRequiredError(
        f"{what} No recovery record explains it.",
        hint="Run `omnigraph repair` to inspect it and to publish or discard it.",
    )


def _sweep_one(root: GraphRoot, token: LockToken, sidecar: Sidecar) -> Outcome:
    if sidecar.branch_id not in {branch.id for branch in list_branches(root)}:
        statuses = tuple(TableStatus.UNTOUCHED for _ in sidecar.tables)
        _close(root, sidecar, Decision(Outcome.BRANCH_GONE, statuses), None)
        return Outcome.BRANCH_GONE
    return _recover(root, BranchLog(root, sidecar.branch_id), token, sidecar, may_roll_back=True)


def _recover(
    root: GraphRoot, line: BranchLog, token: LockToken, sidecar: Sidecar, *, may_roll_back: bool
) -> Outcome:
    settled_by = _settling_commit(line, sidecar)
    heads = [
        observe(root, t.path, t.fork, t.expected, steps=1 + len(t.then)) for t in sidecar.tables
    ]
    decision = decide(sidecar, heads, settled=settled_by is not None)
    if decision.outcome is Outcome.STUCK:
        raise _stuck(sidecar, decision)
    if decision.outcome is Outcome.ROLLED_BACK and not may_roll_back:
        raise RecoveryRequiredError(
            f"Operation {sidecar.id} was interrupted and must be rolled back.",
            hint="Close the graph and open it read-write, which rolls the operation back.",
            operation_id=sidecar.id,
        )
    if settled_by is None:
        settled_by = _settle(root, line, token, sidecar, decision)
    _close(root, sidecar, decision, settled_by)
    return decision.outcome


def _settle(
    root: GraphRoot, line: BranchLog, token: LockToken, sidecar: Sidecar, decision: Decision
) -> str:
    """Publish the decision; returns the id of its commit."""
    if decision.outcome is Outcome.ROLLED_FORWARD:
        commits = _roll_forward(sidecar)
    else:
        commits = [_roll_back(root, line, sidecar, decision)]
    faults.hit("recovery.before_publish")
    published = publish(line, commits, claim(line, token), _refuse_any_change)
    faults.hit("recovery.after_publish")
    return published[-1].id


def _settling_commit(line: BranchLog, sidecar: Sidecar) -> str | None:
    """The commit in the history that already completes this sidecar."""
    first, last = sidecar.commits[0], sidecar.commits[-1]
    for commit in line.own_commits(line.state.head.sequence, first.sequence):
        if commit.id == last.id or commit.details.get("recovers") == sidecar.id:
            return commit.id
    return None


def _roll_forward(sidecar: Sidecar) -> list[Commit]:
    """Publish the commits of the interrupted writer, with the recovery actor."""
    details = _details(sidecar, Outcome.ROLLED_FORWARD)
    return [
        replace(commit, actor=RECOVERY_ACTOR, details={**commit.details, **details})
        for commit in sidecar.commits
    ]


def _roll_back(root: GraphRoot, line: BranchLog, sidecar: Sidecar, decision: Decision) -> Commit:
    """Restore changed tables; returns the commit that references the restored versions."""
    first = sidecar.commits[0]
    return Commit(
        id=new_ulid(),
        sequence=0,
        parents=first.parents[:1],
        branch=sidecar.branch,
        actor=RECOVERY_ACTOR,
        kind=CommitKind.RECOVERY,
        message=f"{decision.outcome} {sidecar.kind} {sidecar.id}",
        created_at_us=max(time.time_ns() // 1000, first.created_at_us + 1),
        schema_hash=line.state.head.schema_hash,
        changes=tuple(_restore_tables(root, line, sidecar, decision)),
        details=_details(sidecar, decision.outcome),
    )


def _restore_tables(
    root: GraphRoot, line: BranchLog, sidecar: Sidecar, decision: Decision
) -> Iterator[TableVersion]:
    for table in decision.restores(sidecar, fence=root.location.scheme == "s3"):
        pinned = line.state.tables.get(table.table_id)
        if pinned is None or (pinned.path, pinned.fork) != (table.path, table.fork):
            continue  # the manifest does not reference this fork
        faults.hit("recovery.before_restore")
        head = restore(root, table.path, table.fork, pinned.version)
        faults.hit("recovery.after_restore")
        yield replace(pinned, version=head)


def _details(sidecar: Sidecar, outcome: Outcome) -> dict[str, str]:
    return {
        "recovers": sidecar.id,
        "outcome": str(outcome),
        "original_actor": sidecar.actor,
        "original_kind": sidecar.kind,
    }


def _close(root: GraphRoot, sidecar: Sidecar, decision: Decision, commit_id: str | None) -> None:
    """Write the audit row, then delete the sidecar. If it cannot be deleted, the recovery is
    complete nevertheless; the next recovery finds the audit row and only repeats the deletion."""
    audit.record(root, sidecar, decision, commit_id)
    try:
        faults.hit("recovery.before_erase")
        root.objects.delete(journal.sidecar_path(sidecar.id))
        faults.hit("recovery.after_erase")
    except StorageError as error:
        log.warning("the recovery record %s could not be deleted: %s", sidecar.id, error)


def _refuse_any_change(line: BranchLog) -> None:
    raise ConflictError(f"The branch {line.branch_id} moved while it was being recovered.")


def _stuck(sidecar: Sidecar, decision: Decision) -> InvariantViolationError:
    seen = ", ".join(
        f"{table.path}: {status}"
        for table, status in zip(sidecar.tables, decision.statuses, strict=True)
    )
    return InvariantViolationError(
        f"Operation {sidecar.id} cannot be recovered automatically ({seen}); its record was kept.",
        hint="Open the graph read-only to look at the data; run `omnigraph repair` to decide.",
        operation_id=sidecar.id,
    )
