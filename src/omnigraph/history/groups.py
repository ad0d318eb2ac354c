"""What one commit changed, also when it was published in a group.

Commits that were published together share the versions of their tables: the versions stand in the
first of them, and each says which rows are its own. A row that several of them wrote counts as the
last one's, since only its last image exists.

The changes of all members together are the change of the group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph.history.ancestry import Place, parent_of
from omnigraph.history.log import BranchLog
from omnigraph.model.commit import Commit
from omnigraph.storage.root import GraphRoot

GROUP = "group"
Ids = Mapping[int, frozenset[str]]


@dataclass(frozen=True)
class CommitChange:
    """The states before and after a commit; `only` says which rows of each table are its own,
    None: all of them. Without a state before, the commit is the first of all."""

    commit: Commit
    before: Place | None
    after: Place
    only: Ids | None = None


def change_of(root: GraphRoot, place: Place) -> CommitChange:
    group = place.commit.details.get(GROUP)
    if group is None or place.line is None:
        return CommitChange(place.commit, parent_of(root, place), place)
    members = _members(place.line, place.commit, group)
    before = parent_of(root, Place(members[0], place.line))
    own = _rows(place.commit)
    for later in members[group["place"] + 1 :]:
        taken = _rows(later)
        own = {key: ids - taken.get(key, frozenset()) for key, ids in own.items()}
    return CommitChange(place.commit, before, Place(members[-1], place.line), own)


def _members(line: BranchLog, commit: Commit, group: Mapping[str, Any]) -> list[Commit]:
    first = commit.sequence - int(group["place"])
    last = first + int(group["size"]) - 1
    return list(line.own_commits(last, first))[::-1]


def _rows(commit: Commit) -> dict[int, frozenset[str]]:
    rows = commit.details[GROUP]["rows"]
    return {int(key): frozenset(ids) for key, ids in rows.items()}
