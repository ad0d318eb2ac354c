"""Turn a checked shape with identities into a catalog.

Guarantees: matched types and properties keep the order of the accepted catalog and new ones
follow in the order of the text, so moving a declaration around is no change; constraints are
stored in order of property ids, so renaming one is no change to them either.
Deliberately absent: checks. Every name in the shape has been resolved before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from omnigraph.lang.pg.identity import AcceptedType, Identities, Identity
from omnigraph.lang.pg.shape import (
    EdgeShape,
    InterfaceShape,
    NodeShape,
    PropertyShape,
    SchemaShape,
    TableShape,
)
from omnigraph.model.catalog import (
    DST_COLUMN,
    ID_COLUMN,
    SRC_COLUMN,
    Catalog,
    EdgeType,
    Interface,
    NodeType,
    Property,
)
from omnigraph.model.schema_ir import with_hash

_T = TypeVar("_T", Interface, NodeType, EdgeType, Property)


def build(shape: SchemaShape, ids: Identities, accepted: Catalog | None) -> Catalog:
    """The desired catalog, its hash included."""
    base = accepted or Catalog()
    interfaces = [_interface(s, ids.types["interface", s.name]) for s in shape.interfaces]
    numbers = {i.name: i.id for i in interfaces}
    nodes = [_node(s, ids.types["node", s.name], numbers) for s in shape.nodes]
    edges = [_edge(s, ids.types["edge", s.name]) for s in shape.edges]
    catalog = Catalog(
        nodes=in_order(nodes, base.nodes),
        edges=in_order(edges, base.edges),
        interfaces=in_order(interfaces, base.interfaces),
        next_id=ids.next_id,
    )
    return with_hash(catalog)


def in_order(items: Iterable[_T], accepted: Iterable[_T]) -> tuple[_T, ...]:
    """Items that were accepted before, in their old order, then the new ones."""
    place = {item.id: number for number, item in enumerate(accepted)}
    return tuple(sorted(items, key=lambda item: place.get(item.id, len(place))))


def _interface(shape: InterfaceShape, identity: Identity) -> Interface:
    known = () if identity.accepted is None else identity.accepted.properties
    properties = [_property(p, identity.properties[p.name], p.name) for p in shape.properties]
    return Interface(identity.id, shape.name, in_order(properties, known), shape.annotations)


def _node(shape: NodeShape, identity: Identity, interfaces: Mapping[str, int]) -> NodeType:
    properties, retired = _columns(shape, identity)
    rank = rank_of(properties)
    implements = sorted(shape.implements, key=lambda name: interfaces[name])
    ranges = sorted(
        dict.fromkeys(shape.ranges),
        key=lambda r: (rank[r.property], repr(r.minimum), repr(r.maximum)),
    )
    checks = sorted(dict.fromkeys(shape.checks), key=lambda c: (rank[c.property], c.pattern))
    return NodeType(
        id=identity.id,
        name=shape.name,
        properties=properties,
        uniques=canonical_groups(shape.uniques, rank),
        indexes=canonical_groups(shape.indexes, rank),
        annotations=shape.annotations,
        retired_columns=retired,
        key=tuple(sorted(shape.key, key=rank.__getitem__)),
        ranges=tuple(ranges),
        checks=tuple(checks),
        implements=tuple(implements),
    )


def _edge(shape: EdgeShape, identity: Identity) -> EdgeType:
    properties, retired = _columns(shape, identity)
    rank = rank_of(properties)
    return EdgeType(
        id=identity.id,
        name=shape.name,
        properties=properties,
        uniques=canonical_groups(shape.uniques, rank),
        indexes=canonical_groups(shape.indexes, rank),
        annotations=shape.annotations,
        retired_columns=retired,
        src_type=shape.source,
        dst_type=shape.target,
        cardinality=shape.cardinality,
    )


def rank_of(properties: Iterable[Property]) -> dict[str, int]:
    """What members of constraints are sorted by: endpoints first, then property ids."""
    return {SRC_COLUMN: -2, DST_COLUMN: -1} | {p.name: p.id for p in properties}


def canonical_groups(
    groups: Iterable[tuple[str, ...]], rank: Mapping[str, int]
) -> tuple[tuple[str, ...], ...]:
    """Groups of names in a canonical order, inside and among each other, each once."""
    inside = {tuple(sorted(group, key=rank.__getitem__)) for group in groups}
    return tuple(sorted(inside, key=lambda group: [rank[name] for name in group]))


def _columns(shape: TableShape, identity: Identity) -> tuple[tuple[Property, ...], tuple[str, ...]]:
    """Properties with their physical columns, and the columns of dropped properties."""
    known = _accepted_properties(identity.accepted)
    kept = {identity.properties[p.name] for p in shape.properties}
    retired = set(_retired(identity.accepted))
    retired.update(p.column for p in known.values() if p.id not in kept)
    # Engines differ in whether they tell columns apart by case, so ours never differ only there.
    taken = {c.lower() for c in retired} | {p.column.lower() for p in known.values()}
    taken |= {ID_COLUMN, SRC_COLUMN, DST_COLUMN} if isinstance(shape, EdgeShape) else {ID_COLUMN}
    properties = []
    for prop in sorted(shape.properties, key=lambda p: identity.properties[p.name]):
        id_ = identity.properties[prop.name]
        column = known[id_].column if id_ in known else _free_column(prop.name, id_, taken)
        taken.add(column.lower())
        properties.append(_property(prop, id_, column))
    place = {p.name: number for number, p in enumerate(shape.properties)}
    properties.sort(key=lambda p: place[p.name])
    return in_order(properties, known.values()), tuple(sorted(retired))


def _free_column(name: str, id_: int, taken: set[str]) -> str:
    return name if name.lower() not in taken else f"{name}__{id_}"


def _accepted_properties(accepted: AcceptedType | None) -> dict[int, Property]:
    return {} if accepted is None else {p.id: p for p in accepted.properties}


def _retired(accepted: AcceptedType | None) -> tuple[str, ...]:
    return accepted.retired_columns if isinstance(accepted, NodeType | EdgeType) else ()


def _property(shape: PropertyShape, id_: int, column: str) -> Property:
    return Property(
        id=id_,
        name=shape.name,
        type=shape.type,
        column=column,
        default=shape.default,
        has_default=shape.has_default,
        embed=shape.embed,
        annotations=shape.annotations,
    )
