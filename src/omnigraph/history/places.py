"""A commit with its storage location and its parents.

A commit is stored in the manifest of the branch that it was made on. When that branch was merged,
deleted and reclaimed, the commit is still in the record of the merge (`mergelog`).

Guarantees: a parent that is returned has the id that its child names. A parent is None if neither
a manifest nor the record at hand holds it; the commit graph then has another way to it (see
`ancestry`).
Deliberately absent: questions about more than one commit and its parents.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from omnigraph.errors import CommitNotFoundError, GraphNotFoundError
from omnigraph.history.catalogs import read_catalog
from omnigraph.history.log import BranchLog, commit_at, labelled
from omnigraph.history.manifestrows import whole_commit
from omnigraph.history.mergelog import MergedRecord, read_record
from omnigraph.model.commit import Commit
from omnigraph.model.snapshot import Snapshot, TableVersion
from omnigraph.storage.root import GraphRoot

MERGED_BRANCH = "merged_branch_id"
MERGED_SEQUENCE = "merged_sequence"
_PAGE = 256


@dataclass(frozen=True)
class Place:
    """A commit, and where it is stored: the line that it was made on, or, when that is gone, the
    record of a merge, in which it has the number `index`."""

    commit: Commit
    line: BranchLog | None
    record: MergedRecord | None = None
    index: int = 0

    def tables(self) -> dict[int, TableVersion]:
        if self.line is not None:
            return self.line.tables_after(self.commit.sequence)
        assert self.record is not None
        return self.record.tables_after(self.index)

    def snapshot(self, root: GraphRoot, branch: str) -> Snapshot:
        commit = self.commit
        catalog = read_catalog(root, commit.schema_hash)
        incarnation = root.incarnation if self.line is None else self.line.image.incarnation
        tables = labelled(self.tables(), incarnation)
        return Snapshot(
            root.location, branch, commit.id, commit.sequence, catalog, tables, incarnation
        )


def head_of(line: BranchLog) -> Place:
    return Place(line.state.head, line)


class Places:
    """Finds commits and their parents; lines and pages of commits are read once."""

    def __init__(self, root: GraphRoot) -> None:
        self._root = root
        self._lines: dict[str, BranchLog] = {}
        self._commits: dict[str, dict[int, Commit]] = {}

    def add(self, line: BranchLog) -> None:
        """Use this image of a branch's manifest, not a newer one."""
        self._lines.setdefault(line.branch_id, line)

    def parents(self, place: Place) -> Iterator[tuple[str, Place | None]]:
        """The ids of a commit's parents, each with its place if that is known from here."""
        commit = whole_commit(place.commit)
        for number, parent_id in enumerate(commit.parents):
            found = self.first_parent(place) if number == 0 else self._second_parent(commit)
            known = found is not None and found.commit.id == parent_id
            yield parent_id, found if known else None

    def first_parent(self, place: Place) -> Place | None:
        if place.line is not None:
            sequence = place.commit.sequence
            return self.at(place.line, sequence - 1) if sequence > 1 else None
        record = place.record
        assert record is not None
        if place.index > 0:
            return Place(record.commits[place.index - 1], None, record, place.index - 1)
        return self._find(record.base_branch_id, record.base_sequence)

    def at(self, line: BranchLog, sequence: int) -> Place:
        """The commit of that sequence on the chain of first parents that ends in a line."""
        while line.state.fork is not None and sequence <= line.state.fork.sequence:
            line = self._line(line.state.fork.branch_id)
        head = line.state.head
        return Place(head if head.sequence == sequence else self._commit(line, sequence), line)

    def _commit(self, line: BranchLog, sequence: int) -> Commit:
        """A commit of a line. Neighbours are read along with it: most walks go on to them."""
        page = self._commits.setdefault(line.branch_id, {})
        if not page:  # the newest commits are in the manifest that was read already
            page.update((commit.sequence, commit) for commit in line.state.recent)
        if sequence not in page:
            for commit in line.own_commits(sequence, sequence - _PAGE):
                page[commit.sequence] = commit
        return page[sequence] if sequence in page else commit_at(line, sequence)

    def _second_parent(self, commit: Commit) -> Place | None:
        merged = commit.details.get(MERGED_BRANCH)
        if merged is None:
            return None
        found = self._find(str(merged), int(commit.details[MERGED_SEQUENCE]))
        if found is not None and found.commit.id == commit.parents[-1]:
            return found
        record = read_record(self._root, commit)
        if record is None:
            return None
        return Place(record.commits[-1], None, record, len(record.commits) - 1)

    def _find(self, branch_id: str, sequence: int) -> Place | None:
        """A commit of a branch that may be gone by now."""
        if not self._is_whole(branch_id):
            return None
        try:
            return self.at(self._line(branch_id), sequence)
        except CommitNotFoundError:
            return None

    def _is_whole(self, branch_id: str) -> bool:
        """Whether the manifests of a branch and of all branches that it grew from are there. Of a
        deleted branch, cleanup may have removed the older ones first."""
        try:
            fork = self._line(branch_id).state.fork
            for elder in (fork.branch_id, *fork.elders) if fork else ():
                self._line(elder)
        except GraphNotFoundError:
            return False
        return True

    def _line(self, branch_id: str) -> BranchLog:
        if branch_id not in self._lines:
            self._lines[branch_id] = BranchLog(self._root, branch_id)
        return self._lines[branch_id]
