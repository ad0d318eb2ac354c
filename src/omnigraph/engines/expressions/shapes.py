"""The structure of returned nodes and edges, and the schema of a result.

An object is a struct of `id` and every property that is not a blob, in schema order; edges have
`src` and `dst` after their id. A variable of several types gives one struct for all: `__type`
first, then the properties of all types, null where a type lacks one; a name that stands for values
of different types in different node types is spelled `Type.name`.

Guarantees: shapes depend on the query and the catalog alone, never on rows.
Deliberately absent: values.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from omnigraph.ir.expr import Entity, Expr, ValueRef
from omnigraph.ir.query import Projection
from omnigraph.model.catalog import (
    DST_COLUMN,
    ID_COLUMN,
    SRC_COLUMN,
    Catalog,
    EdgeType,
    NodeType,
)
from omnigraph.model.types import Kind
from omnigraph.plan.operators import Operator, Project
from omnigraph.plan.planner import Plan

TYPE_FIELD = "__type"


class ObjectField:
    """A field of an object: its name, Arrow type, and the property it holds, of which type."""

    def __init__(self, name: str, type_: Any, source: str, only: str | None = None) -> None:
        self.field = pa.field(name, type_)
        self.source = source
        self.only = only


def object_fields(tables: tuple[NodeType | EdgeType, ...]) -> list[ObjectField]:
    """The fields of an object that may be of any of these types."""
    fields = [ObjectField(ID_COLUMN, pa.string(), ID_COLUMN)]
    if tables and isinstance(tables[0], EdgeType):
        fields += [ObjectField(name, pa.string(), name) for name in (SRC_COLUMN, DST_COLUMN)]
    if len(tables) > 1:
        fields.insert(0, ObjectField(TYPE_FIELD, pa.string(), TYPE_FIELD))
    meanings: dict[str, set[Any]] = {}
    for table in tables:
        for prop in table.properties:
            meanings.setdefault(prop.name, set()).add(prop.type.to_arrow())
    done: set[str] = set()
    for table in tables:
        for prop in table.properties:
            shared = len(meanings[prop.name]) == 1
            name = prop.name if shared else f"{table.name}.{prop.name}"
            if prop.type.kind is Kind.BLOB or name in done:
                continue
            done.add(name)
            only = None if shared else table.name
            fields.append(ObjectField(name, prop.type.to_arrow(), prop.name, only))
    return fields


def tables_of(expr: Entity, catalog: Catalog) -> tuple[NodeType | EdgeType, ...]:
    find = catalog.edge if expr.type.kind is Kind.EDGE else catalog.node
    found = (find(name) for name in expr.types)
    return tuple(table for table in found if table is not None)


def schema_of(columns: tuple[Projection, ...], catalog: Catalog) -> pa.Schema:
    """The schema of a result with these columns."""
    return pa.schema([_field(item.name, item.expr, catalog) for item in columns])


def _field(name: str, expr: Expr, catalog: Catalog) -> pa.Field:
    if isinstance(expr, Entity):
        fields = [f.field for f in object_fields(tables_of(expr, catalog))]
        return pa.field(name, pa.struct(fields))
    return pa.field(name, expr.type.to_arrow())


def last_projection(plan: Plan) -> tuple[Operator, tuple[Projection, ...]]:
    """The plan below its last projection, which the result makes batch by batch."""
    if isinstance(plan.root, Project):
        return plan.root.input, plan.root.columns
    return plan.root, tuple(_reference(item) for item in declared(plan))


def declared(plan: Plan) -> tuple[Projection, ...]:
    """The columns of the result as the query wrote them."""
    return plan.query.stages[-1].projections


def _reference(item: Projection) -> Projection:
    """A column that the plan has made already, by its name."""
    if isinstance(item.expr, Entity):
        return Projection(item.name, Entity(item.name, item.expr.types, item.expr.type))
    return Projection(item.name, ValueRef(item.name, item.expr.type))
