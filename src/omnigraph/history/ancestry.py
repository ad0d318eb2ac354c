"""The commit graph: parents, ancestors, and where two branches last agreed.

Guarantees: walks newest first and stops as soon as the answer is known, so the cost follows the
distance to the common ancestor, not the length of history; a merged branch that is gone is walked
through the record that its merge left.
Deliberately absent: anything about content.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

from omnigraph.errors import CommitNotFoundError, GraphNotFoundError, InvariantViolationError
from omnigraph.history.catalogs import read_catalog
from omnigraph.history.log import Line, commit_at, labelled
from omnigraph.history.merged import MergedRecord, read_record
from omnigraph.history.rows import whole_commit
from omnigraph.model.commit import Commit
from omnigraph.model.snapshot import Snapshot, TableVersion
from omnigraph.storage.root import GraphRoot

MERGED_BRANCH = "merged_branch_id"
MERGED_SEQUENCE = "merged_sequence"


@dataclass(frozen=True)
class Place:
    """A commit, and where it is known from: the line that it was made on, or, when that is gone,
    the record of a merge, in which it has the number `index`."""

    commit: Commit
    line: Line | None
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
        return Snapshot(root.uri, branch, commit.id, commit.sequence, catalog, tables, incarnation)


def head_of(line: Line) -> Place:
    return Place(line.state.head, line)


def merge_base(root: GraphRoot, ours: Place, theirs: Place) -> Place:
    """The newest commit that both descend from."""
    return _Walker(root).common(ours, theirs)


def parent_of(root: GraphRoot, place: Place) -> Place | None:
    """The first parent of a commit; the first commit of all has none."""
    return _Walker(root).first_parent(place)


def is_first_parent_ancestor(root: GraphRoot, older: Commit, newer: Place) -> bool:
    """Whether a chain of first parents leads from `newer` to `older`."""
    if older.sequence > newer.commit.sequence or newer.line is None:
        return False
    return _Walker(root).at(newer.line, older.sequence).commit.id == older.id


class _Walker:
    """Paints ancestors from two sides in order of time until a commit has both colours."""

    def __init__(self, root: GraphRoot) -> None:
        self._root = root
        self._lines: dict[str, Line] = {}

    def common(self, ours: Place, theirs: Place) -> Place:
        colours: dict[str, int] = {}
        queue: list[tuple[int, str, Place]] = []
        for colour, place in ((1, ours), (2, theirs)):
            if place.line is not None:
                self._lines.setdefault(place.line.branch_id, place.line)
            self._paint(place, colour, colours, queue)
        while queue:
            _, _, place = heapq.heappop(queue)
            colour = colours[place.commit.id]
            if colour == 3:
                return place
            for parent in self._parents(place):
                self._paint(parent, colour, colours, queue)
        raise InvariantViolationError("The two branches have no common ancestor.")

    def first_parent(self, place: Place) -> Place | None:
        if place.line is not None:
            sequence = place.commit.sequence
            return self.at(place.line, sequence - 1) if sequence > 1 else None
        record = place.record
        assert record is not None
        if place.index > 0:
            return Place(record.commits[place.index - 1], None, record, place.index - 1)
        return self._find(record.base_branch_id, record.base_sequence)

    def at(self, line: Line, sequence: int) -> Place:
        """The commit of that sequence on the chain of first parents that ends in a line."""
        while line.state.fork is not None and sequence <= line.state.fork.sequence:
            line = self._line(line.state.fork.branch_id)
        head = line.state.head
        return Place(head if head.sequence == sequence else commit_at(line, sequence), line)

    def _paint(
        self,
        place: Place,
        colour: int,
        colours: dict[str, int],
        queue: list[tuple[int, str, Place]],
    ) -> None:
        known = colours.get(place.commit.id, 0)
        if known | colour == known:
            return
        colours[place.commit.id] = known | colour
        if not known:
            # Newest first: a commit is always younger than its parents.
            heapq.heappush(queue, (-place.commit.created_at_us, place.commit.id, place))

    def _parents(self, place: Place) -> Iterator[Place]:
        first = self.first_parent(place)
        if first is not None:
            yield first
        second = self._second_parent(place.commit)
        if second is not None:
            yield second

    def _second_parent(self, commit: Commit) -> Place | None:
        merged = whole_commit(commit).details.get(MERGED_BRANCH)
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
        try:
            return self.at(self._line(branch_id), sequence)
        except (GraphNotFoundError, CommitNotFoundError):
            return None

    def _line(self, branch_id: str) -> Line:
        if branch_id not in self._lines:
            self._lines[branch_id] = Line(self._root, branch_id)
        return self._lines[branch_id]
