"""The commits of a branch, newest first, and the state after each of them.

A branch's own manifest holds the commits since it began; older ones are its parent's, up to the
commit at which it forked.

Guarantees: pages through history in windows and opens only the segments that a window touches, so
that reading the newest commits, or a stretch of old ones, costs the same however old the graph is;
a reader that is overtaken by a publisher's trimming reads the same rows from the newer manifest.
Deliberately absent: differences between states, and anything that writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from weakref import WeakKeyDictionary

import pyarrow.compute as pc

from omnigraph.errors import (
    CommitNotFoundError,
    GraphNotFoundError,
    InvariantViolationError,
    StorageNotFoundError,
)
from omnigraph.history.manifestrows import (
    CHECKPOINT,
    COMMIT,
    TAIL_COMMITS,
    BranchState,
    apply_commit,
    decode_checkpoint,
    decode_commit,
    decode_state,
    is_whole,
    whole_commit,
)
from omnigraph.model.commit import Commit
from omnigraph.model.snapshot import TableVersion
from omnigraph.storage.manifest import ManifestImage, Within
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.segments import ManifestRow

_PAGE = 4 * TAIL_COMMITS
# A page that had to be filtered grows, so that rare commits are found in few scans.
_PAGE_LIMIT = 64 * _PAGE


class BranchLog:
    """One branch's manifest at one moment: its state and a way into its history."""

    def __init__(self, root: GraphRoot, branch_id: str) -> None:
        self.root = root
        self.branch_id = branch_id
        try:
            self.image: ManifestImage = root.manifest(branch_id).read()
        except StorageNotFoundError as error:
            raise GraphNotFoundError(f"No graph was found at {root.uri}.") from error
        self.state: BranchState = _decoded(self.image)

    @property
    def first_own(self) -> int:
        """The sequence from which on commits are this branch's own."""
        return self.state.fork.sequence + 1 if self.state.fork else 1

    def parent(self) -> BranchLog | None:
        return BranchLog(self.root, self.state.fork.branch_id) if self.state.fork else None

    def own_commits(
        self, newest: int, oldest: int = 0, chosen: pc.Expression | None = None
    ) -> Iterator[Commit]:
        """Own commits from sequence `newest` down to `oldest`. `chosen` spares reading old ones
        that do not match; newer ones are given all the same."""
        recent = self.state.recent
        oldest = max(oldest, self.first_own)
        for commit in reversed(recent):
            if oldest <= commit.sequence <= newest:
                yield commit
        top, page = min(newest, recent[0].sequence - 1), _PAGE
        while top >= oldest:
            bottom = max(oldest, top - page + 1)
            wanted = _is(COMMIT) if chosen is None else _is(COMMIT) & chosen
            rows = self.sealed(wanted & _between(bottom, top), _overlaps(bottom, top))
            yield from (decode_commit(row) for row in reversed(_by_sequence(rows)))
            top = bottom - 1
            page = page if chosen is None else min(2 * page, _PAGE_LIMIT)

    def commit(self, sequence: int) -> Commit | None:
        """The commit of that sequence, if this line holds it: its own, or the one it forked at."""
        for commit in self.state.recent:
            if commit.sequence == sequence:
                return commit
        wanted = _is(COMMIT) & (pc.field("sequence") == sequence)
        rows = self.sealed(wanted, _overlaps(sequence, sequence))
        return decode_commit(rows[0]) if rows else None

    def tables_after(self, sequence: int) -> dict[int, TableVersion]:
        """Every table's version after the commit of that sequence."""
        return labelled(self._tables_after(sequence), self.image.incarnation)

    def _tables_after(self, sequence: int) -> dict[int, TableVersion]:
        known = self._undone(sequence)
        if known is not None:
            return known
        low = sequence - 2 * TAIL_COMMITS
        sealed = self.sealed(_between(low, sequence), _overlaps(low, sequence))
        hot = [row for row in self.image.tail if row.object_type in (COMMIT, CHECKPOINT)]
        rows = [row for row in (*sealed, *hot) if low <= (row.sequence or 0) <= sequence]
        checkpoints = [row for row in rows if row.object_type == CHECKPOINT]
        if checkpoints:
            newest = max(checkpoints, key=_sequence)
            base, tables = _sequence(newest), decode_checkpoint(newest)
        elif low <= 1:
            base, tables = 0, {}
        else:
            raise InvariantViolationError(f"No checkpoint precedes commit {sequence}.")
        steps = {_sequence(r): r for r in rows if r.object_type == COMMIT and _sequence(r) > base}
        for step in sorted(steps):
            tables = apply_commit(tables, whole_commit(decode_commit(steps[step])))
        return tables

    def _undone(self, sequence: int) -> dict[int, TableVersion] | None:
        """The same from the newest commits alone: the head's tables, with those that changed since
        as they were before. None if the newest commits do not say how one of them was."""
        recent = self.state.recent
        if not recent[0].sequence <= sequence <= recent[-1].sequence:
            return None
        later = [commit for commit in recent if commit.sequence > sequence]
        if any(not is_whole(commit) for commit in later):
            return None
        changed = {key for commit in later for key in _touched(commit)}
        tables = {key: one for key, one in self.state.tables.items() if key not in changed}
        for commit in reversed(recent[: len(recent) - len(later)]):
            if changed and not is_whole(commit):
                return None
            versions = {version.table_id: version for version in commit.changes}
            for key in changed.intersection(_touched(commit)):
                changed.remove(key)
                if key in versions:
                    tables[key] = versions[key]
        return None if changed else tables

    def sealed(self, filter: pc.Expression, within: Within) -> list[ManifestRow]:
        """Rows of this image's history."""
        try:
            return self.image.history(filter, within)
        except StorageNotFoundError:
            # Publishers have since joined our segments and trimmed the files that held them. All
            # rows are in the newest manifest, among later ones.
            newer = BranchLog(self.root, self.branch_id).image
            end = self.state.recent[0].sequence
            return [row for row in newer.history(filter, within) if _sequence(row) < end]


def _touched(commit: Commit) -> set[int]:
    return {*commit.dropped, *(version.table_id for version in commit.changes)}


def lines(root: GraphRoot, branch_id: str) -> Iterator[tuple[BranchLog, int]]:
    """The branch's line and those it grew from, each with the newest sequence that counts."""
    line: BranchLog | None = BranchLog(root, branch_id)
    assert line is not None
    newest = line.state.head.sequence
    while line is not None:
        yield line, newest
        if line.state.fork:
            newest = min(newest, line.state.fork.sequence)
        line = line.parent()


def walk(root: GraphRoot, branch_id: str) -> Iterator[Commit]:
    """All commits that a branch's head is built on, newest first."""
    return filtered(root, branch_id)


def filtered(
    root: GraphRoot,
    branch_id: str,
    *,
    actor: str | None = None,
    kind: str | None = None,
    since_us: int | None = None,
) -> Iterator[Commit]:
    """The commits that a branch's head is built on and that match, newest first."""
    chosen = _matching(actor, kind)
    for line, newest in lines(root, branch_id):
        for commit in line.own_commits(newest, chosen=chosen):
            if since_us is not None and commit.created_at_us < since_us:
                return  # time never runs backwards along a branch
            if actor in (None, commit.actor) and kind in (None, str(commit.kind)):
                yield commit


def line_of(root: GraphRoot, branch_id: str, sequence: int) -> BranchLog:
    """The line on which the branch's commit of that sequence was made."""
    for line, newest in lines(root, branch_id):
        if line.first_own <= sequence <= newest:
            return line
    raise CommitNotFoundError(f"The branch has no version {sequence}.", version=sequence)


def commit_at(line: BranchLog, sequence: int) -> Commit:
    commit = line.commit(sequence)
    if commit is None:
        raise CommitNotFoundError(f"The branch has no version {sequence}.", version=sequence)
    return commit


def find_by_prefix(line: BranchLog, prefix: str) -> list[Commit]:
    """Own commits whose id begins with `prefix`."""
    low, high = prefix, prefix + "\uffff"
    sealed = line.sealed(
        _is(COMMIT) & (pc.field("object_id") >= low) & (pc.field("object_id") <= high),
        lambda segment: segment.low_id <= high and segment.high_id >= low,
    )
    commits = [decode_commit(row) for row in sealed]
    commits.extend(commit for commit in line.state.recent if commit.id.startswith(prefix))
    return [commit for commit in commits if commit.sequence >= line.first_own]


def find_before(line: BranchLog, newest: int, created_at_us: int) -> Commit | None:
    """The newest own commit, no later than sequence `newest`, made at or before that time."""
    for commit in reversed(line.state.recent):
        if line.first_own <= commit.sequence <= newest and commit.created_at_us <= created_at_us:
            return commit
    candidates = [
        segment
        for segment in line.image.segments
        if segment.since_us <= created_at_us and segment.first <= newest
    ]
    if not candidates:
        return None
    # Times grow along a branch, so the newest segment that begins early enough has the answer,
    # unless all that it has from that time is the parent's.
    last = candidates[-1]
    rows = line.sealed(
        _is(COMMIT)
        & (pc.field("created_at_us") <= created_at_us)
        & _between(line.first_own, newest),
        _overlaps(last.first, last.last),
    )
    return decode_commit(max(rows, key=_sequence)) if rows else None


def _decoded(image: ManifestImage) -> BranchState:
    """The state of an image, decoded once per image."""
    state = _states.get(image)
    if state is None:
        state = decode_state(image.tail)
        tables = labelled(state.tables, image.incarnation)
        state = _states[image] = replace(state, tables=tables)
    return state


def labelled(tables: Mapping[int, TableVersion], incarnation: str) -> dict[int, TableVersion]:
    """The same versions as those of one incarnation of the graph."""
    return {
        key: one if one.incarnation == incarnation else replace(one, incarnation=incarnation)
        for key, one in tables.items()
    }


_states: WeakKeyDictionary[ManifestImage, BranchState] = WeakKeyDictionary()


def _matching(actor: str | None, kind: str | None) -> pc.Expression | None:
    wanted = {"actor": actor, "kind": kind}
    terms = [pc.field(name) == value for name, value in wanted.items() if value is not None]
    if not terms:
        return None
    return terms[0] if len(terms) == 1 else terms[0] & terms[1]


def _is(object_type: str) -> pc.Expression:
    return pc.field("object_type") == object_type


def _between(low: int, high: int) -> pc.Expression:
    return (pc.field("sequence") >= low) & (pc.field("sequence") <= high)


def _overlaps(low: int, high: int) -> Within:
    return lambda segment: segment.first <= high and segment.last >= low


def _sequence(row: ManifestRow) -> int:
    return row.sequence if row.sequence is not None else 0


def _by_sequence(rows: list[ManifestRow]) -> list[ManifestRow]:
    return sorted(rows, key=_sequence)
