"""Rebase: repeats the commits of a branch on top of the head of another branch.

A branch's own commits are those on its chain of first parents that the other branch does not have.
Each is applied as if the branch so far was a merge of the other one's head and the commit's parent.
So of a merge commit only that is applied which neither of them has: what was merged from elsewhere,
and the resolutions.

Guarantees: atomic; each commit keeps its actor and message; a commit whose changes exist already is
skipped. After a conflict nothing has changed. If cleanup has removed the states between the
commits, their changes are applied as one commit, which needs only the data that a merge needs.
Deliberately absent: rewriting main; rebase the branch onto it, then merge.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from omnigraph import progress
from omnigraph.commit import branches
from omnigraph.errors import HistoryReclaimedError, InvalidArgumentError, OmniGraphError
from omnigraph.history.ancestry import Bases, Place, head_of, merge_bases, own_chain
from omnigraph.history.log import BranchLog
from omnigraph.history.refs import HIDDEN, MAIN, Branch, read_branch
from omnigraph.merges.bases import places_needed
from omnigraph.model.commit import Commit, CommitKind
from omnigraph.model.ulid import new_ulid
from omnigraph.operations.context import Context
from omnigraph.operations.merge import DEFAULT, MergeOptions
from omnigraph.operations.requests import Rebase
from omnigraph.operations.revert import Change, apply_change, change_at
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.table import check_readable


@dataclass(frozen=True)
class Rebased:
    """The result of a rebase: the new commits, oldest first. `moved` is False if the branch already
    contains the head of the other one."""

    branch: Branch
    onto: str
    moved: bool
    commits: tuple[Commit, ...] = ()


def rebase(context: Context, request: Rebase) -> Rebased:
    """Repeat the commits of the branch on top of `onto`."""
    root = context.root
    if request.branch == MAIN:
        raise InvalidArgumentError(
            "The branch main cannot be rebased, because other branches start from it."
        )
    if request.branch == request.onto:
        raise InvalidArgumentError("A branch cannot be rebased onto itself.")
    old, ground = (
        read_branch(root, request.branch),
        BranchLog(root, read_branch(root, request.onto).id),
    )
    head = head_of(BranchLog(root, old.id))
    bases = merge_bases(root, [head_of(ground)], [head])
    if bases.newest.commit.id == ground.state.head.id:
        return Rebased(old, request.onto, moved=False)
    name = f"{HIDDEN}rebase-{new_ulid().lower()}"
    fresh = branches.begin_branch(root, name, ground, ground.state.head.sequence, context.actor)
    try:
        made = tuple(
            _replay(context, name, _own(root, head, ground, bases), request.options or DEFAULT)
        )
        replaced = branches.replace_branch(
            root, request.branch, fresh, head.commit.id, context.actor
        )
    except BaseException:  # also on Ctrl-C, no incomplete branch may remain
        _give_up(root, name, context.actor)
        raise
    return Rebased(replaced, request.onto, True, made)


@dataclass(frozen=True)
class _Own:
    """One commit to create: the change, its actor, and its message if it differs."""

    change: Change
    actor: str | None
    message: str = ""


def _own(root: GraphRoot, head: Place, ground: BranchLog, bases: Bases) -> list[_Own]:
    """The commits of the branch since the merge base, oldest first."""
    onto = head_of(ground)
    own = [_one(root, place, onto) for place in own_chain(root, head, onto)]
    if len(own) < 2 or all(_is_readable(root, each.change) for each in own):
        return own
    actors = {each.actor for each in own}
    messages = [each.change.of.message for each in own if each.change.of.message]
    change = Change(head.commit, bases, head)
    return [_Own(change, actors.pop() if len(actors) == 1 else None, "\n".join(messages))]


def _one(root: GraphRoot, place: Place, onto: Place) -> _Own:
    commit = place.commit
    # A commit completed by recovery keeps its original actor.
    actor = str(commit.details.get("original_actor", commit.actor))
    change = change_at(root, place)
    if len(commit.parents) > 1:
        start = merge_bases(root, [onto, *change.start.places], [place])
        change = Change(commit, start, place)
    return _Own(change, actor)


def _is_readable(root: GraphRoot, change: Change) -> bool:
    try:
        for place in (*places_needed(root, change.start), change.end):
            for version in place.tables().values():
                check_readable(root.location, version)
    except HistoryReclaimedError:
        return False
    return True


def _replay(context: Context, name: str, own: list[_Own], options: MergeOptions) -> list[Commit]:
    made = []
    for each in progress.each("rebase", own):
        author = replace(context, author=each.actor or None)
        how = replace(options, message=options.message or each.message)
        applied = apply_change(author, name, each.change, CommitKind.CHERRY_PICK, how)
        if applied.commit is not None:
            made.append(applied.commit)
    return made


def _give_up(root: GraphRoot, name: str, actor: str) -> None:
    """Delete the incomplete branch, unless it is deleted already."""
    try:
        branches.delete_branch(root, name, actor)
    except OmniGraphError:
        return
