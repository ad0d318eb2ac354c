"""Check write statements and lower them.

Guarantees: bare names in `where` and in updates are properties of the row at hand; an insert
gives every required property that has no default and is not embedded from another one.
Deliberately absent: what only data can tell, such as whether a key exists.
"""

from __future__ import annotations

from collections.abc import Iterable

from omnigraph.ir import expr as ir
from omnigraph.ir import query as irq
from omnigraph.lang.diagnostics import Span, offer
from omnigraph.lang.gq import ast
from omnigraph.lang.gq.check.assign import check_value
from omnigraph.lang.gq.check.scope import EDGE_ENDS, Context, Scope
from omnigraph.lang.gq.check.values import Values
from omnigraph.model.catalog import EdgeType, NodeType, Property
from omnigraph.model.types import STRING, Kind

Table = NodeType | EdgeType


class WriteValues(Values):
    """Expressions in a write. Without a target, as in an insert, there is no row at hand."""

    no_aggregates = "a write has no groups"

    def __init__(self, ctx: Context, target: Table | None = None) -> None:
        super().__init__(ctx, Scope())
        self.target = target

    def variable(self, node: ast.Variable) -> ir.Expr | None:
        if node.name in self.ctx.params:
            return ir.Param(node.name, self.ctx.params[node.name])
        message = f"`${node.name}` is not a parameter of this query"
        return self.error(
            "T14", message, node.span, offer(f"${node.name}", _spelled(self.ctx.params))
        )

    def word(self, node: ast.Word) -> ir.Expr | None:
        if self.target is None:
            message = f"`{node.name}` has no meaning here: there is no row yet"
            return self.error("T14", message, node.span, f"parameters are written `${node.name}`")
        found = _stored(self.target, node.name)
        if found is None:
            unknown_property(self.ctx, self.target, node.name, node.span)
            return None
        if found.type.kind is Kind.BLOB:
            message = f"blob property `{node.name}` cannot be used in an expression"
            return self.error("T11", message, node.span, "find the row by another property")
        return found


def _spelled(names: Iterable[str]) -> list[str]:
    return [f"${name}" for name in names]


def _stored(table: Table, name: str) -> ir.Property | None:
    """A property of the row at hand, under the name that the IR uses."""
    # In a write `from` and `to` are always the ends, also of an edge that has such a property:
    # one word must not mean the end in an insert and the property in the delete that undoes it.
    if isinstance(table, EdgeType) and name in EDGE_ENDS:
        return ir.Property(irq.TARGET, EDGE_ENDS[name], STRING)
    declared = table.get(name)
    if declared is not None:
        return ir.Property(irq.TARGET, name, declared.type)
    return ir.Property(irq.TARGET, "id", STRING) if name == "id" else None


def unknown_property(ctx: Context, table: Table, name: str, span: Span) -> None:
    known = [p.name for p in table.properties]
    if isinstance(table, EdgeType):
        known += ["from", "to"]
    message = f"type `{table.name}` has no property `{name}`"
    ctx.error("T11", message, span, offer(name, known))


def check_statement(ctx: Context, node: ast.Statement) -> irq.Statement | None:
    """The IR of a statement, or nothing if it has a mistake."""
    table = _table(ctx, node.type)
    if table is None:
        return None
    match node:
        case ast.Insert():
            return _insert(ctx, node, table)
        case ast.Upsert():
            return _upsert(ctx, node, table)
        case ast.Update():
            return _update(ctx, node, table)
        case ast.Delete():
            where = WriteValues(ctx, table).condition(node.where)
            return None if where is None else irq.Delete(table.name, where)


def _table(ctx: Context, name: ast.Name) -> Table | None:
    catalog = ctx.catalog
    node = catalog.node(name.text)
    if node is not None:
        return node
    edge = catalog.edge(name.text)
    if edge is not None and edge.name == name.text:
        return edge
    hint = offer(name.text, [t.name for t in catalog.tables()])
    if catalog.interface(name.text) is not None:
        hint = "an interface holds no rows; name one of the types that implement it"
    return ctx.error("T10", f"there is no node or edge type `{name.text}`", name.span, hint)


# Inserts ------------------------------------------------------------------------------------


def _insert(ctx: Context, node: ast.Insert, table: Table) -> irq.Statement | None:
    given = _given(ctx, node.fields, node.type, "insert")
    if isinstance(table, EdgeType):
        return _insert_edge(ctx, node, table, given)
    assignments = _assign(ctx, given, table, WriteValues(ctx))
    _require(ctx, node.type, table, given)
    return irq.InsertNode(table.name, assignments)


def _given(
    ctx: Context, fields: tuple[ast.Field, ...], owner: ast.Name, verb: str
) -> dict[str, ast.Field]:
    """Fields by name. Nothing at all, and the same property twice, are mistakes."""
    if not fields:
        message = f"this {verb} of `{owner.text}` sets nothing"
        ctx.error("T10", message, owner.span, "name at least one property: `{ property: value }`")
    given: dict[str, ast.Field] = {}
    for field in fields:
        if field.name.text in given:
            message = f"`{field.name.text}` is set twice"
            ctx.error("T13", message, field.name.span, "keep one of them")
        given.setdefault(field.name.text, field)
    return given


def _assign(
    ctx: Context, given: dict[str, ast.Field], table: Table, values: WriteValues
) -> tuple[irq.Assignment, ...]:
    assignments: list[irq.Assignment] = []
    for name, field in given.items():
        declared = table.get(name)
        if declared is None:
            unknown_property(ctx, table, name, field.name.span)
            continue
        value = check_value(values, field, declared.type, "set to")
        if value is not None:
            assignments.append(irq.Assignment(name, value))
    return tuple(assignments)


def _require(ctx: Context, owner: ast.Name, table: Table, given: dict[str, ast.Field]) -> None:
    for declared in table.properties:
        if declared.name in given or not _is_needed(declared, given):
            continue
        hidden = isinstance(table, EdgeType) and declared.name in EDGE_ENDS
        message = f"an insert of `{table.name}` must give `{declared.name}`"
        if hidden:
            message = f"an insert cannot give the property `{declared.name}` of `{table.name}`"
        if declared.embed is not None:
            message += f", or `{declared.embed.source}` from which it is embedded"
        hint = "the name means an end here: rename the property, or load the edges"
        ctx.error("T12", message, owner.span, hint if hidden else f"add `{declared.name}: …`")


def _is_needed(declared: Property, given: dict[str, ast.Field]) -> bool:
    if declared.type.nullable or declared.has_default:
        return False
    return declared.embed is None or declared.embed.source not in given


def _insert_edge(
    ctx: Context, node: ast.Insert, table: EdgeType, given: dict[str, ast.Field]
) -> irq.Statement | None:
    ends: dict[str, ir.Expr | None] = {}
    for end, type_name in (("from", table.src_type), ("to", table.dst_type)):
        field = given.pop(end, None)
        if field is None:
            message = f"an insert of `{table.name}` must give `{end}`"
            ctx.error("T12", message, node.type.span, f"add `{end}: …`, the id of a `{type_name}`")
        else:
            ends[end] = _end(ctx, field, type_name)
    assignments = _assign(ctx, given, table, WriteValues(ctx))
    _require(ctx, node.type, table, given)
    src, dst = ends.get("from"), ends.get("to")
    if src is None or dst is None:
        return None
    return irq.InsertEdge(table.name, src, dst, assignments)


def _end(ctx: Context, field: ast.Field, type_name: str) -> ir.Expr | None:
    """An end is given by the node's id or, where its key is one property, by that key."""
    values = WriteValues(ctx)
    node_type = ctx.catalog.node(type_name)
    if node_type is not None and len(node_type.key) == 1:
        key = node_type.get(node_type.key[0])
        value = values.lower(field.value)
        if value is None:
            return None
        if key is not None and value.type.kind is not Kind.STRING:
            return check_value(values, field, key.type, "set to")
    return check_value(values, field, STRING, "set to")


# Updates and upserts ------------------------------------------------------------------------


def _update(ctx: Context, node: ast.Update, table: Table) -> irq.Statement | None:
    if isinstance(table, EdgeType):
        message = f"`{table.name}` is an edge, and edges cannot be updated"
        hint = "delete the edge and insert it again, in two queries"
        return ctx.error("T16", message, node.type.span, hint)
    given = _given(ctx, node.fields, node.type, "update")
    _keep_key(ctx, given, table)
    values = WriteValues(ctx, table)
    assignments = _assign(ctx, given, table, values)
    where = values.condition(node.where)
    return None if where is None else irq.Update(table.name, assignments, where)


def _keep_key(ctx: Context, given: dict[str, ast.Field], table: NodeType) -> None:
    for name in table.key:
        if name in given:
            message = f"`{name}` belongs to the key of `{table.name}` and cannot be updated"
            hint = "delete the node and insert it again, in two queries"
            ctx.error("T42", message, given[name].name.span, hint)


def _upsert(ctx: Context, node: ast.Upsert, table: Table) -> irq.Statement | None:
    if isinstance(table, EdgeType) or not table.key:
        message = f"`{table.name}` has no key by which an upsert could find a row"
        edge = isinstance(table, EdgeType)
        hint = (
            "edges have none: use `insert`" if edge else "use `insert`, or add `@key` to the type"
        )
        return ctx.error("T38", message, node.type.span, hint)
    given = _given(ctx, node.fields, node.type, "upsert")
    for name in table.key:
        if name not in given:
            message = f"an upsert of `{table.name}` must give its key property `{name}`"
            ctx.error("T38", message, node.type.span, f"add `{name}: …`")
    assignments = _assign(ctx, given, table, WriteValues(ctx))
    _require_rest(ctx, node, table, given)
    return irq.UpsertNode(
        table.name, assignments, irq.OnConflict(node.policy.text), _updates(ctx, node, table)
    )


def _require_rest(
    ctx: Context, node: ast.Upsert, table: NodeType, given: dict[str, ast.Field]
) -> None:
    # Key properties have their own finding above.
    keyed = given | {name: node.fields[0] for name in table.key if node.fields}
    _require(ctx, node.type, table, keyed)


def _updates(ctx: Context, node: ast.Upsert, table: NodeType) -> tuple[irq.Assignment, ...]:
    if not node.updates:
        return ()
    if node.policy.text != "update":
        message = f"`set` belongs to `on conflict update`, not to `{node.policy.text}`"
        ctx.error("T38", message, node.policy.span, "leave out `set`")
    given = _given(ctx, node.updates, node.type, "upsert")
    _keep_key(ctx, given, table)
    return _assign(ctx, given, table, WriteValues(ctx, table))
