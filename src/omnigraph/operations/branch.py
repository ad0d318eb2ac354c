"""Branches and tags, as verbs.

Guarantees: a branch or tag may begin at anything that names a snapshot; at an older state, cleanup
is kept away until it is safe from it, and a state that cleanup has given up is refused.
Deliberately absent: merging.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from omnigraph.commit import branches, tags
from omnigraph.history.branchlist import BranchInfo, describe_branches
from omnigraph.history.log import BranchLog, commit_at, line_of
from omnigraph.history.refs import Branch, Tag, read_branch, read_tag, readable_tags
from omnigraph.history.resolve import Target, find_commit, resolve
from omnigraph.operations.context import Context
from omnigraph.operations.requests import (
    CreateBranch,
    CreateTag,
    DeleteBranch,
    DeleteTag,
    ListBranches,
    ListTags,
    RenameBranch,
)
from omnigraph.storage.locks import writer_lock
from omnigraph.storage.table import check_readable

log = logging.getLogger(__name__)
# Held by cleanup, and by operations that start at a state that cleanup might remove.
HISTORY_LOCK = "history"


def create_branch(context: Context, request: CreateBranch) -> Branch:
    root = context.root
    line, sequence = _start(context, request.start or Target())
    with _kept(context, line, sequence):
        return branches.create_branch(root, request.name, line, sequence, context.actor)


def delete_branch(context: Context, request: DeleteBranch) -> Branch:
    return branches.delete_branch(
        context.root, request.name, context.actor, with_children=request.with_children
    )


def rename_branch(context: Context, request: RenameBranch) -> Branch:
    return branches.rename_branch(context.root, request.old, request.new, context.actor)


def all_branches(context: Context, request: ListBranches) -> list[BranchInfo]:
    return describe_branches(context.root)


def create_tag(context: Context, request: CreateTag) -> Tag:
    line, sequence = _start(context, request.start or Target())
    at_head = sequence == line.state.head.sequence
    commit = line.state.head if at_head else commit_at(line, sequence)
    with _kept(context, line, sequence):
        return tags.create_tag(
            context.root, request.name, line, commit, context.actor, request.message
        )


def delete_tag(context: Context, request: DeleteTag) -> Tag:
    return tags.delete_tag(context.root, request.name)


def all_tags(context: Context, request: ListTags) -> list[Tag]:
    tags, damaged = readable_tags(context.root)
    for error in damaged:
        log.warning("%s", error.message)
    return tags


@contextmanager
def _kept(context: Context, line: BranchLog, sequence: int) -> Iterator[None]:
    """Keep cleanup away from a state while something comes to depend on it."""
    if sequence == line.state.head.sequence:
        yield  # a head, and what was one lately, is safe from cleanup by itself
        return
    objects = context.root.objects
    with writer_lock(objects, HISTORY_LOCK, owner=context.actor, operation="keep"):
        for version in line.tables_after(sequence).values():
            check_readable(context.root.location, version)
        yield


def _start(context: Context, start: Target) -> tuple[BranchLog, int]:
    """The line and sequence that a target names."""
    root = context.root
    if start.tag is not None:
        tag = read_tag(root, start.tag)
        return BranchLog(root, tag.branch_id), tag.sequence
    if start.commit is not None:
        line, commit = find_commit(root, start.commit, start.branch)
        return line, commit.sequence
    branch_id = read_branch(root, start.branch).id
    if start.version is None and start.timestamp_us is None:
        line = BranchLog(root, branch_id)
        return line, line.state.head.sequence
    sequence = resolve(root, start).sequence
    return line_of(root, branch_id, sequence), sequence
