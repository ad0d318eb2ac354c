"""Rebasing a branch: its own commits again, on top of another branch's head.

Guarantees: the branch is the old one or the rebased one, never something between; each commit
keeps its author and message; a commit whose change is already there is left out. When a commit
does not fit, nothing has changed.
Deliberately absent: rewriting main; rebase the branch onto it, then merge.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import takewhile

from omnigraph import progress
from omnigraph.commit import branches
from omnigraph.errors import InvalidArgumentError, OmniGraphError
from omnigraph.history.ancestry import Place, head_of, merge_base
from omnigraph.history.log import Line, walk
from omnigraph.history.refs import HIDDEN, MAIN, Branch, read_branch
from omnigraph.model.commit import Commit, CommitKind
from omnigraph.model.ulid import new_ulid
from omnigraph.operations.context import Context
from omnigraph.operations.merge import DEFAULT, MergeOptions
from omnigraph.operations.revert import apply_change, change_at
from omnigraph.storage.root import GraphRoot


@dataclass(frozen=True)
class Rebased:
    """What a rebase did: the commits that were made anew, oldest first. `moved` is False when the
    branch already stood on the other one's head."""

    branch: Branch
    onto: str
    moved: bool
    commits: tuple[Commit, ...] = ()


def rebase(
    context: Context, branch: str, onto: str = MAIN, options: MergeOptions = DEFAULT
) -> Rebased:
    """Put the branch's own commits on top of `onto`."""
    root = context.writable().root
    if branch == MAIN:
        raise InvalidArgumentError("The branch main cannot be rebased; others begin on it.")
    if branch == onto:
        raise InvalidArgumentError("A branch cannot be rebased onto itself.")
    old, ground = read_branch(root, branch), Line(root, read_branch(root, onto).id)
    head = head_of(Line(root, old.id))
    base = merge_base(root, head_of(ground), head)
    if base.commit.id == ground.state.head.id:
        return Rebased(old, onto, moved=False)
    name = f"{HIDDEN}rebase-{new_ulid().lower()}"
    fresh = branches.begin_branch(root, name, ground, ground.state.head.sequence, context.actor)
    try:
        made = tuple(_replay(context, name, _own(root, old, base.commit), options))
        replaced = branches.replace_branch(root, branch, fresh, head.commit.id, context.actor)
    except BaseException:  # whoever stops it by Ctrl-C wants no half-made branch either
        _give_up(root, name, context.actor)
        raise
    return Rebased(replaced, onto, True, made)


def _own(root: GraphRoot, branch: Branch, base: Commit) -> list[Place]:
    """The branch's commits since the base, oldest first."""
    line = Line(root, branch.id)
    since = base.created_at_us
    new = takewhile(lambda commit: commit.created_at_us > since, walk(root, branch.id))
    return [Place(commit, _line_of(root, line, commit.sequence)) for commit in new][::-1]


def _line_of(root: GraphRoot, line: Line, sequence: int) -> Line:
    while line.state.fork is not None and sequence <= line.state.fork.sequence:
        line = Line(root, line.state.fork.branch_id)
    return line


def _replay(
    context: Context, name: str, places: list[Place], options: MergeOptions
) -> list[Commit]:
    made = []
    for place in progress.each("rebase", places):
        # What recovery finished for somebody is still that person's.
        named = place.commit.details.get("original_actor", place.commit.actor)
        author = replace(context, actor=str(named))
        change = change_at(context, place)
        applied = apply_change(author, name, change, CommitKind.CHERRY_PICK, options)
        if applied.commit is not None:
            made.append(applied.commit)
    return made


def _give_up(root: GraphRoot, name: str, actor: str) -> None:
    """Take the half-made branch away again, unless it is gone already."""
    try:
        branches.delete_branch(root, name, actor)
    except OmniGraphError:
        return
