"""A graph root: the address of a graph, with handles to its manifests, tables and objects.

One manifest handle per branch, shared by all threads that hold the same root.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from omnigraph.model.location import Location
from omnigraph.storage.blobpolicy import NOWHERE, AllowList
from omnigraph.storage.durability import Durability, Medium
from omnigraph.storage.incarnation import known
from omnigraph.storage.location import parse_location
from omnigraph.storage.objects import ObjectStore, open_store

if TYPE_CHECKING:
    from omnigraph.storage.manifest import ManifestFile


class GraphRoot:
    """Where a graph lives. Cheap to make; opens nothing until asked."""

    def __init__(
        self,
        location: Location,
        allowed: AllowList = NOWHERE,
        durability: Durability = Durability.POWER,
    ) -> None:
        self.location = location
        self.allowed = allowed  # where new references of blobs may lead
        self.durability = durability
        self.medium = Medium(location)
        self.objects: ObjectStore = open_store(location)
        self._manifests: dict[str, ManifestFile] = {}
        self._guard = threading.Lock()

    @staticmethod
    def at(
        uri: str,
        external_blobs: Iterable[str] = (),
        storage_options: Mapping[str, str] | None = None,
    ) -> GraphRoot:
        location = parse_location(uri, storage_options=storage_options)
        return GraphRoot(location, AllowList.of(external_blobs))

    def with_durability(self, durability: Durability) -> GraphRoot:
        """The same root, with another durability for what is written through it."""
        if durability is self.durability:
            return self
        other = copy.copy(self)
        other.durability = durability
        return other

    def force_all(self, tables: Iterable[str] = ()) -> None:
        """With durability `power`: wait until everything written so far is on the medium."""
        if self.durability is Durability.POWER:
            self.medium.force_all(tables)

    def force(self, *folders: str) -> None:
        """With durability `power`: the same for these folders alone."""
        if self.durability is Durability.POWER:
            self.medium.force(*folders)

    @property
    def uri(self) -> str:
        return self.location.uri

    @property
    def key(self) -> str:
        """What caches use to identify the graph's location."""
        return self.location.key

    def manifest(self, branch_id: str) -> ManifestFile:
        # Lance is imported with the first manifest, so that naming a root stays cheap.
        from omnigraph.storage.manifest import ManifestFile

        with self._guard:
            manifest = self._manifests.get(branch_id)
            if manifest is None:
                manifest = self._manifests[branch_id] = ManifestFile(self.location, branch_id)
            return manifest

    @property
    def incarnation(self) -> str:
        """That of the graph which was last read here; empty if none was."""
        return known.label(self.key)

    def forget(self, branch_id: str) -> None:
        """Drop the handle of a branch that is gone."""
        known.forget(self.key, branch_id)
        with self._guard:
            self._manifests.pop(branch_id, None)
