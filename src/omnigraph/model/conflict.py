"""Merge conflicts: what two branches did to one thing that does not combine.

Each carries the base's, ours' and theirs' values, so that a person can decide.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from omnigraph.model.catalog import TableKind


class ConflictKind(StrEnum):
    DIVERGENT_INSERT = "DivergentInsert"
    DIVERGENT_UPDATE = "DivergentUpdate"
    DELETE_VS_UPDATE = "DeleteVsUpdate"
    ORPHAN_EDGE = "OrphanEdge"
    UNIQUE = "UniqueViolation"
    CARDINALITY = "CardinalityViolation"
    VALUE = "ValueConstraintViolation"
    SCHEMA = "SchemaConflict"


class Side(StrEnum):
    OURS = "ours"
    THEIRS = "theirs"


@dataclass(frozen=True, slots=True)
class MergeConflict:
    """One conflict. Images are property maps, None where the side has no such entity; both
    deleting and never having had it look the same. `properties` names what diverges."""

    kind: ConflictKind
    entity_kind: TableKind
    type_name: str
    entity_id: str | None
    message: str
    properties: tuple[str, ...] = ()
    base: Mapping[str, Any] | None = None
    ours: Mapping[str, Any] | None = None
    theirs: Mapping[str, Any] | None = None
