"""Bringing a graph of an older format up to date, when it is opened read-write.

Each step turns one format into the next. A branch's manifest is stamped last, so a step that was
interrupted is simply taken again; the steps themselves must therefore be repeatable.

Guarantees: under the writer locks of main and of the branch, so of two openers one does the work;
before anything reads branches; a graph of a newer format is refused, read-only or not; one that is
up to date costs one look.
Deliberately absent: going back.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from omnigraph import faults
from omnigraph.errors import FormatError, GraphNotFoundError, StorageNotFoundError
from omnigraph.history.refs import MAIN
from omnigraph.storage.incarnation import new_stamp
from omnigraph.storage.locks import writer_lock
from omnigraph.storage.manifest import FORMAT_VERSION, manifest_path
from omnigraph.storage.reclamation import manifest_ids
from omnigraph.storage.root import GraphRoot

log = logging.getLogger(__name__)
Migration = Callable[[GraphRoot, str], None]


def _stamp_only(root: GraphRoot, branch_id: str) -> None:
    """Format 0 is a manifest from before formats were written down; its rows are those of 1."""


def _name_graph(root: GraphRoot, branch_id: str) -> None:
    """Format 2 writes the graph's stamp into every manifest. Main gets it first, so that a process
    that goes on with an interrupted migration finds it there."""
    stamp = root.manifest(MAIN).graph_stamp()
    if not stamp:
        stamp = new_stamp()
        root.manifest(MAIN).stamp(root.manifest(MAIN).format_version(), stamp)
        root.force(manifest_path(MAIN))  # before another manifest repeats it
    if branch_id != MAIN:
        root.manifest(branch_id).stamp(root.manifest(branch_id).format_version(), stamp)


MIGRATIONS: Mapping[int, Migration] = {0: _stamp_only, 1: _name_graph}


def bring_up_to_date(root: GraphRoot, actor: str, known: int = FORMAT_VERSION) -> bool:
    """Migrate every manifest that is older than `known`. Returns whether anything was done."""
    found = _format_of(root, MAIN)
    if found > known:
        raise FormatError(
            f"The graph has format {found}; this release supports formats up to {known}.",
            found=found,
            known=known,
        )
    if found == known:
        return False
    # Main comes last: while its stamp is old, the graph counts as not yet migrated.
    others = [branch_id for branch_id in manifest_ids(root) if branch_id != MAIN]
    # Its lock is held all the while: the steps of the others write to it.
    with writer_lock(root.objects, MAIN, owner=actor, operation="upgrade"):
        for branch_id in others:
            with writer_lock(root.objects, branch_id, owner=actor, operation="upgrade"):
                _migrate(root, branch_id, known)
        _migrate(root, MAIN, known)
    return True


def _migrate(root: GraphRoot, branch_id: str, known: int) -> None:
    # Read again under the lock: another opener may have done it while we waited.
    found = _format_of(root, branch_id)
    while found < known:
        migration = MIGRATIONS.get(found)
        if migration is None:
            raise FormatError(
                f"This release cannot migrate format {found}.",
                hint="Open the graph once with an older release that supports this format.",
                found=found,
                known=known,
            )
        faults.hit("upgrade.before_step")
        migration(root, branch_id)
        faults.hit("upgrade.before_stamp")
        root.manifest(branch_id).stamp(found + 1)
        root.force(manifest_path(branch_id))
        faults.hit("upgrade.after_stamp")
        log.info("branch %s of %s is now in format %d", branch_id, root.uri, found + 1)
        found += 1
    root.forget(branch_id)


def _format_of(root: GraphRoot, branch_id: str) -> int:
    try:
        return root.manifest(branch_id).format_version()
    except StorageNotFoundError as error:
        raise GraphNotFoundError(f"No graph was found at {root.uri}.") from error
