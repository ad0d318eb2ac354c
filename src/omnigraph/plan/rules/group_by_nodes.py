"""Group by a node instead of by its properties, where its key is among them.

A key tells nodes apart, so groups by key and name are groups by node: comparing dense numbers then
takes the place of comparing texts, and the texts are fetched for the groups that are returned.
"""

from __future__ import annotations

from dataclasses import replace

from omnigraph.ir.expr import Entity, Expr, Property, ValueRef
from omnigraph.ir.fold import replace_parts
from omnigraph.ir.query import OrderKey, Projection
from omnigraph.model.catalog import ID_COLUMN, Catalog
from omnigraph.model.types import Kind, ValueType
from omnigraph.plan.estimate import Context
from omnigraph.plan.liveness import match_below
from omnigraph.plan.operators import Aggregate, Filter, Operator, Project, Sort
from omnigraph.plan.trees import transform


def group_by_nodes(root: Operator, context: Context) -> Operator:
    def regroup(operator: Operator) -> Operator:
        if not isinstance(operator, Project):
            return operator
        aggregate = _aggregate_below(operator.input)
        node = None if aggregate is None else _determining_node(aggregate, context.catalog)
        if aggregate is None or node is None:
            return operator
        return _over_node(operator, aggregate, node)

    return transform(root, regroup)


def _aggregate_below(operator: Operator) -> Aggregate | None:
    while isinstance(operator, Sort | Filter):
        operator = operator.input
    return operator if isinstance(operator, Aggregate) else None


def _determining_node(aggregate: Aggregate, catalog: Catalog) -> Entity | None:
    """The one node whose properties are all the keys, its own key among them."""
    parts = [key.expr for key in aggregate.keys]
    properties = [part for part in parts if isinstance(part, Property)]
    if not properties or len(properties) < len(parts):
        return None
    var = properties[0].var
    match = match_below(aggregate.input)
    node = next((n for n in match.nodes if n.var == var), None) if match is not None else None
    if node is None or len(node.types) != 1 or any(p.var != var for p in properties):
        return None
    table = catalog.node(node.types[0])
    names = {p.name for p in properties}
    if table is None or not (ID_COLUMN in names or (table.key and set(table.key) <= names)):
        return None
    return Entity(var, node.types, ValueType(Kind.NODE))


def _over_node(project: Project, aggregate: Aggregate, node: Entity) -> Operator:
    name = f"#{node.var}"
    sources = {k.name: k.expr for k in aggregate.keys if isinstance(k.expr, Property)}

    def restate(expr: Expr) -> Expr:
        return replace_parts(expr, change)

    def change(part: Expr) -> Expr | None:
        if isinstance(part, ValueRef) and part.name in sources:
            return replace(sources[part.name], var=name)
        return None

    def rebuild(operator: Operator) -> Operator:
        match operator:
            case Aggregate():
                return replace(operator, keys=(Projection(name, node),))
            case Filter():
                predicates = tuple(restate(p) for p in operator.predicates)
                return replace(operator, input=rebuild(operator.input), predicates=predicates)
            case Sort():
                keys = (*operator.keys, *(_as_key(tie, sources[tie]) for tie in operator.ties))
                restated = tuple(OrderKey(restate(k.expr), k.descending) for k in keys)
                return replace(operator, input=rebuild(operator.input), keys=restated, ties=(name,))
            case _:
                raise AssertionError("nothing else stands between a projection and its groups")

    columns = tuple(Projection(c.name, restate(c.expr)) for c in project.columns)
    return replace(project, input=rebuild(project.input), columns=columns)


def _as_key(name: str, source: Property) -> OrderKey:
    return OrderKey(ValueRef(name, source.type))
