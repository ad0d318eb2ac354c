"""What a reader of a snapshot may see: rows by predicate, and properties that are hidden.

A snapshot with a visibility reads as if hidden rows and hidden properties did not exist. An edge
with a hidden end is hidden as well. `EVERYTHING` hides nothing and costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, TypeVar

from omnigraph.model.catalog import Catalog, EdgeType, NodeType

if TYPE_CHECKING:
    from omnigraph.ir.expr import Expr

T = TypeVar("T", NodeType, EdgeType)


@dataclass(frozen=True)
class Visibility:
    """By table id: predicates that a row must satisfy, and names of hidden properties.

    Predicates use `Property(TARGET, …)` of `ir.query` and constants. `hash` identifies the
    visibility in the keys of caches; it is empty if nothing is hidden.
    """

    rows: Mapping[int, tuple[Expr, ...]] = field(default_factory=dict)
    hidden: Mapping[int, frozenset[str]] = field(default_factory=dict)
    hash: str = ""

    @staticmethod
    def of(
        rows: Mapping[int, tuple[Expr, ...]], hidden: Mapping[int, frozenset[str]]
    ) -> Visibility:
        """A visibility with the hash of its content."""
        rows = {key: value for key, value in sorted(rows.items()) if value}
        hidden = {key: value for key, value in sorted(hidden.items()) if value}
        if not rows and not hidden:
            return EVERYTHING
        listed = [(key, sorted(names)) for key, names in hidden.items()]
        return Visibility(rows, hidden, sha256(repr((rows, listed)).encode()).hexdigest()[:32])

    @property
    def is_everything(self) -> bool:
        return not self.hash

    def restricts(self, table: NodeType | EdgeType, catalog: Catalog) -> bool:
        """Whether rows of this type can be hidden."""
        if table.id in self.rows:
            return True
        if not isinstance(table, EdgeType):
            return False
        ends = (catalog.node(table.src_type), catalog.node(table.dst_type))
        return any(end is not None and end.id in self.rows for end in ends)


EVERYTHING = Visibility()


def visible_catalog(catalog: Catalog, visibility: Visibility) -> Catalog:
    """The catalog without hidden properties. Its hash differs from the hash of the whole catalog,
    so that compiled queries and plans are kept apart."""
    return replace(
        catalog,
        nodes=tuple(_visible_node(table, visibility) for table in catalog.nodes),
        edges=tuple(_visible(table, visibility) for table in catalog.edges),
        hash=f"{catalog.hash}+{visibility.hash}" if catalog.hash else "",
    )


def _visible(table: T, visibility: Visibility) -> T:
    hidden = visibility.hidden.get(table.id)
    if not hidden:
        return table
    return replace(
        table,
        properties=tuple(p for p in table.properties if p.name not in hidden),
        uniques=tuple(names for names in table.uniques if hidden.isdisjoint(names)),
        indexes=tuple(names for names in table.indexes if hidden.isdisjoint(names)),
    )


def _visible_node(table: NodeType, visibility: Visibility) -> NodeType:
    hidden = visibility.hidden.get(table.id)
    if not hidden:
        return table
    return replace(
        _visible(table, visibility),
        key=table.key if hidden.isdisjoint(table.key) else (),
        ranges=tuple(each for each in table.ranges if each.property not in hidden),
        checks=tuple(each for each in table.checks if each.property not in hidden),
    )
