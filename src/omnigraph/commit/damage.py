"""Looking for what a power cut or a broken disk left behind, on every branch.

    survey(root)       the newest whole state of each branch, and what does not belong to it

A state is whole when the branch's manifest, its schema, and every file of every table that it names
are there (`storage.wholeness`). Damage that the oldest kept state has too is not the cut's: such a
file was damaged later, and going back would not help, so it is reported and nothing else.

Guarantees: reads only, takes no lock; the answer is the same however often it is asked.
Deliberately absent: doing anything about it (`salvage`), and the decision when to look
(`operations.lifecycle`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from omnigraph.commit import journal
from omnigraph.commit.journal import Sidecar
from omnigraph.errors import FormatError, OmniGraphError
from omnigraph.history.catalogs import read_catalog, schema_path
from omnigraph.history.manifestrows import BranchState, decode_state
from omnigraph.history.refs import BRANCHES, MAIN, TAGS, decode_branch
from omnigraph.history.tornheads import branch_ids, has_torn_head
from omnigraph.model.snapshot import TableVersion
from omnigraph.storage.auditlog import DIRECTORY as AUDIT
from omnigraph.storage.manifest import manifest_path
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.tableforks import line_path
from omnigraph.storage.versionfiles import torn_forks
from omnigraph.storage.wholeness import (
    DAMAGE,
    dataset_versions,
    is_whole,
    missing_head,
    torn_parts,
    version_file,
)

# A cut loses what the operating system had not written yet. It writes within half a minute, on
# laptops within ten. Older damage has another cause, and opening does not go back because of it.
TAIL_S = 600.0
_OBJECTS = (BRANCHES, TAGS, journal.DIRECTORY, "__deleted", "__keys")


@dataclass(frozen=True)
class Loss:
    """A loss of a branch: the publishes after `commit_id`, created at `since_us`; `files` are
    damaged. Without `versions` no commit is lost. `kept` is the intact version of its manifest,
    None if there is none."""

    branch: str
    branch_id: str
    commit_id: str | None
    since_us: int | None
    versions: tuple[int, ...]
    files: tuple[str, ...]
    kept: int | None = None

    @property
    def message(self) -> str:
        names = ", ".join(self.files[:3]) + (" …" if len(self.files) > 3 else "")
        if self.kept is None:
            return f"{self.branch}: no whole state is left; damaged: {names}"
        if not self.versions:
            return f"{self.branch}: damaged: {names}"
        return (
            f"{self.branch}: {len(self.versions)} publishes after commit {self.commit_id} of "
            f"{_moment(self.since_us)} are lost; damaged: {names}"
        )


@dataclass
class Survey:
    """`states` are the newest whole states by branch; `objects` are damaged control objects."""

    losses: list[Loss] = field(default_factory=list)
    states: dict[str, BranchState] = field(default_factory=dict)
    objects: list[str] = field(default_factory=list)
    # Forks of tables that no state names, as the table's path and the fork's name.
    forks: list[tuple[str, str]] = field(default_factory=list)
    # Datasets whose newest versions are damaged and unpublished, and branches without a name.
    lines: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        return not (self.losses or self.objects or self.lines or self.forks)


def is_suspicious(root: GraphRoot) -> bool:
    """Whether a writer has a reason for a survey: a damaged head, or a pending operation."""
    if root.location.scheme != "file":
        return False
    return next(iter(root.objects.list(journal.DIRECTORY)), None) is not None or has_torn_head(root)


def survey(root: GraphRoot, *, far: bool = False) -> Survey:
    """Look through a graph on a disk. `far`: go back as far as it takes to a whole state, not only
    by what a power cut can lose."""
    found = Survey()
    if root.location.scheme != "file":
        return found
    found.objects = list(_torn_objects(root))
    names = _names_of(root)
    known: _Known = {}
    for branch_id in branch_ids(root):
        try:
            state, loss = _look(root, branch_id, names.get(branch_id, branch_id), known, far)
        except FormatError:
            continue  # another release wrote it, and can judge it
        if state is not None:
            found.states[branch_id] = state
        if loss is None:
            continue
        if loss.kept is None and branch_id not in names:
            found.lines += [manifest_path(branch_id)] if loss.versions else []
        else:
            found.losses.append(loss)
    found.lines += _torn_lines(root, found.states, known)
    pins = newest_pins(found.states)
    found.forks = [each for each in torn_forks(root) if line_path(*each) not in pins]
    return found


def look_at(
    root: GraphRoot, branch_id: str, *, far: bool = False
) -> tuple[BranchState | None, Loss | None]:
    """The same for one branch: its newest whole state, and what is lost after it."""
    return _look(root, branch_id, _names_of(root).get(branch_id, branch_id), {}, far)


_Known = dict[tuple[str, int], list[str]]


def _look(
    root: GraphRoot, branch_id: str, name: str, known: _Known, far: bool
) -> tuple[BranchState | None, Loss | None]:
    versions = dataset_versions(root, manifest_path(branch_id))
    judged = _Judged(root, branch_id, known)
    folder = manifest_path(branch_id)
    gone = missing_head(root, folder, versions[0]) if versions else None
    if versions and gone is None and not judged.torn(versions[0]):
        return judged.states[versions[0]], None
    readable = [version for version in versions if judged.state(version) is not None]
    if not readable:
        files = tuple(path for version in versions[:8] for path in judged.torn(version))
        return None, Loss(name, branch_id, None, None, tuple(versions), files)
    old = set(judged.torn(readable[-1]))
    whole = next(version for version in readable if set(judged.torn(version)) <= old)
    kept = whole if far or _is_tail(root, branch_id, versions, whole) else readable[0]
    missing = () if gone is None else (gone,)
    lost = (*missing, *(version for version in versions if version > kept))
    damaged = dict.fromkeys(path for v in (*lost, kept) for path in judged.torn(v))
    state = judged.states[kept]
    head = state.head
    return state, Loss(name, branch_id, head.id, head.created_at_us, lost, tuple(damaged), kept)


class _Judged:
    """What is wrong with each version of one branch's manifest, found out once."""

    def __init__(self, root: GraphRoot, branch_id: str, known: _Known) -> None:
        self._root = root
        self._branch_id = branch_id
        self._known = known
        self._torn: dict[int, list[str]] = {}
        self.states: dict[int, BranchState] = {}

    def state(self, version: int) -> BranchState | None:
        """What the version says; None if it cannot be read."""
        self.torn(version)
        return self.states.get(version)

    def torn(self, version: int) -> list[str]:
        if version not in self._torn:
            self._torn[version] = list(self._find(version))
        return self._torn[version]

    def _find(self, version: int) -> Iterator[str]:
        folder = manifest_path(self._branch_id)
        mine = torn_parts(self._root, folder, version)
        yield from mine
        if version_file(folder, version) in mine:
            return
        try:
            image = self._root.manifest(self._branch_id).read_at(version)
            state = decode_state(image.tail)
        except DAMAGE:
            if not mine:
                yield version_file(folder, version)
            return
        try:
            read_catalog(self._root, state.head.schema_hash)
        except DAMAGE:
            yield schema_path(state.head.schema_hash)
            return
        self.states[version] = state
        for table in state.tables.values():
            yield from _torn_table(self._root, table, self._known)


def _torn_table(root: GraphRoot, table: TableVersion, known: _Known) -> list[str]:
    key = (line_path(table.path, table.fork), table.version)
    if key not in known:
        known[key] = torn_parts(root, *key)
    return known[key]


def _is_tail(root: GraphRoot, branch_id: str, versions: list[int], kept: int) -> bool:
    """Whether everything after a version was written shortly before the newest file."""
    folder = manifest_path(branch_id)
    times = [
        os.stat(f"{root.location.path}/{version_file(folder, version)}").st_mtime
        for version in versions
        if version > kept
    ]
    return not times or max(times) - min(times) <= TAIL_S


def _torn_lines(root: GraphRoot, states: dict[str, BranchState], known: _Known) -> Iterator[str]:
    """Datasets with damaged versions above those that any state names: tables that a writer had
    moved and not published, and the audit."""
    pins = newest_pins(states)
    waiting = {line_path(t.path, t.fork) for s in readable_sidecars(root) for t in s.tables}
    for folder in sorted({*pins, *waiting}):
        above = [v for v in dataset_versions(root, folder) if v > pins.get(folder, 0)]
        if any(known.setdefault((folder, v), torn_parts(root, folder, v)) for v in above):
            yield folder
    audit = dataset_versions(root, AUDIT)
    if audit and torn_parts(root, AUDIT, audit[0]):
        yield AUDIT


def newest_pins(states: dict[str, BranchState]) -> dict[str, int]:
    """The newest version of each line that any branch's state names."""
    pins: dict[str, int] = {}
    for state in states.values():
        for table in state.tables.values():
            folder = line_path(table.path, table.fork)
            pins[folder] = max(pins.get(folder, 0), table.version)
    return pins


def readable_sidecars(root: GraphRoot) -> list[Sidecar]:
    found = []
    for path in root.objects.list(journal.DIRECTORY):
        try:
            data = root.objects.get(path).data
            found.append(journal.decode(data, path))
        except OmniGraphError:
            continue
    return found


def _torn_objects(root: GraphRoot) -> Iterator[str]:
    """Control objects that are empty, cut or full of zeros. Those of another release are not."""
    for prefix in _OBJECTS:
        for path in root.objects.list(prefix):
            if not is_whole(root, path) or not _is_json(root, path):
                yield path


def _moment(at_us: int | None) -> str:
    when = datetime.fromtimestamp((at_us or 0) / 1_000_000, UTC)
    return when.isoformat(sep=" ", timespec="seconds")


def _is_json(root: GraphRoot, path: str) -> bool:
    try:
        json.loads(root.objects.get(path).data)
    except OmniGraphError:
        return True  # gone by now
    except (ValueError, RecursionError):
        return False
    return True


def _names_of(root: GraphRoot) -> dict[str, str]:
    names = {MAIN: MAIN}
    for path in root.objects.list(BRANCHES):
        try:
            branch = decode_branch(root.objects.get(path).data, path)
        except OmniGraphError:
            continue
        names[branch.id] = branch.name
    return names
