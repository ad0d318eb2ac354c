"""The list of branches: head, age, and distance from the parent branch.

A branch is *ahead* by the commits that its parent has not merged, and *behind* by those of the
parent that it has not merged. Counted are the commits of the two branches themselves.

Guarantees: the cost does not depend on how old the graph is, only on the number of branches and
on how much was merged since they began.
Deliberately absent: who may see a branch.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

import pyarrow.compute as pc

from omnigraph.history.log import BranchLog, find_by_prefix
from omnigraph.history.refs import Branch, readable_branches
from omnigraph.model.commit import Commit, CommitKind
from omnigraph.storage.root import GraphRoot

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BranchInfo:
    """`parent` is None for main, and for a branch whose parent was deleted."""

    branch: Branch
    head: Commit
    parent: str | None
    ahead: int
    behind: int
    age_us: int

    @property
    def name(self) -> str:
        return self.branch.name

    @property
    def id(self) -> str:
        return self.branch.id


def describe_branches(root: GraphRoot) -> list[BranchInfo]:
    """Every live branch, main first, then by name."""
    branches, damaged = readable_branches(root)
    for error in damaged:
        log.warning("%s", error.message)
    names = {branch.id: branch.name for branch in branches}
    return [describe(root, branch, names) for branch in branches]


def describe(root: GraphRoot, branch: Branch, names: dict[str, str]) -> BranchInfo:
    line = BranchLog(root, branch.id)
    parent = line.parent()
    head = line.state.head
    ahead, behind = _distance(line, parent) if parent else (0, 0)
    born_us = branch.created_at_us or head.created_at_us
    if parent is None:
        born_us = _first_time(line)
    return BranchInfo(
        branch=branch,
        head=head,
        parent=names.get(parent.branch_id) if parent else None,
        ahead=ahead,
        behind=behind,
        age_us=max(0, time.time_ns() // 1000 - born_us),
    )


def _distance(line: BranchLog, parent: BranchLog) -> tuple[int, int]:
    parted = _parted(line, parent)
    taken = max(parted, _last_merged(parent, line, parted))
    given = max(parted, _last_merged(line, parent, parted))
    return line.state.head.sequence - taken, parent.state.head.sequence - given


def _parted(line: BranchLog, parent: BranchLog) -> int:
    """The last sequence at which both have the same commit. That is where the branch began, unless
    one of them was fast-forwarded to the other since."""
    low = line.first_own - 1
    high = min(line.state.head.sequence, parent.state.head.sequence)
    if high == low or not _agree(line, parent, low + 1):
        return low
    while low < high:
        middle = (low + high + 1) // 2
        if _agree(line, parent, middle):
            low = middle
        else:
            high = middle - 1
    return low


def _agree(line: BranchLog, parent: BranchLog, sequence: int) -> bool:
    ours, theirs = line.commit(sequence), parent.commit(sequence)
    return ours is not None and theirs is not None and ours.id == theirs.id


def _last_merged(into: BranchLog, other: BranchLog, parted: int) -> int:
    """The sequence of the newest commit of `other` that `into` has merged since they parted."""
    newest = into.state.head.sequence
    wanted = pc.field("kind") == str(CommitKind.MERGE)
    for commit in into.own_commits(newest, parted + 1, wanted):
        for merged in commit.parents[1:]:
            found = find_by_prefix(other, merged)
            if found:
                return found[0].sequence
    return 0


def _first_time(line: BranchLog) -> int:
    """When the first commit of a line was made, without reading it."""
    segments = line.image.segments
    return segments[0].since_us if segments else line.state.recent[0].created_at_us
