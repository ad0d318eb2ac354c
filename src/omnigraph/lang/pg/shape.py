"""A checked schema without identities: interfaces expanded, constraints in one place.

Every name in a shape refers to something in the same schema.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from omnigraph.lang.diagnostics import NOWHERE, Span
from omnigraph.model.catalog import Annotation, Cardinality, Check, Constant, Embed, Range
from omnigraph.model.types import ValueType


@dataclass(eq=False, repr=False)
class Rename:
    """The name in `@rename_from("…")`, and where it stands."""

    old: str
    span: Span


@dataclass(eq=False, repr=False)
class PropertyShape:
    name: str
    type: ValueType
    default: Constant = None
    has_default: bool = False
    embed: Embed | None = None
    # On interfaces these hold the property's constraints as well: interfaces have no tables.
    annotations: tuple[Annotation, ...] = ()
    rename: Rename | None = None
    inherited: bool = False
    span: Span = NOWHERE


@dataclass(eq=False, repr=False)
class TypeShape:
    name: str
    span: Span
    properties: list[PropertyShape] = field(default_factory=list)
    annotations: tuple[Annotation, ...] = ()
    rename: Rename | None = None


@dataclass(eq=False, repr=False)
class InterfaceShape(TypeShape):
    pass


@dataclass(eq=False, repr=False)
class TableShape(TypeShape):
    uniques: list[tuple[str, ...]] = field(default_factory=list)
    indexes: list[tuple[str, ...]] = field(default_factory=list)


@dataclass(eq=False, repr=False)
class NodeShape(TableShape):
    key: tuple[str, ...] = ()
    ranges: list[Range] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    implements: tuple[str, ...] = ()


@dataclass(eq=False, repr=False)
class EdgeShape(TableShape):
    source: str = ""
    target: str = ""
    cardinality: Cardinality = field(default_factory=Cardinality)


@dataclass(eq=False, repr=False)
class SchemaShape:
    interfaces: list[InterfaceShape] = field(default_factory=list)
    nodes: list[NodeShape] = field(default_factory=list)
    edges: list[EdgeShape] = field(default_factory=list)
