"""Making a copied or moved graph whole where it lies now.

    strays(context)       the forks that look for their files somewhere else
    bring_home(context)   let them look here

Copy the files first, by whatever means; see the guide to backups. `repair` does this too.

`strays` changes nothing; the files of the original are neither read nor needed; an interrupted run
leaves the graph refusing what is not yet home, and is simply repeated.
"""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.errors import InvariantViolationError
from omnigraph.operations.context import Context
from omnigraph.operations.maintain import MAINTENANCE_LOCK
from omnigraph.storage.locks import writer_lock
from omnigraph.storage.reclamation import fork_manifests
from omnigraph.storage.rehome import brought_home
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.table import forget_tables


def strays(context: Context) -> tuple[str, ...]:
    """The manifests of forks that name another place than this one."""
    return tuple(name for name, _ in _strays(context.root))


def bring_home(context: Context) -> int:
    """Let every fork look for its files in this graph; returns how many manifests were changed."""
    root, count = context.root, 0
    with writer_lock(root.objects, MAINTENANCE_LOCK, owner=context.actor, operation="bring home"):
        for name, data in _strays(root):
            root.objects.put(name, data)
            count += 1
    if count:
        forget_tables()
    return count


def _strays(root: GraphRoot) -> Iterator[tuple[str, bytes]]:
    """Each such manifest, and what it should hold."""
    if root.location.scheme == "memory":
        return
    for path, name in fork_manifests(root):
        found = root.objects.get_or_none(name)
        if found is None:  # removed since it was listed
            continue
        try:
            wanted = brought_home(root.location, path, found.data)
        except InvariantViolationError:
            continue  # not to be understood; opening it says so
        if wanted != found.data:
            yield name, wanted
