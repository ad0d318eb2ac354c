"""The commit graph: common ancestors of branches, and commits that one branch has and another
lacks.

Every question is answered by one walk that visits commits newest first. A commit is always younger
than its parents, so all its descendants have been visited when its turn comes, and what they say
about it (its marks) is complete. Time is used as this order only, never to decide whether one
commit descends from another.

A commit may be stored in several places, each of which knows some of its parents: all of them are
followed. A parent whose place is not known from a child gets its marks nevertheless and is visited
when another way leads to it. There is one: a merge records the commits that the target did not
have, so a path that ends at the bottom of a record continues below the merge's other parent.

Guarantees: a walk ends as soon as the answer is known, so the cost follows the distance to the
common ancestors, not the length of history; the answers are the same before and after a merged
branch is deleted and cleaned up.
Deliberately absent: anything about content.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from omnigraph.errors import InvariantViolationError
from omnigraph.history.places import Place, Places, head_of
from omnigraph.model.commit import Commit
from omnigraph.storage.root import GraphRoot

__all__ = [
    "Bases",
    "Place",
    "head_of",
    "is_first_parent_ancestor",
    "junctions",
    "merge_bases",
    "own_chain",
    "parent_of",
]

_NONE, _OURS, _THEIRS, _BELOW = 0, 1, 2, 4


@dataclass(frozen=True)
class Bases:
    """The newest common ancestors of two groups of commits, newest first. `heads` are commits from
    which all of them, and all below them, can be found."""

    places: tuple[Place, ...]
    heads: tuple[Place, ...] = ()

    @property
    def newest(self) -> Place:
        return self.places[0]


def merge_bases(
    root: GraphRoot, ours: Sequence[Place], theirs: Sequence[Place], heads: Sequence[Place] = ()
) -> Bases:
    """The common ancestors of two groups of commits that no other common ancestor descends from.

    `heads`: where to look for what lies below, if `ours` and `theirs` are not heads of branches. A
    commit that is stored in a record only does not lead to all its ancestors, but the branches
    do that it was found from."""
    walk = _Walk(root)
    walk.start(heads, _NONE)
    walk.start(ours, _OURS)
    walk.start(theirs, _THEIRS)
    bases: list[Place] = []
    while not walk.is_over(_BELOW):
        visit = walk.next()
        marks = visit.marks
        if marks & _OURS and marks & _THEIRS and not marks & _BELOW:
            bases.append(visit.place)
            marks |= _BELOW
        if marks & _BELOW and walk.is_over(_BELOW):
            break  # what lies below is common too, and reading it would cost requests
        walk.follow(visit, marks)
    if not bases:
        raise InvariantViolationError("The two branches have no common ancestor.")
    return Bases(tuple(bases), tuple(heads) or (*ours, *theirs))


def own_chain(root: GraphRoot, head: Place, known: Place) -> list[Place]:
    """The commits on the chain of first parents of `head` that `known` does not descend from,
    oldest first."""
    walk = _Walk(root)
    walk.start([known], _THEIRS)
    walk.start([head], _OURS)
    chain: list[Place] = []
    wanted: str | None = head.commit.id
    while wanted is not None:
        visit = walk.next()
        if visit.place.commit.id == wanted:
            if visit.marks & _THEIRS:
                break
            chain.append(visit.place)
            wanted = next(iter(visit.place.commit.parents), None)
        walk.follow(visit, visit.marks)
    return chain[::-1]


def junctions(root: GraphRoot, heads: Sequence[Place]) -> list[Place]:
    """Every commit that a merge between any of the heads, now or after more commits and merges,
    can have among its bases, or among the bases of these, and so on.

    A junction is a commit that is an ancestor of more heads than any of its children. The merge
    bases of two heads are junctions. Each junction counts as one more head, so the merge bases of
    merge bases are found in the same walk.
    """
    walk = _Walk(root)
    count = len(heads)
    for number, head in enumerate(heads):
        walk.start([head], 1 << number)
    found: list[Place] = []
    while not walk.is_over((1 << count) - 1):
        visit = walk.next()
        marks = visit.marks
        if marks not in visit.inherited:
            found.append(visit.place)
            marks |= 1 << count
            count += 1
        walk.follow(visit, marks)
    return found


def parent_of(root: GraphRoot, place: Place) -> Place | None:
    """The first parent of a commit; the first commit of all has none."""
    return Places(root).first_parent(place)


def is_first_parent_ancestor(root: GraphRoot, older: Commit, newer: Place) -> bool:
    """Whether a chain of first parents leads from `newer` to `older`."""
    if older.sequence > newer.commit.sequence or newer.line is None:
        return False
    return Places(root).at(newer.line, older.sequence).commit.id == older.id


@dataclass(frozen=True)
class _Visit:
    """A commit whose turn it is: all its known places, and the marks that each child gave it."""

    places: tuple[Place, ...]
    inherited: frozenset[int]

    @property
    def place(self) -> Place:
        """Where to read its state: the line if it is there."""
        return next((place for place in self.places if place.line is not None), self.places[0])

    @property
    def marks(self) -> int:
        return reduce(or_, self.inherited)


class _Walk:
    """Visits ancestors newest first and hands marks, sets of bits, from children to parents."""

    def __init__(self, root: GraphRoot) -> None:
        self._graph = Places(root)
        self._queue: list[tuple[int, str]] = []
        self._waiting: dict[str, list[Place]] = {}
        self._inherited: dict[str, set[int]] = defaultdict(set)

    def start(self, places: Iterable[Place], mark: int) -> None:
        for place in places:
            if place.line is not None:
                self._graph.add(place.line)
            self._inherited[place.commit.id].add(mark)
            self._enqueue(place)

    def next(self) -> _Visit:
        if not self._queue:
            raise InvariantViolationError("The commit graph ends before its first commit.")
        commit_id = heapq.heappop(self._queue)[1]
        places = self._waiting.pop(commit_id)
        return _Visit(tuple(places), frozenset(self._inherited.pop(commit_id)))

    def follow(self, visit: _Visit, marks: int) -> None:
        """Go on to the parents of a commit."""
        for place in visit.places:
            for parent_id, parent in self._graph.parents(place):
                self._inherited[parent_id].add(marks)
                if parent is not None:
                    self._enqueue(parent)

    def is_over(self, marks: int) -> bool:
        """Whether one child of each commit that is marked and was not visited yet has all these
        marks; so have all commits that follow."""
        return not self._queue or all(
            any(given & marks == marks for given in inherited)
            for inherited in self._inherited.values()
            if any(inherited)
        )

    def _enqueue(self, place: Place) -> None:
        commit = place.commit
        if commit.id not in self._waiting:
            self._waiting[commit.id] = []
            heapq.heappush(self._queue, (-commit.created_at_us, commit.id))
        if all(_origin(place) != _origin(known) for known in self._waiting[commit.id]):
            self._waiting[commit.id].append(place)


def _origin(place: Place) -> object:
    """What tells places of one commit apart: all lines that hold it know the same parents."""
    return None if place.line is not None else id(place.record)
