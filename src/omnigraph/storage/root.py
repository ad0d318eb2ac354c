"""A graph root: the place where one graph lives, and the handles that reach its parts.

Guarantees: one manifest handle per branch, shared by all threads that hold the same root.
Deliberately absent: what the parts mean.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING

from omnigraph.storage.allowing import NOWHERE, AllowList
from omnigraph.storage.location import Location, parse_location
from omnigraph.storage.objects import ObjectStore, open_store

if TYPE_CHECKING:
    from omnigraph.storage.manifest import ManifestFile


class GraphRoot:
    """Where a graph lives. Cheap to make; opens nothing until asked."""

    def __init__(self, location: Location, allowed: AllowList = NOWHERE) -> None:
        self.location = location
        self.allowed = allowed  # where new references of blobs may lead
        self.objects: ObjectStore = open_store(location)
        self._manifests: dict[str, ManifestFile] = {}
        self._guard = threading.Lock()

    @staticmethod
    def at(uri: str, external_blobs: Iterable[str] = ()) -> GraphRoot:
        return GraphRoot(parse_location(uri), AllowList.of(external_blobs))

    @property
    def uri(self) -> str:
        return self.location.uri

    def manifest(self, branch_id: str) -> ManifestFile:
        # Lance is imported with the first manifest, so that naming a root stays cheap.
        from omnigraph.storage.manifest import ManifestFile

        with self._guard:
            manifest = self._manifests.get(branch_id)
            if manifest is None:
                manifest = self._manifests[branch_id] = ManifestFile(self.location, branch_id)
            return manifest

    def forget(self, branch_id: str) -> None:
        """Drop the handle of a branch that is gone."""
        with self._guard:
            self._manifests.pop(branch_id, None)
