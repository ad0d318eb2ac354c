"""Changes between two states of a graph, entity by entity.

Images are exact; order is nodes before edges, then type, then id, then operation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from omnigraph.arguments import checked
from omnigraph.model.catalog import TableKind


class ChangeOp(StrEnum):
    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Change:
    """One entity that differs. An insert has only `after`, a delete only `before`.

    Images map property names to values; those of edges also have `src` and `dst`. `type_id` does
    not change when the type is renamed.
    """

    kind: TableKind
    type_id: int
    type_name: str
    id: str
    op: ChangeOp
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None


@checked
@dataclass(frozen=True, slots=True)
class ChangeFilter:
    """Which changes to report; an empty set means all."""

    kinds: frozenset[TableKind] = frozenset()
    types: frozenset[str] = frozenset()
    ops: frozenset[ChangeOp] = frozenset()

    def wants_type(self, kind: TableKind, name: str) -> bool:
        return (not self.kinds or kind in self.kinds) and (not self.types or name in self.types)

    def wants_op(self, op: ChangeOp) -> bool:
        return not self.ops or op in self.ops


EVERYTHING = ChangeFilter()
