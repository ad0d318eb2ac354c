"""Copying a whole graph, with branches, tags and history, while others go on using it.

    copy_graph(context, "s3://backups/shop")

Versions are never changed once written, so whatever a manifest points to can be copied in peace.
What points is read first and written last: until the copy is complete there is no graph at its
address.

Guarantees: the copy shows every branch as it was at a moment after the call began; it shares no
file with the original, and is another graph than it from the first moment (`storage.incarnation`),
also when it takes the place of the original; writers go on meanwhile, while cleanup, optimize and
the making of branches and tags wait. What was being written in that moment is not part of the copy.
Deliberately absent: updating an existing copy. The target must be empty.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from omnigraph import progress
from omnigraph.commit.headrepair import Remedy, settle_drift
from omnigraph.commit.journal import DIRECTORY as RECOVERY
from omnigraph.errors import AlreadyExistsError, InvalidArgumentError, StorageTransientError
from omnigraph.history.refs import BRANCHES, MAIN, TAGS, list_branches
from omnigraph.operations.branch import HISTORY_LOCK
from omnigraph.operations.context import Context
from omnigraph.operations.lifecycle import open_graph
from omnigraph.operations.maintain import MAINTENANCE_LOCK
from omnigraph.operations.relocate import bring_home
from omnigraph.operations.requests import CopyGraph
from omnigraph.storage.derived import FOLDER as DERIVED
from omnigraph.storage.incarnation import new_stamp
from omnigraph.storage.locks import writer_lock
from omnigraph.storage.manifest import DIRECTORY as MANIFESTS
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.root import GraphRoot

TABLES = ("nodes", "edges")
# What belongs to writers at work, or can be made again.
_LEFT_OUT = frozenset({RECOVERY, DERIVED, "__locks", "__tmp", "__staging"})
# Where the main manifest of a copy lies until the copy is complete.
_ASIDE = "~main"
# How often a manifest is read again that was trimmed while it was read.
_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Copied:
    """The result of a copy: files, bytes and the target."""

    place: str
    objects: int
    bytes: int


def copy_graph(context: Context, request: CopyGraph) -> Copied:
    """Copy the graph to an empty address."""
    source, target = context.root, GraphRoot.at(request.place)
    if "memory" in (source.location.scheme, target.location.scheme):
        raise InvalidArgumentError("A graph in memory has no files that could be copied.")
    if next(iter(target.objects.list("")), None) is not None:
        raise AlreadyExistsError(f"{request.place} is not empty.", hint="Name an empty place.")
    with _nothing_vanishes(context):
        pointers = _read_pointers(source.objects)
        tables = [name for kind in TABLES for name in source.objects.list(kind)]
        size = _copy_tables(source, target, [name for name in tables if _is_real(name)])
    _write_pointers(target, pointers)
    _make_whole(context, request.place)
    return Copied(
        request.place, len(pointers) + len(tables), size + sum(map(len, pointers.values()))
    )


@contextmanager
def _nothing_vanishes(context: Context) -> Iterator[None]:
    """Cleanup waits. A graph that was opened read-only is copied as it is."""
    if context.read_only:
        yield
        return
    objects, actor = context.root.objects, context.actor
    with (
        writer_lock(objects, MAINTENANCE_LOCK, owner=actor, operation="copy"),
        writer_lock(objects, HISTORY_LOCK, owner=actor, operation="copy"),
    ):
        yield


def _read_pointers(objects: ObjectStore) -> dict[str, bytes]:
    """Everything but tables: names before the manifests that they mean, those before schemas."""
    found: dict[str, bytes] = {}
    for folder in (BRANCHES, TAGS):
        found |= _read(objects, objects.list(folder))
    branches = {name.split("/")[1] for name in objects.list(MANIFESTS)}
    for branch_id in sorted(branches):
        found |= _read_manifest(objects, f"{MANIFESTS}/{branch_id}")
    known = {BRANCHES, TAGS, MANIFESTS, *TABLES, *_LEFT_OUT}
    rest = [name for name in objects.list("") if name.split("/")[0] not in known]
    return found | _read(objects, rest)


def _read_manifest(objects: ObjectStore, folder: str) -> dict[str, bytes]:
    """A branch's manifest at its newest version, with all that this version needs."""
    for _ in range(_ATTEMPTS):
        names = [name for name in objects.list(folder) if _is_real(name)]
        versions = sorted(name for name in names if name.endswith(".manifest"))
        wanted = [*versions[:1], *(name for name in names if name not in versions)]
        found = _read(objects, wanted)
        if len(found) == len(wanted):  # nothing was trimmed while we read
            return found
    raise StorageTransientError(f"{folder} changed all the time while it was copied.")


def _write_pointers(target: GraphRoot, pointers: dict[str, bytes]) -> None:
    """Put everything in place, with a stamp of the copy's own in each manifest. The main manifest
    is stamped under another name and put in place last: with it the copy is a graph."""
    stamp, main, aside = new_stamp(), f"{MANIFESTS}/{MAIN}", f"{MANIFESTS}/{_ASIDE}"
    for name, data in pointers.items():
        own = name.removeprefix(f"{main}/")
        target.objects.put(name if own == name else f"{aside}/{own}", data)
    for branch_id in sorted({name.split("/")[1] for name in target.objects.list(MANIFESTS)}):
        manifest = target.manifest(branch_id)
        manifest.stamp(manifest.format_version(), stamp)
        target.forget(branch_id)
    target.medium.force_all()
    stamped = [name for name in target.objects.list(aside) if _is_real(name)]
    versions = sorted(name for name in stamped if name.endswith(".manifest"))
    for name in (*(name for name in stamped if name not in versions), versions[0]):
        target.objects.put(name.replace(aside, main, 1), target.objects.get(name).data)
    target.objects.delete_prefix(aside)


def _read(objects: ObjectStore, names: Iterable[str]) -> dict[str, bytes]:
    read = {name: objects.get_or_none(name) for name in names if _is_real(name)}
    return {name: found.data for name, found in read.items() if found is not None}


def _is_real(name: str) -> bool:
    """Whether the file is complete, not one that is being written."""
    return not name.rsplit("/", 1)[-1].startswith(".")


def _copy_tables(source: GraphRoot, target: GraphRoot, names: list[str]) -> int:
    size = 0
    local = source.location.scheme == target.location.scheme == "file"
    for number, name in enumerate(names):
        progress.report("copy", number, len(names), bytes=size)
        if local:
            size += _copy_file(f"{source.location.path}/{name}", f"{target.location.path}/{name}")
            continue
        found = source.objects.get_or_none(name)
        if found is not None:
            target.objects.put(name, found.data)
            size += found.size
    if local:
        target.medium.force_all()
    return size


def _copy_file(source: str, target: str) -> int:
    os.makedirs(os.path.dirname(target), exist_ok=True)
    try:
        shutil.copyfile(source, target)
    except FileNotFoundError:
        return 0  # of a version that nothing points to
    return os.path.getsize(target)


def _make_whole(context: Context, place: str) -> None:
    """Let forks look for their files in the copy, and put tables back that a writer had moved
    between the reading of its manifest and that of the table."""
    copy = open_graph(place, actor=context.actor)
    bring_home(copy)
    for branch in list_branches(copy.root):
        settle_drift(copy.root, branch.name, context.actor, lambda drift: Remedy.DISCARD)
