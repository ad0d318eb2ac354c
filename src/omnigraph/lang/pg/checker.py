"""Check a schema tree and give it its shape.

What it does: resolves types, expands interfaces into the nodes that implement them, and puts
constraints from all places together.
Guarantees: reports everything it can find; when it reports no error, the shape is sound.
Deliberately absent: the accepted schema. Whether a change is allowed is the planner's business.
"""

from __future__ import annotations

from dataclasses import replace

from omnigraph.lang.diagnostics import Report, offer
from omnigraph.lang.pg import ast
from omnigraph.lang.pg.annotations import canonical, read_property, read_type
from omnigraph.lang.pg.constraints import Use, add_uses, check_use, check_values, read_use
from omnigraph.lang.pg.names import check_names
from omnigraph.lang.pg.shape import (
    EdgeShape,
    InterfaceShape,
    NodeShape,
    PropertyShape,
    SchemaShape,
    TableShape,
)
from omnigraph.lang.pg.valuetypes import value_type
from omnigraph.model.catalog import Annotation, Constant
from omnigraph.model.types import Kind


def resolve(schema: ast.Schema, report: Report) -> SchemaShape:
    """The shape of a schema. Sound only if the report holds no errors afterwards."""
    check_names(schema, report)
    shape = SchemaShape()
    interfaces: dict[str, _Contract] = {}
    for interface in schema.interfaces:
        contract = _Contract(interface, report)
        interfaces.setdefault(interface.name.text, contract)
        shape.interfaces.append(contract.shape)
    for node in schema.nodes:
        shape.nodes.append(_node(node, interfaces, report))
    for edge in schema.edges:
        shape.edges.append(_edge(edge, report))
    return shape


class _Contract:
    """An interface: its shape, and the constraints that implementing nodes inherit."""

    def __init__(self, declaration: ast.Interface, report: Report) -> None:
        annotations, rename, _ = read_type(declaration, report)
        self.name = declaration.name.text
        self.properties: dict[str, tuple[PropertyShape, list[Use]]] = {}
        for prop, uses in _properties(declaration, report):
            self.properties.setdefault(prop.name, (prop, uses))
            for use in uses:
                label = f"{self.name}.{prop.name}"
                check_use(use, label, prop.type, report)
                check_values(use, report)
        for constraint in declaration.constraints:
            message = f"`@{constraint.name}` cannot stand in the body of an interface"
            hint = "write it after the property, so that nodes inherit it"
            report.add("S302", message, constraint.span, hint=hint)
        self.shape = InterfaceShape(
            self.name,
            declaration.name.span,
            [_with_uses(prop, uses) for prop, uses in self.properties.values()],
            annotations,
            rename,
        )


def _properties(
    declaration: ast.Declaration, report: Report
) -> list[tuple[PropertyShape, list[Use]]]:
    found = []
    for prop in declaration.properties:
        type_ = value_type(prop.type, report)
        if type_ is None:
            declaration.broken = True  # what refers to this property cannot be judged
            continue
        found.append(read_property(prop, type_, declaration, report))
    return found


def _with_uses(prop: PropertyShape, uses: list[Use]) -> PropertyShape:
    """An interface property whose constraints are kept as annotations."""
    if not uses:
        return prop
    added = [Annotation(use.kind, _arguments(use)) for use in uses]
    return replace(prop, annotations=canonical([*prop.annotations, *added]))


def _arguments(use: Use) -> tuple[Constant, ...]:
    if use.bounds is not None:
        return (use.bounds.minimum, use.bounds.maximum)
    return (use.pattern,) if use.kind == "check" else ()


def _node(node: ast.Node, interfaces: dict[str, _Contract], report: Report) -> NodeShape:
    annotations, rename, _ = read_type(node, report)
    shape = NodeShape(node.name.text, node.name.span, [], annotations, rename)
    uses = _own_members(node, shape, report)
    own = {prop.name for prop in shape.properties}
    # What an unreadable part declares is unknown, so nothing is said to be missing there.
    broken = node.broken
    for name in dict.fromkeys(n.text for n in node.implements):
        contract = interfaces.get(name)
        if contract is None:
            broken = True
            continue
        _inherit(node, shape, contract, own, uses, report)
    shape.implements = tuple(dict.fromkeys(n.text for n in node.implements))
    add_uses(shape, uses, broken, report)
    _check_embeds(shape, broken, report)
    return shape


def _own_members(declaration: ast.Declaration, table: TableShape, report: Report) -> list[Use]:
    uses: list[Use] = []
    seen: set[str] = set()
    for prop, found in _properties(declaration, report):
        if prop.name not in seen:
            table.properties.append(prop)
            uses.extend(found)
        seen.add(prop.name)
    for constraint in declaration.constraints:
        use = read_use(constraint, None, report)
        if use is not None:
            uses.append(use)
    return uses


def _inherit(
    node: ast.Node,
    shape: NodeShape,
    contract: _Contract,
    own: set[str],
    uses: list[Use],
    report: Report,
) -> None:
    for prop, inherited in contract.properties.values():
        existing = next((p for p in shape.properties if p.name == prop.name), None)
        if existing is None:
            shape.properties.append(replace(prop, inherited=True))
            uses.extend(inherited)
        elif existing.type != prop.type:
            what = f"`{shape.name}.{prop.name}` is `{existing.type}`"
            message = f"{what}, but interface `{contract.name}` declares `{prop.type}`"
            span = existing.span if prop.name in own else node.name.span
            report.add("S206", message, span)
        elif prop.name not in own and not _agree(existing, prop, inherited, uses):
            message = f"the interfaces of `{shape.name}` disagree about `{prop.name}`"
            hint = f"declare `{prop.name}` in `{shape.name}` itself"
            report.add("S207", message, node.name.span, hint=hint)


def _agree(
    existing: PropertyShape, prop: PropertyShape, inherited: list[Use], uses: list[Use]
) -> bool:
    earlier = [u for u in uses if not u.in_body and u.names[0].text == prop.name]
    left = sorted((u.kind, repr(_arguments(u))) for u in earlier)
    right = sorted((u.kind, repr(_arguments(u))) for u in inherited)
    return _meaning(existing) == _meaning(prop) and left == right


def _meaning(prop: PropertyShape) -> tuple[object, ...]:
    return (prop.type, repr(prop.default), prop.has_default, prop.embed, repr(prop.annotations))


def _check_embeds(shape: NodeShape, broken: bool, report: Report) -> None:
    properties = {p.name: p for p in shape.properties}
    for prop in shape.properties:
        if prop.embed is None:
            continue
        source = properties.get(prop.embed.source)
        if source is None:
            if not broken:
                hint = offer(prop.embed.source, properties)
                message = f"`{shape.name}` has no property `{prop.embed.source}` to embed"
                report.add("S404", message, prop.span, hint=hint)
        elif source.type.kind is not Kind.STRING:
            message = f"`{shape.name}.{source.name}` is `{source.type}`; only a String is embedded"
            report.add("S404", message, prop.span)


def _edge(edge: ast.Edge, report: Report) -> EdgeShape:
    annotations, rename, cardinality = read_type(edge, report)
    shape = EdgeShape(edge.name.text, edge.name.span, [], annotations, rename)
    shape.source, shape.target = edge.source.text, edge.target.text
    shape.cardinality = cardinality
    add_uses(shape, _own_members(edge, shape, report), edge.broken, report)
    return shape
