"""The commits of a branch in the order of its history, and what each of them changed.

First-parent order; exact images; a change of the schema alone, and maintenance, are commits without
changes; a commit whose data was removed is distinguished from one that never existed.
"""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.errors import ChangeFeedGapError, HistoryReclaimedError
from omnigraph.history.ancestry import Place
from omnigraph.history.entitydiff import Shown, changes_of, diff_tables
from omnigraph.history.groups import CommitChange, change_of
from omnigraph.history.images import TableDiff, restrict
from omnigraph.history.log import lines
from omnigraph.history.refs import MAIN
from omnigraph.model.change import Change, ChangeFilter
from omnigraph.model.commit import CommitKind
from omnigraph.storage.root import GraphRoot

_STRETCH = 256
_WITHOUT_CHANGES = (CommitKind.SCHEMA, CommitKind.MAINTENANCE, CommitKind.INIT)


def commits_between(root: GraphRoot, branch_id: str, low: int, high: int) -> Iterator[Place]:
    """The commits of a branch with sequences from `low` to `high`, oldest first."""
    stretches = []
    for line, newest in lines(root, branch_id):
        first, last = max(low, line.first_own), min(high, newest)
        if first <= last:
            stretches.append((line, first, last))
        if line.first_own <= low:
            break
    for line, first, last in reversed(stretches):
        for start in range(first, last + 1, _STRETCH):
            end = min(start + _STRETCH - 1, last)
            for commit in reversed(list(line.own_commits(end, start))):
                yield Place(commit, line)


def graph_id(root: GraphRoot) -> str:
    """What tells this graph from every other: its first commit."""
    return next(commits_between(root, MAIN, 1, 1)).commit.id


def commit_changes(
    root: GraphRoot, place: Place, wanted: ChangeFilter, shown: Shown | None = None
) -> Iterator[Change]:
    """What a commit changed, in order. Raises ChangeFeedGapError if its data was removed."""
    for found in commit_diffs(root, place, wanted, shown):
        for each in changes_of(found):
            if wanted.wants_op(each.op):
                yield each


def commit_diffs(
    root: GraphRoot, place: Place, wanted: ChangeFilter, shown: Shown | None = None
) -> Iterator[TableDiff]:
    """The same as tables, piece by piece, whatever the operation."""
    change = change_of(root, place)
    if change.before is None or place.commit.kind in _WITHOUT_CHANGES:
        return
    try:
        yield from _diffs(root, change, wanted, shown)
    except ChangeFeedGapError:
        raise
    except HistoryReclaimedError as error:
        raise ChangeFeedGapError(
            f"The data of commit {place.commit.id} was removed: {error.message}",
            commit_id=place.commit.id,
        ) from error


def changes_schema(root: GraphRoot, place: Place) -> bool:
    before = change_of(root, place).before
    return before is not None and before.commit.schema_hash != place.commit.schema_hash


def _diffs(
    root: GraphRoot, change: CommitChange, wanted: ChangeFilter, shown: Shown | None
) -> Iterator[TableDiff]:
    assert change.before is not None
    before = change.before.snapshot(root, change.commit.branch)
    after = change.after.snapshot(root, change.commit.branch)
    for found in diff_tables(root, before, after, wanted, shown=shown):
        if change.only is not None:
            found = restrict(found, change.only.get(found.types.shown.id, frozenset()))
        yield found
