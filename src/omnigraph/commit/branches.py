"""Creating, renaming and deleting branches.

    __refs/<name>.json     the branch id of a name, and where that branch starts
    __deleted/<id>.json    the deletion of a branch: actor and time; its files are reclaimed later

Guarantees: a branch appears and disappears with one object write; what a crash leaves behind is
unreachable and is reclaimed by `orphans`; a name can be reused immediately, because ids are never
reused. A name is only removed under the writer lock of its branch, so that a name that was just
given to another branch is not removed. No data is copied or removed: a branch starts as a list of
table versions, and its manifest is kept after its deletion for branches and tags that started from
it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from omnigraph import faults
from omnigraph.commit.preconditions import refuse_other_graph
from omnigraph.errors import (
    AlreadyExistsError,
    ConflictError,
    InvalidArgumentError,
    StorageError,
    StoragePreconditionError,
)
from omnigraph.history.decoder import decoding, read_fields, whole
from omnigraph.history.log import BranchLog, commit_at
from omnigraph.history.manifestrows import BranchState, Fork, encode_checkpoint, encode_state
from omnigraph.history.refs import (
    MAIN,
    Branch,
    branch_path,
    check_name,
    decode_branch,
    list_branches,
    read_branch,
    renamed_away,
)
from omnigraph.model.texts import encode_object
from omnigraph.model.ulid import new_ulid
from omnigraph.storage.locks import LockToken, writer_lock
from omnigraph.storage.manifest import manifest_path
from omnigraph.storage.root import GraphRoot

DELETED = "__deleted"
log = logging.getLogger(__name__)


def create_branch(root: GraphRoot, name: str, line: BranchLog, sequence: int, actor: str) -> Branch:
    """Create a branch at the commit with the given sequence."""
    check_name(name)
    return begin_branch(root, name, line, sequence, actor)


def begin_branch(root: GraphRoot, name: str, line: BranchLog, sequence: int, actor: str) -> Branch:
    """As `create_branch`, with any name, also a hidden one."""
    _make_free(root, name, actor)
    faults.hit("branch.before_create")
    branch = _begin(root, name, line, sequence, actor)
    faults.hit("branch.after_manifest_fork")
    refuse_other_graph(line)
    _register(root, branch)
    faults.hit("branch.after_create")
    return branch


def delete_branch(root: GraphRoot, name: str, actor: str, *, with_children: bool = False) -> Branch:
    """Delete a branch. Branches that were created from it are kept; they prevent the deletion
    unless it is forced."""
    if name == MAIN:
        raise InvalidArgumentError("The branch main cannot be deleted.")
    with _held(root, name, actor, "delete branch") as (branch, token):
        if not with_children:
            _refuse_children(root, branch)
        faults.hit("branch.before_delete")
        _bury(root, branch, actor)
        _forget_old_name(root, branch)
        token.check()
        root.objects.delete(branch_path(name))
        faults.hit("branch.after_ref_delete")
    faults.hit("branch.after_delete")
    return branch


def rename_branch(root: GraphRoot, old: str, new: str, actor: str) -> Branch:
    """Rename a branch. Between the steps it has the old name or the new, never both."""
    check_name(new)
    if MAIN in (old, new):
        raise InvalidArgumentError(
            "The branch main cannot be renamed, and no other branch can have its name."
        )
    read_branch(root, old)
    _make_free(root, new, actor)
    with _held(root, old, actor, "rename branch") as (branch, token):
        faults.hit("branch.before_rename")
        _forget_old_name(root, branch)
        renamed = replace(branch, name=new, renaming_to=None, renamed_from=old)
        root.objects.put(branch_path(old), replace(branch, renaming_to=new).to_bytes())
        faults.hit("branch.after_rename_mark")
        try:
            _register(root, renamed)
        except AlreadyExistsError:
            root.objects.put(branch_path(old), replace(branch, renaming_to=None).to_bytes())
            raise
        faults.hit("branch.after_rename_create")
        token.check()
        _leave_quietly(root, old)
    faults.hit("branch.after_rename")
    return renamed


def replace_branch(root: GraphRoot, name: str, by: Branch, head: str, actor: str) -> Branch:
    """Assign a name to another branch, which loses its own name. Fails unless the head of the old
    branch is still `head`."""
    with _held(root, name, actor, "rebase branch") as (branch, token):
        if BranchLog(root, branch.id).state.head.id != head:
            raise ConflictError(f"The branch {name!r} got commits while it was being rebased.")
        faults.hit("branch.before_replace")
        _forget_old_name(root, branch)
        # Before the name changes, so that a branch without a name always has a deletion record.
        _bury(root, branch, actor)
        root.objects.delete(branch_path(by.name))
        token.check()
        replaced = replace(by, name=name)
        root.objects.put(branch_path(name), replaced.to_bytes())
        faults.hit("branch.after_replace")
    return replaced


def was_deleted(root: GraphRoot, branch_id: str) -> int | None:
    """When a branch was deleted, in microseconds, or None."""
    found = root.objects.get_or_none(f"{DELETED}/{branch_id}.json")
    if found is None:
        return None
    with decoding(
        f"The note that branch {branch_id} was deleted",
        hint=f"Restore {DELETED}/{branch_id}.json from a backup, or delete it; then what is left "
        "of the branch goes a little later.",
    ):
        return whole(read_fields(found.data)["deleted_at_us"])


@contextmanager
def _held(
    root: GraphRoot, name: str, actor: str, operation: str
) -> Iterator[tuple[Branch, LockToken]]:
    """Hold the writer lock of the branch of a name, and check that the name is unchanged."""
    branch = read_branch(root, name)
    with writer_lock(root.objects, branch.id, owner=actor, operation=operation) as token:
        now = read_branch(root, name)
        if now.id != branch.id:
            raise ConflictError(
                f"The branch {name!r} was deleted and created again by another process.",
                hint="Check the new branch before you repeat this.",
            )
        yield now, token


def _make_free(root: GraphRoot, name: str, actor: str) -> None:
    """Raise if the name exists. A reference that an interrupted rename left is removed."""
    found = None if name == MAIN else root.objects.get_or_none(branch_path(name))
    if name != MAIN and found is None:
        return
    leftover = decode_branch(found.data, name) if found else None
    if leftover is None or not renamed_away(root, leftover):
        raise _taken(name)
    with writer_lock(root.objects, leftover.id, owner=actor, operation="rename branch"):
        _drop_leftover(root, name, leftover.id)


def _forget_old_name(root: GraphRoot, branch: Branch) -> None:
    """Remove the old reference of an interrupted rename, so that it does not become valid again
    when the new name is deleted. The caller holds the branch's lock."""
    if branch.renamed_from is not None:
        _drop_leftover(root, branch.renamed_from, branch.id)


def _leave_quietly(root: GraphRoot, old: str) -> None:
    """The new name is valid, even if the old reference could not be removed."""
    try:
        root.objects.delete(branch_path(old))
    except StorageError as error:
        log.warning("the old name %r could not be removed yet: %s", old, error)


def _drop_leftover(root: GraphRoot, name: str, branch_id: str) -> None:
    found = root.objects.get_or_none(branch_path(name))
    if found is None:
        return
    leftover = decode_branch(found.data, name)
    if leftover.id == branch_id and renamed_away(root, leftover):
        root.objects.delete(branch_path(name))


def _register(root: GraphRoot, branch: Branch) -> None:
    try:
        root.objects.create(branch_path(branch.name), branch.to_bytes())
    except StoragePreconditionError as error:
        raise _taken(branch.name) from error


def _refuse_children(root: GraphRoot, branch: Branch) -> None:
    children = [other.name for other in list_branches(root) if other.parent_id == branch.id]
    if children:
        raise ConflictError(
            f"The branch {branch.name!r} has branches that were created from it: "
            f"{', '.join(children)}.",
            retryable=False,
            hint="Delete those first, or allow it; they keep the data that they need.",
            children=children,
        )


def _bury(root: GraphRoot, branch: Branch, actor: str) -> None:
    note = {"name": branch.name, "actor": actor, "deleted_at_us": time.time_ns() // 1000}
    root.objects.put(f"{DELETED}/{branch.id}.json", encode_object(note))


def _begin(root: GraphRoot, name: str, line: BranchLog, sequence: int, actor: str) -> Branch:
    commit = commit_at(line, sequence)
    tables = line.tables_after(sequence)
    fork = line.state.fork
    elders = (fork.branch_id, *fork.elders) if fork else ()
    state = BranchState(
        tables=tables,
        recent=(commit,),
        checkpoints=(encode_checkpoint(sequence, commit.schema_hash, tables),),
        fork=Fork(line.branch_id, sequence, elders),
        fence=0,
    )
    branch = Branch(
        name=name,
        id=new_ulid().lower(),
        parent_id=line.branch_id,
        fork_commit=commit.id,
        fork_sequence=sequence,
        ancestors=(line.branch_id, *elders),
        created_at_us=time.time_ns() // 1000,
        actor=actor,
    )
    root.manifest(branch.id).create(encode_state(state), line.image.stamp)
    root.force(manifest_path(branch.id))  # before a name refers to it
    return branch


def _taken(name: str) -> AlreadyExistsError:
    return AlreadyExistsError(f"There is a branch {name!r} already.", branch=name)
