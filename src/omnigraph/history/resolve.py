"""Resolves a branch, commit, version, time or tag to a snapshot.

Guarantees: a snapshot is resolved once and never changes afterwards; the newest state of a
branch costs one look at its manifest, and nothing when it has not moved.
Deliberately absent: locks. Readers take none.
"""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.arguments import checked
from omnigraph.errors import CommitNotFoundError, HistoryReclaimedError, InvalidArgumentError
from omnigraph.history.catalogs import read_catalog
from omnigraph.history.log import BranchLog, commit_at, find_before, find_by_prefix, line_of, lines
from omnigraph.history.manifestrows import whole_commit
from omnigraph.history.mergelog import find_merged
from omnigraph.history.refs import (
    MAIN,
    list_tags,
    read_branch,
    read_tag,
    readable_branches,
)
from omnigraph.model.commit import Commit
from omnigraph.model.snapshot import Snapshot
from omnigraph.model.texts import check_line
from omnigraph.storage.root import GraphRoot

MIN_PREFIX = 4


@checked
@dataclass(frozen=True, slots=True)
class Target:
    """The state to read. At most one of the last four may be set; none means the head."""

    branch: str = MAIN
    commit: str | None = None
    version: int | None = None
    timestamp_us: int | None = None
    tag: str | None = None


def resolve(root: GraphRoot, target: Target | None = None) -> Snapshot:
    target = target or Target()
    chosen = [target.commit, target.version, target.timestamp_us, target.tag]
    if sum(choice is not None for choice in chosen) > 1:
        raise InvalidArgumentError(
            "A snapshot is named by one of commit, version, timestamp and tag, not by several."
        )
    if target.tag is not None:
        tag = read_tag(root, target.tag)
        return _at(root, target.branch, BranchLog(root, tag.branch_id), tag.sequence)
    if target.commit is not None:
        line, commit = find_commit(root, target.commit, target.branch)
        return _at(root, target.branch, line, commit.sequence)
    branch_id = read_branch(root, target.branch).id
    if target.version is not None:
        line = line_of(root, branch_id, target.version)
        return _at(root, target.branch, line, target.version)
    if target.timestamp_us is not None:
        line, commit = _find_by_time(root, branch_id, target.timestamp_us)
        return _at(root, target.branch, line, commit.sequence)
    return head_snapshot(root, target.branch, BranchLog(root, branch_id))


def head_snapshot(root: GraphRoot, branch: str, line: BranchLog) -> Snapshot:
    head = line.state.head
    catalog = read_catalog(root, head.schema_hash)
    tables, incarnation = line.state.tables, line.image.incarnation
    return Snapshot(root.location, branch, head.id, head.sequence, catalog, tables, incarnation)


def find_commit(root: GraphRoot, prefix: str, branch: str = MAIN) -> tuple[BranchLog, Commit]:
    """The commit with that id or unique prefix, looked for on `branch` first, then everywhere."""
    word, prefix = prefix, check_line(prefix, "commit id").strip().upper()
    if len(prefix) < MIN_PREFIX:
        _refuse_tag(root, word)
        raise InvalidArgumentError(f"A commit prefix needs at least {MIN_PREFIX} characters.")
    found: dict[str, tuple[BranchLog, Commit]] = {}
    seen: set[str] = set()
    for branch_id in _search_order(root, branch):
        for line, _newest in lines(root, branch_id):
            if line.branch_id in seen:
                continue
            seen.add(line.branch_id)
            for commit in find_by_prefix(line, prefix):
                found[commit.id] = (line, commit)
        if prefix in found:
            return found[prefix]
    if len(found) == 1:
        return next(iter(found.values()))
    if found:
        some = ", ".join(sorted(found)[:3])
        raise InvalidArgumentError(f"{prefix} is a prefix of several commits: {some}.")
    if find_merged(root, read_branch(root, branch).id, prefix):
        raise HistoryReclaimedError(
            f"Commit {prefix} was merged into {branch!r}; the branch of that commit was deleted.",
            hint="Show it with `omnigraph commit show`, or read the merge commit.",
        )
    _refuse_tag(root, word)
    raise CommitNotFoundError(f"There is no commit {prefix}.", commit=prefix)


def _refuse_tag(root: GraphRoot, word: str) -> None:
    """What is no commit may be the name of a tag, which has an option of its own."""
    if any(tag.name == word for tag in list_tags(root)):
        raise CommitNotFoundError(
            f"{word!r} is a tag, not a commit.",
            hint=f"Name it as a tag: --tag {word}, or tag={word!r}.",
            commit=word,
        )


def find_record(root: GraphRoot, prefix: str, branch: str = MAIN) -> Commit:
    """The commit with that id or unique prefix as a record, also when its branch is gone."""
    try:
        return find_commit(root, prefix, branch)[1]
    except HistoryReclaimedError:
        found = find_merged(root, read_branch(root, branch).id, prefix.strip().upper())
        if len(found) > 1:
            some = ", ".join(sorted(each.id for each in found)[:3])
            raise InvalidArgumentError(
                f"{prefix} is a prefix of several commits: {some}."
            ) from None
        return found[0]


def _search_order(root: GraphRoot, branch: str) -> list[str]:
    first = read_branch(root, branch).id
    others = [other.id for other in readable_branches(root)[0]]
    return [first, *(other for other in others if other != first)]


def _find_by_time(root: GraphRoot, branch_id: str, timestamp_us: int) -> tuple[BranchLog, Commit]:
    for line, newest in lines(root, branch_id):
        commit = find_before(line, newest, timestamp_us)
        if commit is not None:
            return line, commit
    raise CommitNotFoundError("The graph was created after the given time.")


def _at(root: GraphRoot, branch: str, line: BranchLog, sequence: int) -> Snapshot:
    if sequence == line.state.head.sequence:
        return head_snapshot(root, branch, line)
    commit = whole_commit(commit_at(line, sequence))
    catalog = read_catalog(root, commit.schema_hash)
    tables = line.tables_after(sequence)
    incarnation = line.image.incarnation
    return Snapshot(root.location, branch, commit.id, sequence, catalog, tables, incarnation)
