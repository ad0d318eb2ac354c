"""What can be said about a query without running it: parameters, results, types touched.

What it does: `describe_query` derives a `Description` from the typed IR.
Guarantees: `reads` holds every type that a run may look at, `writes` exactly the types that it
may change; both are sorted, nodes before edges, without repeats.
Deliberately absent: estimates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from omnigraph.ir import query as irq
from omnigraph.lang.gq import ast
from omnigraph.model.catalog import Catalog, TableKind
from omnigraph.model.types import Kind, ValueType

_KINDS: dict[Kind, str] = {
    Kind.STRING: "string",
    Kind.BOOL: "bool",
    Kind.I32: "int",
    Kind.U32: "int",
    Kind.I64: "bigint",
    Kind.U64: "bigint",
    Kind.F32: "float",
    Kind.F64: "float",
    Kind.DATE: "date",
    Kind.DATETIME: "datetime",
    Kind.BLOB: "blob",
    Kind.VECTOR: "vector",
    Kind.LIST: "list",
    Kind.NODE: "object",
    Kind.EDGE: "object",
}


@dataclass(frozen=True, slots=True)
class FieldShape:
    """A parameter or result field in words that need no parsing."""

    name: str
    kind: str
    nullable: bool
    item_kind: str | None = None
    vector_dim: int | None = None

    def to_dict(self) -> dict[str, Any]:
        shape: dict[str, Any] = {"name": self.name, "kind": self.kind, "nullable": self.nullable}
        if self.item_kind is not None:
            shape["item_kind"] = self.item_kind
        if self.vector_dim is not None:
            shape["vector_dim"] = self.vector_dim
        return shape


@dataclass(frozen=True, slots=True)
class GraphType:
    """A node or edge type of the graph."""

    kind: TableKind
    type_name: str

    def to_dict(self) -> dict[str, str]:
        return {"kind": str(self.kind), "type_name": self.type_name}


@dataclass(frozen=True, slots=True)
class Description:
    name: str
    is_write: bool
    params: tuple[FieldShape, ...]
    result: tuple[FieldShape, ...]
    reads: tuple[GraphType, ...]
    writes: tuple[GraphType, ...]
    result_fields: tuple[irq.ResultField, ...] = ()
    description: str | None = None
    instruction: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "name": self.name,
            "kind": "mutation" if self.is_write else "read",
            "description": self.description,
            "instruction": self.instruction,
            "params": [param.to_dict() for param in self.params],
            **self.operation(),
        }

    def operation(self) -> dict[str, Any]:
        """Results and types touched, as `lint --json` shows them."""
        return {
            "result": [field.to_dict() for field in self.result],
            "reads": [each.to_dict() for each in self.reads],
            "writes": [each.to_dict() for each in self.writes],
        }


def describe_query(query: irq.Query, catalog: Catalog, node: ast.Query) -> Description:
    """The description of a checked query; `node` gives what its author wrote about it."""
    fields: tuple[irq.ResultField, ...] = ()
    writes: set[GraphType] = set()
    if isinstance(query, irq.WriteQuery):
        reads, writes = _write_sets(query, catalog)
    else:
        last = query.stages[-1]
        fields = tuple(irq.ResultField(p.name, p.expr.type) for p in last.projections)
        reads = {found for s in query.stages for found in _pattern_reads(s.pattern, catalog)}
    return Description(
        query.name,
        isinstance(query, irq.WriteQuery),
        tuple(shape(param.name, param.type) for param in query.params),
        tuple(shape(field.name, field.type) for field in fields),
        _sorted(reads),
        _sorted(writes),
        fields,
        node.annotation("description"),
        node.annotation("instruction"),
    )


def shape(name: str, type_: ValueType) -> FieldShape:
    """A field of a value type, in plain words."""
    item = _KINDS[type_.item] if type_.item is not None else None
    return FieldShape(name, _KINDS[type_.kind], type_.nullable, item, type_.dim)


def _sorted(types: set[GraphType]) -> tuple[GraphType, ...]:
    nodes_first = {TableKind.NODE: 0, TableKind.EDGE: 1}
    return tuple(sorted(types, key=lambda each: (nodes_first[each.kind], each.type_name)))


def _node(name: str) -> GraphType:
    return GraphType(TableKind.NODE, name)


def _edge(name: str) -> GraphType:
    return GraphType(TableKind.EDGE, name)


def _ends(catalog: Catalog, edge: str) -> Iterator[GraphType]:
    found = catalog.edge(edge)
    if found is not None:
        yield _node(found.src_type)
        yield _node(found.dst_type)


def _pattern_reads(pattern: irq.Pattern, catalog: Catalog) -> Iterator[GraphType]:
    for binding in pattern.nodes:
        yield from (_node(name) for name in binding.types)
    for traversal in pattern.traversals:
        for step in traversal.steps:
            yield _edge(step.edge)
            yield from _ends(catalog, step.edge)
    for inner in (*pattern.negations, *pattern.optionals):
        yield from _pattern_reads(inner, catalog)


def _write_sets(query: irq.WriteQuery, catalog: Catalog) -> tuple[set[GraphType], set[GraphType]]:
    reads: set[GraphType] = set()
    writes: set[GraphType] = set()
    for statement in query.statements:
        name = statement.type_name
        is_node = not isinstance(statement, irq.InsertEdge) and catalog.node(name) is not None
        writes.add(_node(name) if is_node else _edge(name))
        if isinstance(statement, irq.InsertEdge):
            reads.update(_ends(catalog, name))
        elif isinstance(statement, irq.Delete) and is_node:
            # The edges of a deleted node go with it.
            writes.update(_edge(edge.name) for edge in catalog.edges_of(name))
    return reads | writes, writes
