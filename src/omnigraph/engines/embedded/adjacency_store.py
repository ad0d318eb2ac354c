"""Stored adjacency lists, so that a new process need not rebuild them.

To know both ends of every edge as numbers takes most of the time of a first traversal, and to sort
them most of the rest. What was made from nothing is kept under the versions that it is true of,
with the numbers of their rows; a later process maps it, also when a few commits have been made
since: then it is carried over like in a process that was there.

Only arrays in numberings from nothing are kept: such numbers follow from the version alone, so the
versions in the name of a state name its numberings as well; the row ids lie beside the arrays.

Guarantees: a kept state is used only for versions that it was made from, or that descend from them;
only graphs on local disk, and only large edge tables, are kept; failing to keep is no error. Once
kept, the mapped arrays take the place of those in memory, which the system cannot take back.
Deliberately absent: lists by edge, which few queries need.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TypeAlias

import numpy as np

from omnigraph import logs
from omnigraph.caches import AnyCache
from omnigraph.engines.embedded.adjacency import Endpoints, Neighbours
from omnigraph.engines.embedded.bounds import Bounds
from omnigraph.engines.embedded.malloc import give_back
from omnigraph.engines.embedded.rownumbers import FROM_NOTHING, Array, Label, Numbering
from omnigraph.engines.embedded.tablecache import Resident
from omnigraph.errors import HistoryReclaimedError, StorageError
from omnigraph.model.location import Location
from omnigraph.model.snapshot import TableVersion
from omnigraph.storage.derived import drop_arrays, map_array, save_array, saved_names
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.versiondiff import descends

log = logs.logger(__name__)

# Smaller tables are resolved sooner than files are opened.
_LEAST_EDGES = 50_000
_KEPT_PER_TABLE = 4
_FOLDER = "adjacency"
_PARTS = ("edge", "source", "target")

Open = Callable[[TableVersion], Resident]
# Of edges, sources and targets.
Labels: TypeAlias = tuple[Label, Label, Label]
Numberings: TypeAlias = tuple[Numbering, Numbering, Numbering]


@dataclass(frozen=True, slots=True)
class Trio:
    """An edge table and the tables of its ends, each at a version."""

    edges: Resident
    sources: Resident
    targets: Resident

    @property
    def all(self) -> tuple[Resident, Resident, Resident]:
        return self.edges, self.sources, self.targets

    @property
    def kept_labels(self) -> Labels:
        """The numberings that kept arrays are in."""
        edges, sources, targets = (Label(each.key, FROM_NOTHING) for each in self.all)
        return edges, sources, targets

    def versions(self) -> list[TableVersion] | None:
        found = [resident.table.version for resident in self.all if resident.table is not None]
        return found if len(found) == 3 else None


class Keeper:
    """Keeps and finds the adjacency of one graph's edges."""

    def __init__(
        self, location: Location, cache: AnyCache, bounds: Bounds, open_version: Open
    ) -> None:
        self._root = GraphRoot(location)
        self._cache = cache
        self._bounds = bounds
        self._open = open_version
        self._saving: list[Future[None]] = []

    # Keeping

    def keeps(self, trio: Trio) -> bool:
        """Whether something of these tables is kept at all."""
        return trio.versions() is not None and self._is_worthwhile(trio)

    def settle(self) -> None:
        """Wait until what was given to keep is kept."""
        for each in self._saving:
            each.result()

    def keep(self, trio: Trio, numberings: Numberings, ends: Endpoints) -> None:
        """Keep ends that were resolved from nothing, in the background."""
        versions = self._kept_versions(trio, numberings)
        if versions is None:
            return
        arrays = {"sources": ends.sources, "targets": ends.targets}
        arrays |= _as_arrays(numberings)
        text = json.dumps([version.to_json() for version in versions]).encode()
        arrays["versions"] = np.frombuffer(text, np.uint8)

        def save() -> None:
            if self._save(versions, arrays):
                self._prune(versions[0])
                self._load(_name(versions), trio)
                give_back()

        self._saving.append(self._bounds.beside(save))

    def keep_lists(self, trio: Trio, numberings: Numberings, way: str, lists: Neighbours) -> None:
        """Keep neighbour lists, by the way they lead, that were sorted from nothing."""
        versions = self._kept_versions(trio, numberings)
        if versions is None:
            return
        arrays = {f"{way}-offsets": lists.offsets, f"{way}-targets": lists.targets}

        def save() -> None:
            mapped = self._lists(versions, way) if self._save(versions, arrays) else None
            if mapped is not None:
                self._cache.put((trio.kept_labels, way, False), mapped, mapped.nbytes)
                give_back()

        self._saving.append(self._bounds.beside(save))

    def _kept_versions(self, trio: Trio, numberings: Numberings) -> list[TableVersion] | None:
        """The versions of tables of which something is kept, in these numberings."""
        if not all(numbering.is_from_nothing for numbering in numberings):
            return None
        return trio.versions() if self.keeps(trio) else None

    def _is_worthwhile(self, trio: Trio) -> bool:
        return self._root.location.scheme == "file" and trio.edges.rows >= _LEAST_EDGES

    def _save(self, versions: list[TableVersion], arrays: dict[str, Array]) -> bool:
        name = _name(versions)
        try:
            for part, array in arrays.items():
                save_array(self._root, f"{name}/{part}", array)
        except StorageError as error:
            log.debug("adjacency not kept", extra=logs.fields(name=name, error=str(error)))
            return False
        return True

    def _prune(self, version: TableVersion) -> None:
        try:
            for name in self._entries(version)[_KEPT_PER_TABLE:]:
                drop_arrays(self._root, name)
        except StorageError as error:
            log.debug("adjacency not pruned", extra=logs.fields(error=str(error)))

    def _entries(self, version: TableVersion) -> list[str]:
        """What is kept of a table, the latest first."""
        names = {n.rpartition("/")[0] for n in saved_names(self._root, _folder(version))}
        return sorted(names, key=lambda name: (_edge_version(name), name), reverse=True)

    # Finding

    def adopt(self, trio: Trio) -> None:
        """Bring kept ends into memory, if there are any that help."""
        versions = trio.versions()
        if versions is None or not self.keeps(trio):
            return
        if self._cache.peek((trio.kept_labels, "endpoints")) is not None:
            return
        if self._load(_name(versions), trio):
            return
        # Numbers that exist already cannot be made to continue older ones.
        if not any(resident.is_numbered for resident in trio.all):
            self._adopt_ancestor(versions)

    def lists(self, trio: Trio, numberings: Numberings, way: str, size: int) -> Neighbours | None:
        """Kept neighbour lists of so many nodes."""
        versions = self._kept_versions(trio, numberings)
        found = None if versions is None else self._lists(versions, way)
        return found if found is not None and found.size == size else None

    def _lists(self, versions: list[TableVersion], way: str) -> Neighbours | None:
        name = _name(versions)
        offsets = map_array(self._root, f"{name}/{way}-offsets", np.int64)
        targets = map_array(self._root, f"{name}/{way}-targets", np.int32)
        if offsets is None or targets is None:
            return None
        return Neighbours(offsets, targets) if int(offsets[-1]) == len(targets) else None

    def _adopt_ancestor(self, versions: list[TableVersion]) -> None:
        for name in self._entries(versions[0]):
            if _edge_version(name) > versions[0].version:
                continue
            older = _read_versions(self._root, name, versions[0].incarnation)
            if older is None or not self._descend(older, versions):
                continue
            try:
                trio = Trio(*(self._open(version) for version in older))
            except (HistoryReclaimedError, StorageError):
                continue
            if self._load(name, trio):
                self._load_lists(older, trio)
                return

    def _descend(self, older: list[TableVersion], versions: list[TableVersion]) -> bool:
        pairs = zip(older, versions, strict=True)
        return all(o == v or (o.path == v.path and descends(self._root, o, v)) for o, v in pairs)

    def _load(self, name: str, trio: Trio) -> bool:
        """Put kept ends, and the numbers that they are in, where queries look for them."""
        sources = map_array(self._root, f"{name}/sources", np.int32)
        targets = map_array(self._root, f"{name}/targets", np.int32)
        kept = _numberings(self._root, name)
        if sources is None or targets is None or kept is None:
            return False
        if [numbering.size for numbering in kept] != [resident.rows for resident in trio.all]:
            return False
        if not len(sources) == len(targets) == trio.edges.rows:
            return False
        for resident, numbering in zip(trio.all, kept, strict=True):
            if not resident.numbered(numbering).is_from_nothing:
                return False
        ends = Endpoints(sources, targets)
        self._cache.put((trio.kept_labels, "endpoints"), ends, ends.nbytes)
        return True

    def _load_lists(self, versions: list[TableVersion], trio: Trio) -> None:
        """Those of an ancestor, from which later ones are made."""
        for way, near in (("out", trio.sources), ("in", trio.targets)):
            found = self._lists(versions, way)
            if found is not None and found.size == near.rows:
                self._cache.put((trio.kept_labels, way, False), found, found.nbytes)


def _as_arrays(numberings: Numberings) -> dict[str, Array]:
    """Sizes, and the row ids of those tables where they are not the numbers themselves."""
    marks = [(numbering.size, numbering.row_ids is None) for numbering in numberings]
    found = {"sizes": np.array(marks, np.int64).ravel()}
    for part, numbering in zip(_PARTS, numberings, strict=True):
        if numbering.row_ids is not None:
            found[f"{part}-rows"] = numbering.row_ids.astype(np.uint64, copy=False)
    return found


def _numberings(root: GraphRoot, name: str) -> list[Numbering] | None:
    marks = map_array(root, f"{name}/sizes", np.int64)
    if marks is None or len(marks) != 2 * len(_PARTS):
        return None
    found = []
    for part, (size, is_plain) in zip(_PARTS, marks.reshape(-1, 2).tolist(), strict=True):
        row_ids = None if is_plain else map_array(root, f"{name}/{part}-rows", np.uint64)
        if not is_plain and (row_ids is None or len(row_ids) != size):
            return None
        found.append(Numbering(size, row_ids))
    return found


def _folder(version: TableVersion) -> str:
    return f"{_FOLDER}/{version.path.replace('/', '-')}"


def _name(versions: list[TableVersion]) -> str:
    lines = json.dumps([[v.incarnation, v.path, v.fork, v.version, v.epoch] for v in versions])
    digest = sha256(lines.encode()).hexdigest()[:16]
    return f"{_folder(versions[0])}/{versions[0].version}-{digest}"


def _edge_version(name: str) -> int:
    number = name.rsplit("/", 1)[-1].split("-")[0]
    return int(number) if number.isdigit() else -1


def _read_versions(root: GraphRoot, name: str, incarnation: str) -> list[TableVersion] | None:
    text = map_array(root, f"{name}/versions", np.uint8)
    if text is None:
        return None
    try:
        stored = [TableVersion.from_json(v) for v in json.loads(text.tobytes())]
    except (ValueError, KeyError, TypeError):
        return None
    found = [replace(version, incarnation=incarnation) for version in stored]
    return found if len(found) == 3 and _name(found) == name else None
