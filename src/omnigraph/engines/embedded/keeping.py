"""Ends of edges kept beside the tables, so that a new process need not resolve them again.

To know both ends of every edge as numbers takes most of the time of a first traversal. What was
resolved from nothing is kept under the versions that it is true of; a later process loads it, also
when a few commits have been made since: then it is carried over like in a process that was there.

Guarantees: a kept state is used only for versions that it was made from, or that descend from them;
only graphs on local disk, and only large edge tables, are kept; failing to keep is no error.
Deliberately absent: neighbour lists. Sorting is quick.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from omnigraph import logs
from omnigraph.engines.embedded.adjacency import Endpoints
from omnigraph.engines.embedded.bounds import Bounds
from omnigraph.engines.embedded.cache import ByteCache
from omnigraph.engines.embedded.resident import Resident
from omnigraph.errors import HistoryReclaimedError, StorageError
from omnigraph.model.snapshot import TableVersion
from omnigraph.storage.deltas import descends
from omnigraph.storage.derived import drop_arrays, load_arrays, save_arrays, saved_names
from omnigraph.storage.root import GraphRoot

log = logs.logger(__name__)

# Smaller tables are resolved sooner than a file is read.
_LEAST_EDGES = 200_000
_KEPT_PER_TABLE = 4
_FOLDER = "adjacency"

Open = Callable[[TableVersion], Resident]


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
    def keys(self) -> tuple[Hashable, Hashable, Hashable]:
        return self.edges.key, self.sources.key, self.targets.key

    def versions(self) -> list[TableVersion] | None:
        found = [resident.table.version for resident in self.all if resident.table is not None]
        return found if len(found) == 3 else None

    def is_fresh(self, bounds: Bounds) -> bool:
        """Whether the numbers are those that any process would give."""
        return all(resident.numbering(bounds).continues is None for resident in self.all)


class Keeper:
    """Keeps and finds the ends of one graph's edges."""

    def __init__(self, root: str, cache: ByteCache, bounds: Bounds, open_version: Open) -> None:
        self._root = GraphRoot.at(root)
        self._cache = cache
        self._bounds = bounds
        self._open = open_version

    def keep(self, trio: Trio, ends: Endpoints) -> None:
        """Keep what was resolved from nothing, in the background."""
        versions = trio.versions()
        if versions is None or not self._is_worthwhile(trio) or not trio.is_fresh(self._bounds):
            return
        self._bounds.beside(lambda: self._save(versions, ends))

    def adopt(self, trio: Trio) -> None:
        """Bring a kept state into memory, if there is one that helps."""
        versions = trio.versions()
        if versions is None or not self._is_worthwhile(trio):
            return
        if self._cache.peek((trio.keys, "endpoints")) is not None:
            return
        if self._load(_name(versions), trio):
            return
        # Numbers that exist already cannot be made to continue older ones.
        if not any(resident.is_numbered for resident in trio.all):
            self._adopt_ancestor(versions)

    def _is_worthwhile(self, trio: Trio) -> bool:
        return self._root.location.scheme == "file" and trio.edges.rows >= _LEAST_EDGES

    def _adopt_ancestor(self, versions: list[TableVersion]) -> None:
        names = saved_names(self._root, _folder(versions[0]))
        for name in sorted(names, key=_edge_version, reverse=True):
            if _edge_version(name) > versions[0].version:
                continue
            older = _read_versions(self._root, name)
            if older is None or not self._descend(older, versions):
                continue
            try:
                trio = Trio(*(self._open(version) for version in older))
            except (HistoryReclaimedError, StorageError):
                continue
            if self._load(name, trio):
                return

    def _descend(self, older: list[TableVersion], versions: list[TableVersion]) -> bool:
        pairs = zip(older, versions, strict=True)
        return all(o == v or (o.path == v.path and descends(self._root, o, v)) for o, v in pairs)

    def _load(self, name: str, trio: Trio) -> bool:
        arrays = load_arrays(self._root, name)
        if arrays is None or not {"sources", "targets"} <= arrays.keys():
            return False
        ends = Endpoints(arrays["sources"], arrays["targets"])
        size = trio.edges.numbering(self._bounds).size
        if len(ends.sources) != size or len(ends.targets) != size:
            return False
        if not trio.is_fresh(self._bounds):
            return False
        self._cache.put((trio.keys, "endpoints"), ends, ends.nbytes)
        return True

    def _save(self, versions: list[TableVersion], ends: Endpoints) -> None:
        name = _name(versions)
        text = json.dumps([version.to_json() for version in versions]).encode()
        arrays = {
            "sources": ends.sources,
            "targets": ends.targets,
            "versions": np.frombuffer(text, np.uint8),
        }
        try:
            save_arrays(self._root, name, arrays)
            self._prune(versions[0])
        except StorageError as error:
            log.debug("adjacency not kept", extra=logs.fields(name=name, error=str(error)))

    def _prune(self, version: TableVersion) -> None:
        names = sorted(saved_names(self._root, _folder(version)), key=_edge_version)
        for name in names[:-_KEPT_PER_TABLE]:
            drop_arrays(self._root, name)


def _folder(version: TableVersion) -> str:
    return f"{_FOLDER}/{version.path.replace('/', '-')}"


def _name(versions: list[TableVersion]) -> str:
    lines = json.dumps([[v.path, v.fork, v.version, v.epoch] for v in versions])
    digest = sha256(lines.encode()).hexdigest()[:16]
    return f"{_folder(versions[0])}/{versions[0].version}-{digest}"


def _edge_version(name: str) -> int:
    number = name.rsplit("/", 1)[-1].split("-")[0]
    return int(number) if number.isdigit() else -1


def _read_versions(root: GraphRoot, name: str) -> list[TableVersion] | None:
    arrays = load_arrays(root, name)
    if arrays is None or "versions" not in arrays:
        return None
    try:
        found = [TableVersion.from_json(v) for v in json.loads(arrays["versions"].tobytes())]
    except (ValueError, KeyError, TypeError):
        return None
    return found if len(found) == 3 and _name(found) == name else None
