"""Fast-forward: a branch adopts the commits of another branch on top of its head.

One publish, independent of the number of commits and the size of their tables; the commits keep
their ids, sequences and times; no table changes, so there is nothing to recover.
"""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph import faults
from omnigraph.commit.door import LOCK_TIMEOUT_MS
from omnigraph.commit.preconditions import refuse_gone
from omnigraph.commit.publish import claim, publish
from omnigraph.commit.recovery import heal
from omnigraph.errors import InvariantViolationError, ReadSetChangedError
from omnigraph.history.log import BranchLog
from omnigraph.history.refs import read_branch
from omnigraph.model.commit import Commit
from omnigraph.storage.locks import writer_lock
from omnigraph.storage.root import GraphRoot


def fast_forward(
    root: GraphRoot,
    branch_name: str,
    commits: Sequence[Commit],
    actor: str,
    *,
    lock_timeout_ms: int = LOCK_TIMEOUT_MS,
) -> Commit:
    """Append another branch's commits, oldest first, to this one; returns the new head."""
    branch = read_branch(root, branch_name)
    faults.hit("commit.before_lock")
    with writer_lock(
        root.objects,
        branch.id,
        owner=actor,
        operation="fast-forward",
        timeout_ms=lock_timeout_ms,
    ) as token:
        faults.hit("commit.after_lock")
        refuse_gone(root, branch)
        line = heal(root, BranchLog(root, branch.id), token)
        _check_continues(line, commits)
        faults.hit("commit.before_publish")
        published = publish(
            line, commits, claim(line, token), lambda now: _check_continues(now, commits)
        )
        faults.hit("commit.after_publish")
    if [commit.sequence for commit in published] != [commit.sequence for commit in commits]:
        raise InvariantViolationError("A fast-forward changed the numbers of the adopted commits.")
    return published[-1]


def _check_continues(line: BranchLog, commits: Sequence[Commit]) -> None:
    if commits[0].parents[0] != line.state.head.id:
        raise ReadSetChangedError("The branch got new commits while the merge was prepared.")
