"""Bringing a damaged graph back to its newest whole state.

What does not belong to that state is moved to `__damaged/<id>/`, under the path that it had, the
newest first: so a salvage that is interrupted leaves a state that the next one understands. Only
names of versions move; the files of a version stay until cleanup finds that nothing needs them.

Guarantees: under the writer lock of each branch, after another look; an audit row is written before
anything moves; nothing is deleted; a graph without damage is left as it is.
Deliberately absent: looking for damage (`damage`), and writers' unfinished work that is whole
(`recovery`).
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

from omnigraph.commit import audit, idempotency, journal
from omnigraph.commit.damage import (
    Loss,
    Survey,
    is_suspicious,
    look_at,
    newest_pins,
    readable_sidecars,
    survey,
)
from omnigraph.commit.journal import Sidecar
from omnigraph.errors import LockTimeoutError, OmniGraphError, StoragePermanentError
from omnigraph.history.log import BranchLog
from omnigraph.history.refs import MAIN, branch_path, readable_branches
from omnigraph.model.commit import RECOVERY_ACTOR
from omnigraph.model.ulid import new_ulid
from omnigraph.storage.auditlog import DIRECTORY as AUDIT
from omnigraph.storage.locks import writer_lock
from omnigraph.storage.manifest import DIRECTORY as MANIFESTS
from omnigraph.storage.manifest import manifest_path
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.table import forget_tables
from omnigraph.storage.tableforks import line_path
from omnigraph.storage.versionfiles import fork_fault, fork_record
from omnigraph.storage.wholeness import (
    dataset_versions,
    hint_file,
    machine_restarted,
    note_start,
    set_aside,
    torn_parts,
    version_file,
)

log = logging.getLogger(__name__)


def salvage_if_needed(root: GraphRoot) -> list[Loss]:
    """When a graph is opened read-write: look through it if the machine was started since that was
    last done, or if there is a sign of damage."""
    restarted = machine_restarted(root)
    if not restarted and not is_suspicious(root):
        return []
    losses = salvage(root)
    if restarted:
        note_start(root)
    return losses


def salvage(root: GraphRoot, *, far: bool = False) -> list[Loss]:
    """Set aside what does not belong to the newest whole states. `far`: see `survey`."""
    found = survey(root, far=far)
    if found.is_clean:
        return []
    refuse_hopeless(root, found.losses)
    id = new_ulid()
    if AUDIT in found.lines:
        _set_aside_versions(root, id, AUDIT, _newest_whole(root, AUDIT))
    for folder in found.lines:
        if folder.startswith(f"{MANIFESTS}/"):  # of a branch that was never named
            _set_aside_versions(root, id, folder, 0)
    for loss in found.losses:
        if loss.kept is None:
            _give_up(root, id, loss)
        elif loss.versions:
            _salvage_branch(root, id, loss.branch_id, far)
    _salvage_objects(root, id, found)
    _salvage_tables(root, id, found, far)
    for path, fork in found.forks:
        _salvage_fork(root, id, path, fork)
    forget_tables()
    root.medium.force_all()
    for loss in found.losses:
        log.warning("damage in %s: %s", root.uri, loss.message)
    return found.losses


def refuse_hopeless(root: GraphRoot, losses: Iterable[Loss]) -> None:
    """Say so when not a single state of main can be read, unless the graph was never made."""
    for loss in losses:
        if loss.branch_id == MAIN and loss.kept is None and not was_never_made(root):
            raise StoragePermanentError(
                f"No state of the graph at {root.uri} is intact: {loss.message}.",
                hint="Nothing was changed. Restore the graph from a backup.",
                files=list(loss.files),
            )


def was_never_made(root: GraphRoot) -> bool:
    """Whether what there is of a graph was left by an `init` that a power cut ended: its manifest
    has one version at most, which is damaged, and there is no table."""
    versions = dataset_versions(root, manifest_path(MAIN))
    if len(versions) > 1 or any(_has_entries(root, kind) for kind in ("nodes", "edges")):
        return False
    return not versions or bool(torn_parts(root, manifest_path(MAIN), versions[0]))


def clear_unmade(root: GraphRoot) -> None:
    """Set aside what such an `init` left. The caller holds main's lock."""
    _set_aside_versions(root, new_ulid(), manifest_path(MAIN), 0)
    root.forget(MAIN)


def _salvage_branch(root: GraphRoot, id: str, branch_id: str, far: bool) -> None:
    with _held(root, branch_id) as held:
        loss = look_at(root, branch_id, far=far)[1] if held else None
        if loss is None or loss.kept is None or not loss.versions:
            return  # no permission, or another process has moved it
        folder = manifest_path(branch_id)
        names = [hint_file(folder), *(version_file(folder, v) for v in loss.versions)]
        _record(root, f"{id}-{branch_id}", loss.branch, loss.commit_id, [*names, *loss.files])
        set_aside(root, id, names)
        root.forget(branch_id)


def _give_up(root: GraphRoot, id: str, loss: Loss) -> None:
    """A branch without any whole state: its name goes, its files stay where they are."""
    if loss.branch_id == MAIN:
        with _held(root, MAIN) as held:
            if held and was_never_made(root):
                clear_unmade(root)
    else:
        _record(root, f"{id}-{loss.branch_id}", loss.branch, None, loss.files)
        set_aside(root, id, [branch_path(loss.branch)])


def _salvage_objects(root: GraphRoot, id: str, found: Survey) -> None:
    if not found.objects:
        return
    _record(root, f"{id}-objects", "", None, found.objects)
    set_aside(root, id, found.objects)
    if any(path.startswith(idempotency.DIRECTORY) for path in found.objects):
        restore_keys(root)


def restore_keys(root: GraphRoot) -> int:
    """Write records of idempotency keys that are missing or damaged again, from the commits that
    used the keys; returns how many."""
    restored = 0
    for branch in readable_branches(root)[0]:
        with _held(root, branch.id) as held:
            if not held:
                continue
            line = BranchLog(root, branch.id)
            for commit, _ in list(idempotency.faulty_records(line, branch)):
                idempotency.remember(root, line, commit)
                restored += 1
    if restored:
        root.medium.force_all()
    return restored


def _salvage_tables(root: GraphRoot, id: str, found: Survey, far: bool) -> None:
    """Tables go back to what the states name. A pending operation keeps its versions, if they are
    whole and follow upon the state; recovery will see to them."""
    lost = bool(found.objects or found.losses)
    for branch_id in list(found.states):
        with _held(root, branch_id) as held:
            state = look_at(root, branch_id, far=far)[0] if held else None
            if state is None:
                continue
            found.states[branch_id] = state
            _set_aside_stale(root, id, branch_id, found)
            pins, covered = newest_pins(found.states), _covered(root)
            for folder in sorted({*pins, *covered}):
                if _owner(folder) == branch_id:
                    _salvage_line(root, id, folder, pins.get(folder, 0), lost, folder in covered)


def _salvage_line(
    root: GraphRoot, id: str, folder: str, pinned: int, lost: bool, covered: bool
) -> None:
    above = [version for version in dataset_versions(root, folder) if version > pinned]
    torn = any(torn_parts(root, folder, version) for version in above)
    if torn or (lost and above and not covered):
        _set_aside_versions(root, id, folder, pinned)


def _salvage_fork(root: GraphRoot, id: str, path: str, fork: str) -> None:
    """A fork that was begun and not published. Lance reads the records of all forks of a table when
    it cleans the table up, so that a damaged one would prevent it."""
    with _held(root, fork.split("-", 1)[0]) as held:
        if held and fork_fault(root, path, fork) is not None:
            record = fork_record(path, fork)
            _record(root, f"{id}-{fork}", "", None, [record])
            set_aside(root, id, [record])
            _set_aside_versions(root, id, line_path(path, fork), 0)


def _set_aside_stale(root: GraphRoot, id: str, branch_id: str, found: Survey) -> None:
    stale = [
        journal.sidecar_path(each.id)
        for each in readable_sidecars(root)
        if each.branch_id == branch_id and _is_stale(each, found)
    ]
    if stale:
        _record(root, f"{id}-{branch_id}-stale", "", None, stale)
        set_aside(root, id, stale)


def _is_stale(sidecar: Sidecar, found: Survey) -> bool:
    """Whether an operation was built on a state that is lost."""
    state = found.states[sidecar.branch_id]
    if any(commit.id == sidecar.commits[-1].id for commit in state.recent):
        return False
    for table in sidecar.tables:
        pinned = state.tables.get(table.table_id)
        same = pinned is not None and (pinned.path, pinned.fork) == (table.path, table.fork)
        if not table.fresh and not (same and pinned and table.expected <= pinned.version):
            return True
    return False


def _covered(root: GraphRoot) -> set[str]:
    """The lines that pending operations move."""
    return {line_path(t.path, t.fork) for each in readable_sidecars(root) for t in each.tables}


def _owner(folder: str) -> str:
    """The id of the branch that writes to a line, by the line's folder."""
    name = folder.rpartition("/")[2]
    return name.split("-")[0 if "/tree/" in folder else 1]


def _set_aside_versions(root: GraphRoot, id: str, folder: str, kept: int) -> None:
    names = [version_file(folder, v) for v in dataset_versions(root, folder) if v > kept]
    set_aside(root, id, names)


def _newest_whole(root: GraphRoot, folder: str) -> int:
    versions = dataset_versions(root, folder)
    return next((v for v in versions if not torn_parts(root, folder, v)), 0)


def _has_entries(root: GraphRoot, folder: str) -> bool:
    try:
        return bool(os.listdir(f"{root.location.path}/{folder}"))
    except OSError:
        return False


@contextmanager
def _held(root: GraphRoot, branch_id: str) -> Iterator[bool]:
    """Hold a branch's writer lock; False if a live writer keeps it, which is at work there."""
    with ExitStack() as stack:
        lock = writer_lock(root.objects, branch_id, owner=RECOVERY_ACTOR, operation="salvage")
        try:
            stack.enter_context(lock)
        except LockTimeoutError as error:
            log.warning("the branch %s was left to its writer: %s", branch_id, error)
            yield False
            return
        yield True


def _record(
    root: GraphRoot, id: str, branch: str, commit_id: str | None, files: Iterable[str]
) -> None:
    row = {
        "operation_id": id,
        "kind": "salvage",
        "branch": branch,
        "actor": RECOVERY_ACTOR,
        "outcome": "salvaged",
        "commit_id": commit_id,
        "created_at_us": time.time_ns() // 1000,
        "tables": json.dumps([{"path": path, "status": "set_aside"} for path in files]),
    }
    try:
        audit.append_row(root, row)
    except OmniGraphError as error:  # the graph is worth more than its audit
        log.warning("the audit of %s could not be written: %s", root.uri, error)
