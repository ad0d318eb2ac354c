"""Fast-forward: a branch adopts the commits of another branch on top of its head.

One publish, independent of the number of commits and the size of their tables; the commits keep
their ids, sequences and times; no table changes, so there is nothing to recover.
"""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph import faults
from omnigraph.commit.publish import Claim, publish
from omnigraph.errors import InvariantViolationError, ReadSetChangedError
from omnigraph.history.log import BranchLog
from omnigraph.model.commit import Commit


def take_over(line: BranchLog, commits: Sequence[Commit], claimed: Claim) -> list[Commit]:
    """Append another branch's commits, oldest first, to this one. The caller holds the lock."""
    _check_continues(line, commits)
    faults.hit("commit.before_publish")
    published = publish(line, commits, claimed, lambda now: _check_continues(now, commits))
    faults.hit("commit.after_publish")
    if [commit.sequence for commit in published] != [commit.sequence for commit in commits]:
        raise InvariantViolationError("A fast-forward changed the numbers of the adopted commits.")
    return published


def _check_continues(line: BranchLog, commits: Sequence[Commit]) -> None:
    if commits[0].parents[0] != line.state.head.id:
        raise ReadSetChangedError("The branch got new commits while the merge was prepared.")
