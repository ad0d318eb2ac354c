"""A snapshot: one commit of one branch, as a value that any engine can read anywhere.

Guarantees: immutable; names exact table versions, so that what is read through it never changes.
Deliberately absent: open handles. A reader opens what it needs from the location and the versions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from omnigraph.model.catalog import Catalog
from omnigraph.model.location import Location
from omnigraph.model.visibility import EVERYTHING, Visibility, visible_catalog


@dataclass(frozen=True, slots=True)
class TableVersion:
    """One immutable version of one table.

    `fork` is the Lance branch that holds the version, None for the table's first line.
    `logical` counts the changes of content: compaction and index builds move `version` alone.
    `epoch` counts the times that all rows were replaced at once: along one line of descent, row
    ids mean the same rows within one epoch.
    `incarnation` is the graph's as this process knows it (see `storage.incarnation`): the other
    fields name one version only within it. It is not stored. Empty: whichever graph is there now.
    """

    table_id: int
    path: str
    fork: str | None
    version: int
    logical: int
    rows: int
    epoch: int = 0
    incarnation: str = field(default="", compare=False, repr=False)

    def to_json(self) -> dict[str, Any]:
        return {
            "table_id": self.table_id,
            "path": self.path,
            "fork": self.fork,
            "version": self.version,
            "logical": self.logical,
            "rows": self.rows,
            "epoch": self.epoch,
        }

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> TableVersion:
        return TableVersion(
            int(value["table_id"]),
            str(value["path"]),
            value["fork"],
            int(value["version"]),
            int(value["logical"]),
            int(value["rows"]),
            int(value["epoch"]),
        )


@dataclass(frozen=True)
class Snapshot:
    """What a query reads: a location, a commit, its catalog and its table versions by table id.

    A live type that has never been written has no entry in `tables` until its first write.
    `incarnation` is the graph's at the address, as in `TableVersion`.
    """

    location: Location
    branch: str
    commit_id: str
    sequence: int
    catalog: Catalog
    tables: Mapping[int, TableVersion]
    incarnation: str = ""
    visibility: Visibility = EVERYTHING
    # The catalog with hidden properties, if the visibility hides something.
    stored_catalog: Catalog | None = None

    @property
    def whole_catalog(self) -> Catalog:
        """The catalog with all properties, hidden ones too."""
        return self.stored_catalog or self.catalog

    def seen_through(self, visibility: Visibility) -> Snapshot:
        """The same state, restricted to what the visibility shows."""
        if visibility.is_everything:
            return self
        whole = self.whole_catalog
        catalog = visible_catalog(whole, visibility)
        return replace(self, catalog=catalog, visibility=visibility, stored_catalog=whole)

    def table(self, table_id: int) -> TableVersion | None:
        return self.tables.get(table_id)
