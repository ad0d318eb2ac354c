"""Publish: makes commits visible.

Guarantees: one compare-and-set on the branch's manifest; lineage and table versions land in the
same write; a stale lock token never publishes; when the store's answer is lost, the manifest is
queried for the outcome before the call returns; commit times never decrease along a branch, even if
the clocks of writers differ; with durability `power` all files of the graph are on the disk before
the publish, and the publish is on the disk before this module returns.
Deliberately absent: moving tables (`door`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from omnigraph.errors import (
    CommitOutcomeUnknownError,
    ConflictError,
    DurabilityError,
    GraphReplacedError,
    ReadSetChangedError,
    StorageError,
    StorageTransientError,
    StorageUnknownError,
)
from omnigraph.history.log import BranchLog
from omnigraph.history.manifestrows import advance, encode_state
from omnigraph.model.commit import Commit
from omnigraph.storage.locks import LockToken
from omnigraph.storage.manifest import manifest_path

# How often a publish is attempted, after conflicts with other publishers and store failures.
PUBLISH_ATTEMPTS = 5
_PAUSE_S = 0.02
_PASSING = (StorageTransientError, StorageUnknownError)


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to publish on a branch: a held lock, and the fencing token seen when it was
    acquired."""

    token: LockToken
    fence: int


def claim(line: BranchLog, token: LockToken) -> Claim:
    # A graph that was copied without its locks restarts its tokens at 1; the copied fence is still
    # valid.
    return Claim(token, max(token.token, line.state.fence))


def publish(
    line: BranchLog,
    commits: Sequence[Commit],
    claimed: Claim,
    recheck: Callable[[BranchLog], None],
) -> list[Commit]:
    """Make `commits` the newest of the line; returns them as they were published.

    `recheck` must raise if the newer state of the branch does not allow the commits.
    """
    line.root.force_all(change.path for commit in commits for change in commit.changes)
    published = _publish(line, commits, claimed, recheck)
    _force_published(line, published)
    return published


def _publish(
    line: BranchLog,
    commits: Sequence[Commit],
    claimed: Claim,
    recheck: Callable[[BranchLog], None],
) -> list[Commit]:
    begun_on = line
    for attempt in range(1, PUBLISH_ATTEMPTS + 1):
        _refuse_replacement(begun_on, line)
        claimed.token.check()
        _refuse_stale(line, claimed)
        numbered = number(line, commits)
        state, sealed = advance(line.state, numbered, claimed.fence)
        try:
            line.root.manifest(line.branch_id).publish(line.image, encode_state(state), sealed)
        except (ConflictError, StorageError) as error:
            before, line = line, _look_again(line, numbered, error)
            published = _published(line, numbered)
            if published is not None:
                return published
            _judge(error, attempt, numbered)
            if line.image.version != before.image.version:
                recheck(line)
        else:
            return numbered
    raise ConflictError(
        f"Other writers published the branch {PUBLISH_ATTEMPTS} times in a row.",
        hint="Retry when there are fewer concurrent writers.",
    )


def _force_published(line: BranchLog, commits: Sequence[Commit]) -> None:
    try:
        line.root.force(manifest_path(line.branch_id))
    except DurabilityError as error:
        last = commits[-1].id
        raise DurabilityError(
            f"Commit {last} is visible, but it could not be forced to the medium; a power cut may "
            f"undo it. {error.message}",
            commit_id=last,
        ) from error


def number(line: BranchLog, commits: Sequence[Commit]) -> list[Commit]:
    """Place commits on top of the head, which determines sequence, first parent and minimum
    time."""
    numbered: list[Commit] = []
    parent = line.state.head
    for commit in commits:
        parent = replace(
            commit,
            sequence=parent.sequence + 1,
            parents=(parent.id, *commit.parents[1:]),
            created_at_us=max(commit.created_at_us, parent.created_at_us + 1),
        )
        numbered.append(parent)
    return numbered


def _refuse_stale(line: BranchLog, claimed: Claim) -> None:
    if claimed.fence < line.state.fence:
        raise ReadSetChangedError(
            "Another writer took over the lock during a pause of this one; nothing was published.",
            token=claimed.fence,
            fence=line.state.fence,
        )


def _refuse_replacement(begun_on: BranchLog, line: BranchLog) -> None:
    if begun_on.image.incarnation != line.image.incarnation:
        raise GraphReplacedError(
            f"The graph at {line.root.uri} was replaced while a commit was published."
        )


def _look_again(line: BranchLog, commits: Sequence[Commit], error: Exception) -> BranchLog:
    """The branch after a publish that seems to have failed."""
    try:
        return BranchLog(line.root, line.branch_id)
    except StorageError as unreadable:
        raise _unknown(commits) from (error if isinstance(error, StorageError) else unreadable)


def _published(line: BranchLog, commits: Sequence[Commit]) -> list[Commit] | None:
    """The commits as the line holds them, or None when it does not."""
    wanted = {commit.id for commit in commits}
    oldest = commits[0].sequence
    held = [c for c in line.own_commits(line.state.head.sequence, oldest) if c.id in wanted]
    return held[::-1] if len(held) == len(wanted) else None


def _judge(error: Exception, attempt: int, commits: Sequence[Commit]) -> None:
    """Returns if a retry is useful: a repeated publish is safe, because at most one of the two can
    succeed."""
    if isinstance(error, ConflictError):
        return
    if attempt < PUBLISH_ATTEMPTS and isinstance(error, _PASSING):
        time.sleep(_PAUSE_S * 2**attempt)
        return
    if isinstance(error, StorageUnknownError):
        raise _unknown(commits) from error
    raise error


def _unknown(commits: Sequence[Commit]) -> CommitOutcomeUnknownError:
    last = commits[-1].id
    return CommitOutcomeUnknownError(
        f"The store did not confirm whether commit {last} was published.", commit_id=last
    )
