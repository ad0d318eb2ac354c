"""Following a graph: the changes of one commit, the feed of a branch, and where to begin.

    page = poll(context, "main", start=BEGINNING)
    page = poll(context, "main", cursor=page.cursor)

A reader keeps the cursor; the graph keeps nothing about its readers. Blocks come at least once:
apply them by commit id, and store the cursor together with what was applied.

Guarantees: first-parent order; a cursor only after whole commits; commits that land while a
response is read wait for the next one; pages are bounded.
Deliberately absent: waiting. `follow` ends when it has caught up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from omnigraph.errors import ChangeFeedGapError, InvalidArgumentError
from omnigraph.history.ancestry import Place, head_of, is_first_parent_ancestor
from omnigraph.history.commitfeed import (
    changes_schema,
    commit_changes,
    commit_diffs,
    commits_between,
    graph_id,
)
from omnigraph.history.images import TableDiff
from omnigraph.history.log import BranchLog
from omnigraph.history.refs import read_branch
from omnigraph.history.resolve import find_commit, head_snapshot
from omnigraph.model.catalog import TableKind
from omnigraph.model.change import EVERYTHING, Change, ChangeFilter
from omnigraph.model.feed import (
    Block,
    Cause,
    FeedPage,
    Position,
    decode_position,
    rejected,
    scope_of,
)
from omnigraph.model.snapshot import Snapshot
from omnigraph.operations.context import Context
from omnigraph.operations.requests import (
    CaptureBaseline,
    FindOffset,
    FollowChanges,
    PollChanges,
    ReadCommitChanges,
    ReadCommitChangesPage,
    ReadTableChanges,
    ReadTypeChanges,
)
from omnigraph.storage.root import GraphRoot

NOW = "now"
BEGINNING = "beginning"
AFTER = "after:"
PAGE_CHANGES = 1000
PAGE_COMMITS = 1000


@dataclass(frozen=True)
class Baseline:
    """A full state and the cursor to continue from it. Store the state before the cursor."""

    snapshot: Snapshot
    cursor: str


def all_changes_in(context: Context, request: ReadCommitChanges) -> Iterator[Change]:
    """What a commit changed relative to its first parent, streamed."""
    place = _place(context, request.commit, request.branch)
    return commit_changes(context.root, place, request.filter, context.shown())


def changes_in(context: Context, request: ReadCommitChangesPage) -> FeedPage:
    """One page of what a commit changed relative to its first parent."""
    root = context.root
    place = _place(context, request.commit, request.branch)
    assert place.line is not None
    start = Position(
        graph=graph_id(root),
        branch=place.line.branch_id,
        scope=_scope(context, request.filter),
        sequence=place.commit.sequence - 1,
        commit_id=place.commit.id,
        cut=place.commit.sequence,
    )
    if request.page_token is not None:
        given = decode_position(request.page_token, token=True)
        if replace(given, after=None) != start:
            raise rejected("it belongs to another commit or filter")
        start = given
    reader = _Reader(context, request.filter, request.limit)
    page = reader.read([place], start)
    return replace(page, cursor=None)


def _place(context: Context, commit: str, branch: str) -> Place:
    line, found = find_commit(context.root, commit, branch)
    if not found.parents:
        raise InvalidArgumentError(
            "The first commit of a graph has no parent to compare it with.",
            hint="Begin with a baseline instead.",
        )
    return Place(found, line)


def poll(context: Context, request: PollChanges) -> FeedPage:
    """One page of a branch's changes, from a start, a cursor or a page token on."""
    root = context.root
    line = BranchLog(root, read_branch(root, request.branch).id)
    position = _position(
        context,
        line,
        request.branch,
        request.filter,
        request.start,
        request.cursor,
        request.page_token,
    )
    head = line.state.head.sequence
    high = position.cut if position.cut is not None else head
    places = commits_between(root, line.branch_id, position.sequence + 1, high)
    page = _Reader(context, request.filter, request.limit).read(places, position)
    if page.cursor is None:
        return page
    end = decode_position(page.cursor, token=False).sequence
    return replace(page, caught_up=end >= head)


def follow(context: Context, request: FollowChanges) -> Iterator[tuple[Block, str]]:
    """Whole blocks up to the branch's head, each with the cursor to go on from after it. A block
    is held in memory as a whole; use `poll` for commits that may be too large for that."""
    root = context.root
    line = BranchLog(root, read_branch(root, request.branch).id)
    position = _position(
        context, line, request.branch, request.filter, request.start, request.cursor, None
    )
    head = line.state.head.sequence
    for place in commits_between(root, line.branch_id, position.sequence + 1, head):
        try:
            changes = commit_changes(root, place, request.filter, context.shown())
            block = Block(_cause(root, place), tuple(changes))
        except ChangeFeedGapError as error:
            raise _gap(error, position) from error
        position = _passed(position, place)
        yield block, position.encode()


def baseline(context: Context, request: CaptureBaseline) -> Baseline:
    """The branch's newest state and the cursor that belongs to it, captured together."""
    root = context.root
    line = BranchLog(root, read_branch(root, request.branch).id)
    snapshot = head_snapshot(root, request.branch, line).seen_through(context.visibility)
    position = _at_head(context, line, request.filter)
    return Baseline(snapshot, position.encode())


def find_offset(context: Context, request: FindOffset) -> int:
    """The number of a commit on its branch; 0 for the beginning."""
    root = context.root
    if request.start == BEGINNING:
        return 0
    if request.start == NOW:
        return BranchLog(root, read_branch(root, request.branch).id).state.head.sequence
    return find_commit(root, request.start, request.branch)[1].sequence


def table_changes(
    context: Context, request: ReadTableChanges
) -> Iterator[tuple[Place, Iterator[TableDiff]]]:
    """The changes of some commits, by commit and table."""
    for place in _places(context, request.branch, request.first, request.last):
        yield place, commit_diffs(context.root, place, EVERYTHING, context.shown())


def type_changes(
    context: Context, request: ReadTypeChanges
) -> Iterator[tuple[Place, Iterator[Change]]]:
    """The changes of some commits, by commit and entity."""
    for place in _places(context, request.branch, request.first, request.last):
        yield place, commit_changes(context.root, place, request.filter, context.shown())


def _places(context: Context, branch: str, first: int, last: int) -> Iterator[Place]:
    return commits_between(context.root, read_branch(context.root, branch).id, first, last)


class _Reader:
    """Fills one page."""

    def __init__(self, context: Context, wanted: ChangeFilter, limit: int) -> None:
        if limit < 1:
            raise InvalidArgumentError("A page holds at least one change.")
        self._root = context.root
        self._shown = context.shown()
        self._wanted = wanted
        self._room = limit

    def read(self, places: Iterator[Place] | list[Place], position: Position) -> FeedPage:
        blocks: list[Block] = []
        for place in islice(places, PAGE_COMMITS):
            try:
                changes, whole = self._fill(place, position.after)
            except ChangeFeedGapError as error:
                if not blocks:
                    raise _gap(error, position) from error
                break  # what could be read is handed out; the next page meets the gap
            blocks.append(Block(_cause(self._root, place), tuple(changes)))
            if not whole:
                inside = replace(position, cut=place.commit.sequence, after=_key(changes[-1]))
                return FeedPage(tuple(blocks), None, inside.encode(), caught_up=False)
            position = _passed(position, place)
            if self._room == 0:
                break
        return FeedPage(tuple(blocks), position.encode(), None, caught_up=True)

    def _fill(self, place: Place, after: tuple[bool, int, str] | None) -> tuple[list[Change], bool]:
        """As many changes of a commit as there is room for, and whether that is all of them."""
        found = commit_changes(self._root, place, self._wanted, self._shown)
        rest = (change for change in found if after is None or _key(change) > after)
        changes = list(islice(rest, self._room))
        self._room -= len(changes)
        return changes, self._room > 0 or next(rest, None) is None


def _position(
    context: Context,
    line: BranchLog,
    branch: str,
    wanted: ChangeFilter,
    start: str,
    cursor: str | None,
    page_token: str | None,
) -> Position:
    if cursor is not None and page_token is not None:
        raise InvalidArgumentError("A request has a cursor or a page token, not both.")
    given = cursor if cursor is not None else page_token
    head = _at_head(context, line, wanted)
    if given is None:
        return _started(context, line, head, branch, start)
    position = decode_position(given, token=page_token is not None)
    for name in ("graph", "branch", "scope"):
        if getattr(position, name) != getattr(head, name):
            raise rejected(f"it was given out for another {_WORDS[name]}")
    if position.sequence > head.sequence:
        raise rejected("it is ahead of the branch")
    return position


_WORDS = {"graph": "graph", "branch": "branch", "scope": "filter"}


def _started(
    context: Context, line: BranchLog, head: Position, branch: str, start: str
) -> Position:
    if start == NOW:
        return head
    if start == BEGINNING:
        return replace(head, sequence=0, commit_id="")
    if not start.startswith(AFTER):
        raise InvalidArgumentError(
            f"A feed cannot start at {start!r}.", hint=f"Use {NOW}, {BEGINNING} or {AFTER}<commit>."
        )
    _, commit = find_commit(context.root, start.removeprefix(AFTER), branch)
    if not is_first_parent_ancestor(context.root, commit, head_of(line)):
        raise InvalidArgumentError(
            f"Commit {commit.id} is not on the branch {branch!r} itself.",
            hint="Name a commit that `omnigraph commit list` shows for the branch.",
        )
    return replace(head, sequence=commit.sequence, commit_id=commit.id)


def _at_head(context: Context, line: BranchLog, wanted: ChangeFilter) -> Position:
    head = line.state.head
    scope = _scope(context, wanted)
    return Position(graph_id(context.root), line.branch_id, scope, head.sequence, head.id)


def _scope(context: Context, wanted: ChangeFilter) -> str:
    """What a cursor is for: a filter, and what is visible."""
    return scope_of(wanted) + context.visibility.hash


def _passed(position: Position, place: Place) -> Position:
    commit = place.commit
    return replace(position, sequence=commit.sequence, commit_id=commit.id, cut=None, after=None)


def _cause(root: GraphRoot, place: Place) -> Cause:
    return Cause.of(place.commit, changes_schema(root, place))


def _key(change: Change) -> tuple[bool, int, str]:
    return (change.kind is TableKind.EDGE, change.type_id, change.id)


def _gap(error: ChangeFeedGapError, position: Position) -> ChangeFeedGapError:
    cursor = replace(position, cut=None, after=None).encode()
    return ChangeFeedGapError(error.message, commit_id=error.commit_id, cursor=cursor)
