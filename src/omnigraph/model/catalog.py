"""The catalog: the accepted types of a graph, with identities that survive renames.

Guarantees: every type and property has an integer id that is never reused in its graph; a
property's physical column name is fixed when it is born, so a rename touches no data.
Deliberately absent: parsing, migration planning and the JSON form (those live in `lang.pg`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TypeAlias

from omnigraph.model.types import Kind, ValueType

Constant: TypeAlias = str | int | float | bool | None
ID_COLUMN = "id"
SRC_COLUMN = "src"
DST_COLUMN = "dst"


class TableKind(StrEnum):
    NODE = "node"
    EDGE = "edge"


@dataclass(frozen=True, slots=True)
class Annotation:
    """An annotation as written: `@name(args…, key=value…)`. Unknown ones are kept."""

    name: str
    args: tuple[Constant, ...] = ()
    kwargs: tuple[tuple[str, Constant], ...] = ()


@dataclass(frozen=True, slots=True)
class Embed:
    """`@embed("source", model="…")` on a vector property."""

    source: str
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Property:
    id: int
    name: str
    type: ValueType
    column: str  # physical column, fixed at birth
    default: Constant = None
    has_default: bool = False
    embed: Embed | None = None
    annotations: tuple[Annotation, ...] = ()


@dataclass(frozen=True, slots=True)
class Range:
    """`@range(p, min..max)`; a missing bound is open; both ends are included."""

    property: str
    minimum: int | float | None
    maximum: int | float | None


@dataclass(frozen=True, slots=True)
class Check:
    """`@check(p, "regex")`."""

    property: str
    pattern: str


@dataclass(frozen=True, slots=True)
class Cardinality:
    """`@card(min..max)`: how many edges of the type may leave one source node."""

    minimum: int = 0
    maximum: int | None = None

    @property
    def is_default(self) -> bool:
        return self.minimum == 0 and self.maximum is None


@dataclass(frozen=True, slots=True)
class Interface:
    id: int
    name: str
    properties: tuple[Property, ...]
    annotations: tuple[Annotation, ...] = ()


@dataclass(frozen=True)
class TableType:
    """What node and edge types share: a table with identity, properties and constraints."""

    id: int
    name: str
    properties: tuple[Property, ...]
    uniques: tuple[tuple[str, ...], ...] = ()
    indexes: tuple[tuple[str, ...], ...] = ()
    annotations: tuple[Annotation, ...] = ()
    # Column names that dropped properties still hold in old versions; never given out again.
    retired_columns: tuple[str, ...] = ()

    @cached_property
    def by_name(self) -> Mapping[str, Property]:
        return {p.name: p for p in self.properties}

    def get(self, name: str) -> Property | None:
        return self.by_name.get(name)

    @property
    def kind(self) -> TableKind:
        return TableKind.EDGE if isinstance(self, EdgeType) else TableKind.NODE

    @property
    def directory(self) -> str:
        """How the paths of its datasets begin. Carries the id, never the name."""
        return f"{self.kind}s/{self.id:016x}"

    @property
    def blob_properties(self) -> tuple[Property, ...]:
        return tuple(p for p in self.properties if p.type.kind is Kind.BLOB)


@dataclass(frozen=True)
class NodeType(TableType):
    key: tuple[str, ...] = ()
    ranges: tuple[Range, ...] = ()
    checks: tuple[Check, ...] = ()
    implements: tuple[str, ...] = ()


@dataclass(frozen=True)
class EdgeType(TableType):
    src_type: str = ""
    dst_type: str = ""
    cardinality: Cardinality = field(default_factory=Cardinality)


@dataclass(frozen=True)
class Catalog:
    """All live types of a graph, and the counter from which new ids are drawn."""

    nodes: tuple[NodeType, ...] = ()
    edges: tuple[EdgeType, ...] = ()
    interfaces: tuple[Interface, ...] = ()
    next_id: int = 1
    hash: str = ""  # of the canonical JSON form; set by the builder of the catalog

    @cached_property
    def _nodes(self) -> Mapping[str, NodeType]:
        return {t.name: t for t in self.nodes}

    @cached_property
    def _edges(self) -> Mapping[str, EdgeType]:
        # Edge names are matched without regard to case: `knows` finds `Knows`.
        return {t.name.lower(): t for t in self.edges}

    @cached_property
    def _interfaces(self) -> Mapping[str, Interface]:
        return {t.name: t for t in self.interfaces}

    @cached_property
    def _tables(self) -> Mapping[int, NodeType | EdgeType]:
        return {t.id: t for t in self.tables()}

    def node(self, name: str) -> NodeType | None:
        return self._nodes.get(name)

    def edge(self, name: str) -> EdgeType | None:
        return self._edges.get(name.lower())

    def interface(self, name: str) -> Interface | None:
        return self._interfaces.get(name)

    def implementers(self, interface: str) -> tuple[NodeType, ...]:
        return tuple(t for t in self.nodes if interface in t.implements)

    def table(self, table_id: int) -> NodeType | EdgeType | None:
        return self._tables.get(table_id)

    def tables(self) -> Iterator[NodeType | EdgeType]:
        yield from self.nodes
        yield from self.edges

    def edges_of(self, node_type: str) -> tuple[EdgeType, ...]:
        """Edge types that touch a node type at either end, in declaration order."""
        return tuple(e for e in self.edges if node_type in (e.src_type, e.dst_type))
