"""The result of a write: affected rows and the commit.

    result = graph.mutate(...)
    result.affected["Person"].inserted
    result.commit                      # None when nothing had to change

Guarantees: rows are counted once however many statements touched them; edges that went along with
their nodes are counted under their own type.
Deliberately absent: the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from omnigraph.model.commit import Commit


@dataclass(frozen=True, slots=True)
class Affected:
    """How many rows of one type a write inserted, updated and deleted."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    is_edge: bool = False

    @property
    def total(self) -> int:
        return self.inserted + self.updated + self.deleted

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": "edge" if self.is_edge else "node",
            "inserted": self.inserted,
            "updated": self.updated,
            "deleted": self.deleted,
        }

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Affected:
        return Affected(
            int(value["inserted"]),
            int(value["updated"]),
            int(value["deleted"]),
            value["kind"] == "edge",
        )


@dataclass(frozen=True)
class WriteResult:
    """The result of a mutation or an ingest.

    `commit` is None if nothing changed. `repeated`: this is the result of an earlier request with
    the same idempotency key.
    """

    commit: Commit | None
    affected: Mapping[str, Affected] = field(default_factory=dict)
    repeated: bool = False
    # What the caller should know although the write succeeded.
    notices: tuple[str, ...] = field(default=(), kw_only=True)

    @property
    def commit_id(self) -> str | None:
        return None if self.commit is None else self.commit.id

    @property
    def changed(self) -> bool:
        return self.commit is not None

    @property
    def nodes(self) -> int:
        """Nodes that were inserted, updated or deleted."""
        return sum(a.total for a in self.affected.values() if not a.is_edge)

    @property
    def edges(self) -> int:
        return sum(a.total for a in self.affected.values() if a.is_edge)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, as in the output of the command line."""
        return {
            "commit": self.commit_id,
            "nodes": self.nodes,
            "edges": self.edges,
            "affected": {name: found.to_json() for name, found in sorted(self.affected.items())},
            "repeated": self.repeated,
            "notices": list(self.notices),
        }
