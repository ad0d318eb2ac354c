"""Write a schema text for a catalog.

Guarantees: compiling the text against the catalog gives the catalog back.
Deliberately absent: what the writer's own text had beyond the catalog, such as comments, and
which properties came from an interface: every node lists all of its own.
"""

from __future__ import annotations

from collections.abc import Iterable

from omnigraph.lang.pg import ast
from omnigraph.lang.pg.writer import write_schema
from omnigraph.model.catalog import (
    Annotation,
    Catalog,
    Check,
    Constant,
    EdgeType,
    Interface,
    NodeType,
    Property,
    Range,
)
from omnigraph.model.types import Kind, ValueType


def catalog_to_source(catalog: Catalog) -> str:
    """A schema text in canonical style: interfaces, then nodes, then edges."""
    declarations: list[ast.Declaration] = [_interface(i) for i in catalog.interfaces]
    declarations += [_node(n) for n in catalog.nodes]
    declarations += [_edge(e) for e in catalog.edges]
    return write_schema(ast.Schema(tuple(declarations))) if declarations else ""


def _interface(interface: Interface) -> ast.Interface:
    members = tuple(_property(p, ()) for p in interface.properties)
    return ast.Interface(ast.Name(interface.name), _annotations(interface.annotations), members)


def _node(node: NodeType) -> ast.Node:
    return ast.Node(
        ast.Name(node.name),
        _annotations(node.annotations),
        _members(node),
        implements=tuple(ast.Name(name) for name in node.implements),
    )


def _edge(edge: EdgeType) -> ast.Edge:
    annotations = _annotations(edge.annotations)
    if not edge.cardinality.is_default:
        bounds = ast.Bounds(edge.cardinality.minimum, edge.cardinality.maximum)
        annotations = (_annotation("card", bounds), *annotations)
    return ast.Edge(
        ast.Name(edge.name),
        annotations,
        _members(edge),
        source=ast.Name(edge.src_type),
        target=ast.Name(edge.dst_type),
    )


def _members(table: NodeType | EdgeType) -> tuple[ast.Member, ...]:
    """Properties with the constraints that are theirs alone, then constraints of several."""
    beside: dict[str, list[ast.Annotation]] = {p.name: [] for p in table.properties}
    below: list[ast.Annotation] = []
    groups = [("unique", group) for group in table.uniques]
    groups += [("index", group) for group in table.indexes]
    if isinstance(table, NodeType) and table.key:
        groups.insert(0, ("key", table.key))
    for kind, group in groups:
        prop = table.get(group[0]) if len(group) == 1 else None
        # After a list, `@index` is refused; in the body it is merely without effect.
        if prop is not None and not (kind == "index" and prop.type.kind is Kind.LIST):
            beside[group[0]].append(_annotation(kind))
        else:
            below.append(_annotation(kind, *(ast.Word(name) for name in group)))
    if isinstance(table, NodeType):
        for name, constraint in _value_constraints(table):
            alone = not any(a.name == constraint.name for a in beside[name])
            if alone:
                beside[name].append(constraint)
            else:
                word = ast.Argument(ast.Word(name))
                below.append(ast.Annotation(constraint.name, (word, *constraint.arguments)))
    properties = [_property(p, beside[p.name]) for p in table.properties]
    return (*properties, *below)


def _value_constraints(node: NodeType) -> Iterable[tuple[str, ast.Annotation]]:
    item: Range | Check
    for item in node.ranges:
        bounds = ast.Bounds(item.minimum, item.maximum)
        yield item.property, _annotation("range", bounds)
    for item in node.checks:
        yield item.property, _annotation("check", item.pattern)


def _property(prop: Property, constraints: Iterable[ast.Annotation]) -> ast.Property:
    annotations = list(constraints)
    if prop.has_default and prop.default is not None:
        annotations.append(_annotation("default", prop.default))
    if prop.embed is not None:
        source = ast.Argument(prop.embed.source)
        model = () if prop.embed.model is None else (ast.Argument(prop.embed.model, "model"),)
        annotations.append(ast.Annotation("embed", (source, *model)))
    annotations.extend(_annotations(prop.annotations))
    return ast.Property(ast.Name(prop.name), _type(prop.type), tuple(annotations))


def _type(type_: ValueType) -> ast.TypeRef:
    if type_.kind is Kind.LIST:
        return ast.TypeRef(str(type_.item), type_.nullable, is_list=True)
    if type_.kind is Kind.VECTOR:
        return ast.TypeRef("Vector", type_.nullable, dim=type_.dim)
    if type_.enum:
        values = tuple(ast.Name(value) for value in type_.enum)
        return ast.TypeRef("enum", type_.nullable, values=values)
    return ast.TypeRef(str(type_.kind), type_.nullable)


def _annotation(name: str, *values: ast.Value) -> ast.Annotation:
    return ast.Annotation(name, tuple(ast.Argument(value) for value in values))


def _annotations(annotations: Iterable[Annotation]) -> tuple[ast.Annotation, ...]:
    return tuple(_kept(a) for a in annotations)


def _kept(annotation: Annotation) -> ast.Annotation:
    if annotation.name == "range":  # of an interface property
        low, high = annotation.args
        assert not isinstance(low, str)
        assert not isinstance(high, str)
        return _annotation("range", ast.Bounds(low, high))
    positional = [ast.Argument(_value(value)) for value in annotation.args]
    named = [ast.Argument(_value(value), name) for name, value in annotation.kwargs]
    return ast.Annotation(annotation.name, (*positional, *named))


def _value(value: Constant) -> ast.Value:
    return "" if value is None else value
