"""Check a pattern and lower it: bindings, traversals, filters, nested blocks.

A pattern says what must hold together, so its clauses may stand in any order: bindings are read
first, then traversals, then `optional { }`, then conditions, then `not { }`.

Guarantees: every node variable has exactly one binding in the IR, in the pattern that introduces
it; variables of `optional { }` are visible around it, as nullable, but for other optionals and
traversals; variables of `not { }` never are.
Deliberately absent: how types and directions of traversals are found out (`walks`).
"""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.ir import expr as ir
from omnigraph.ir import query as irq
from omnigraph.lang.diagnostics import offer
from omnigraph.lang.gq import ast
from omnigraph.lang.gq.check import assign, rules
from omnigraph.lang.gq.check.directions import Draft, settle
from omnigraph.lang.gq.check.scope import (
    Context,
    EdgeVar,
    Missing,
    NodeVar,
    Scope,
    Unknown,
    ValueVar,
    Var,
    find_property,
)
from omnigraph.lang.gq.check.values import Values
from omnigraph.lang.gq.check.walks import Walk, resolve_edges
from omnigraph.lang.gq.variables import names_in, nodes_in
from omnigraph.model.types import I64, Kind

ANONYMOUS = "_"


class PatternValues(Values):
    """Expressions in a pattern."""

    no_aggregates = "a pattern is matched before rows are grouped"


class PatternChecker:
    """One pattern; nested blocks get a checker of their own."""

    def __init__(self, ctx: Context, scope: Scope) -> None:
        self.ctx = ctx
        self.scope = scope
        self.outer = frozenset(scope.vars)
        self.order: dict[str, None] = {}
        self.traversals: list[irq.Traversal] = []
        self.predicates: list[ir.Expr] = []

    def check(self, clauses: tuple[ast.Clause, ...]) -> irq.Pattern:
        for clause in clauses:
            if isinstance(clause, ast.Binding):
                self._bind(clause)
        self._hide_nested(clauses)
        self._walk(clauses)
        optionals = self._optionals(clauses)
        for clause in clauses:
            if isinstance(clause, ast.Binding):
                self._match_fields(clause)
            elif isinstance(clause, ast.Filter):
                self._keep(PatternValues(self.ctx, self.scope).condition(clause.expr))
        negations = [self._negate(c) for c in clauses if isinstance(c, ast.Negation)]
        return irq.Pattern(
            tuple(self._bindings()),
            tuple(self.traversals),
            tuple(self.predicates),
            tuple(negations),
            optionals,
        )

    def _keep(self, predicate: ir.Expr | None) -> None:
        if predicate is not None:
            self.predicates.append(predicate)

    def _bindings(self) -> Iterator[irq.NodeBinding]:
        for name in self.order:
            var = self.scope.vars.get(name)
            if isinstance(var, NodeVar) and name not in self.outer:
                yield irq.NodeBinding(name, var.types)

    # Nodes ----------------------------------------------------------------------------------

    def _bind(self, node: ast.Binding) -> None:
        name = node.var.text
        types = self._types(node)
        self.order[name] = None
        existing = self.scope.vars.get(name)
        if types is None or isinstance(existing, Unknown):
            self.scope.vars.setdefault(name, Unknown())
            return
        if isinstance(existing, NodeVar):
            self._rebind(node, existing, types)
        elif isinstance(existing, EdgeVar):
            message = f"`${name}` is an edge and cannot be bound as a node"
            self.ctx.error("T23", message, node.var.span, "choose another name")
        elif existing is not None or name in self.scope.values:
            message = f"the name `{name}` is taken by a value"
            self.ctx.error("T26", message, node.var.span, "choose another name")
        else:
            self.scope.vars[name] = NodeVar(types)

    def _types(self, node: ast.Binding) -> tuple[str, ...] | None:
        name = node.type.text
        types = self.ctx.nodes_of(name)
        if types is None:
            catalog = self.ctx.catalog
            known = [t.name for t in catalog.nodes] + [i.name for i in catalog.interfaces]
            hint = offer(name, known)
            if catalog.edge(name) is not None:
                edge = name[:1].lower() + name[1:]
                hint = f"`{name}` is an edge; walk it with `$a {edge} $b`"
            self.ctx.error("T1", f"there is no node type `{name}`", node.type.span, hint)
        elif not types:
            message = f"no node type implements the interface `{name}`"
            self.ctx.error("T35", message, node.type.span)
            return None
        return types

    def _rebind(self, node: ast.Binding, existing: NodeVar, types: tuple[str, ...]) -> None:
        name = node.var.text
        kept = tuple(each for each in existing.types if each in types)
        if not kept or (existing.fixed and len(kept) < len(existing.types)):
            was = " or ".join(f"`{each}`" for each in existing.types)
            message = f"`${name}` is bound to {was} and cannot be bound to `{node.type.text}`"
            self.ctx.error("T26", message, node.type.span)
        else:
            self.scope.vars[name] = existing._replace(types=kept)

    def _match_fields(self, node: ast.Binding) -> None:
        name = node.var.text
        var = self.scope.vars.get(name)
        if not isinstance(var, NodeVar):
            return
        for field in node.fields:
            self._keep(self._match_field(name, var, field))

    def _match_field(self, name: str, var: NodeVar, field: ast.Field) -> ir.Expr | None:
        found = find_property(self.ctx, var, field.name.text)
        if isinstance(found, Missing):
            code = "T2" if found.code == "T6" else found.code
            return self.ctx.error(code, found.message, field.name.span, found.hint)
        if found.type.kind is Kind.BLOB:
            message = f"blob property `{field.name.text}` cannot be matched"
            return self.ctx.error("T3", message, field.name.span, "match another property")
        values = PatternValues(self.ctx, self.scope)
        prop = ir.Property(name, found.name, found.type)
        if found.type.kind is Kind.LIST:
            item = assign.check_value(values, field, rules.item_type(found.type), "matched with")
            return None if item is None else ir.ListContains(prop, item)
        if found.type.kind is Kind.VECTOR:
            message = f"vector property `{field.name.text}` cannot be matched"
            return self.ctx.error("T3", message, field.name.span, "use `nearest`")
        value = assign.check_value(values, field, found.type, "matched with")
        return None if value is None else ir.Compare(ir.CompareOp.EQ, prop, value)

    # Edges ----------------------------------------------------------------------------------

    def _walk(self, clauses: tuple[ast.Clause, ...]) -> None:
        nodes = [clause for clause in clauses if isinstance(clause, ast.Traversal)]
        drafts = [draft for node in nodes if (draft := self._draft(node)) is not None]
        for walk in settle(self.ctx, self.scope, drafts, self._drop):
            self._finish(walk)

    def _draft(self, node: ast.Traversal) -> Draft | None:
        src, dst = self._end(node.src), self._end(node.dst)
        edges = resolve_edges(self.ctx, node)
        sound = self._check_bounds(node) and self._check_extras(node)
        if sound:
            self._reserve(node)
        if src is None or dst is None or edges is None or not sound:
            self._give_up(node, src, dst)
            return None
        return Draft(node, src, dst, edges)

    def _reserve(self, node: ast.Traversal) -> None:
        """Bind what the walk names now; an edge variable learns its types when it is settled."""
        edge_var, hops_var = _named(node.edge_var), _named(node.hops_var)
        if edge_var is not None:
            self.scope.vars[edge_var] = EdgeVar(())
        if hops_var is not None:
            self.scope.vars[hops_var] = ValueVar(I64)

    def _end(self, name: ast.Name) -> str | None:
        """The variable at one end; a new one for `$_`, nothing where no node can stand."""
        text = name.text
        if text == ANONYMOUS and text not in self.scope.vars:
            text = self.ctx.anonymous()
        self.order.setdefault(text, None)
        var = self.scope.vars.get(text)
        if isinstance(var, EdgeVar):
            message = f"`${text}` is an edge, and an edge leads from node to node"
            return self.ctx.error("T23", message, name.span, "name the node at this end")
        if isinstance(var, ValueVar) or (var is None and text in self.scope.values):
            message = f"the name `{text}` is taken by a value"
            return self.ctx.error("T26", message, name.span, "choose another name")
        return text

    def _drop(self, draft: Draft) -> None:
        self._give_up(draft.node, draft.src, draft.dst)

    def _give_up(self, node: ast.Traversal, *ends: str | None) -> None:
        """Say no more about variables that this traversal was meant to bind."""
        for name in (*ends, _named(node.edge_var), _named(node.hops_var)):
            if name is not None and self.scope.vars.get(name, EdgeVar(())) == EdgeVar(()):
                self.scope.vars[name] = Unknown()

    def _check_bounds(self, node: ast.Traversal) -> bool:
        if node.bounds is None:
            return True
        low, high = node.bounds
        if low < 1:
            message = "a walk has at least one hop"
            self.ctx.error("T15", message, node.span, "start the bounds at 1")
            return False
        if high is not None and high < low:
            message = f"the bounds {{{low},{high}}} are in the wrong order"
            self.ctx.error("T15", message, node.span, f"write {{{high},{low}}}")
            return False
        return True

    def _check_extras(self, node: ast.Traversal) -> bool:
        edge_var, hops_var = node.edge_var, node.hops_var
        if edge_var is not None and node.bounds not in (None, (1, 1)):
            message = f"`${edge_var.text}` cannot name an edge of a walk with bounds"
            hint = "a walk of several hops is a path of edges, not one edge"
            self.ctx.error("T23", message, edge_var.span, hint)
            return False
        if edge_var is not None and (hops_var is not None or node.shortest):
            what = "a number of hops" if hops_var is not None else "`shortest`"
            message = f"{what} cannot stand together with the edge variable `${edge_var.text}`"
            self.ctx.error("T36", message, node.span, "leave out one of them")
            return False
        return self._is_fresh(node, edge_var, "T23") and self._is_fresh(node, hops_var, "T26")

    def _is_fresh(self, node: ast.Traversal, name: ast.Name | None, code: str) -> bool:
        if name is None or name.text == ANONYMOUS:
            return True
        if name.text in (node.src.text, node.dst.text):
            message = f"`${name.text}` names an end of this edge; it needs a distinct name"
            self.ctx.error(code, message, name.span, "choose another name")
            return False
        taken = (self.scope.vars, self.scope.values, self.order)
        if any(name.text in names for names in taken):
            self.ctx.error(code, f"the name `{name.text}` is taken", name.span, "choose another")
            return False
        return True

    def _finish(self, walk: Walk) -> None:
        node = walk.node
        edge_var, hops_var = _named(node.edge_var), _named(node.hops_var)
        if edge_var is not None:
            self.scope.vars[edge_var] = EdgeVar(walk.edge_types())
        low, high = node.bounds or (1, 1)
        self.traversals.append(
            irq.Traversal(
                walk.src, walk.dst, walk.steps(), low, high, edge_var, hops_var, node.shortest
            )
        )

    # Nested blocks --------------------------------------------------------------------------

    def _hide_nested(self, clauses: tuple[ast.Clause, ...]) -> None:
        own = set(self.scope.vars) | {
            name
            for clause in clauses
            if isinstance(clause, ast.Traversal)
            for name in names_in(clause)
        }
        for clause in clauses:
            if isinstance(clause, ast.Negation):
                for name in names_in(clause) - own - {ANONYMOUS}:
                    self.scope.hidden.setdefault(name, "it is bound inside `not { }` only")

    def _negate(self, node: ast.Negation) -> irq.Pattern:
        pattern = PatternChecker(self.ctx, self._inner_scope()).check(node.clauses)
        if not self._uses_outside(node):
            message = "`not { }` must use at least one variable from outside"
            self.ctx.error("T9", message, node.span, "say what must not exist, for which node")
        return pattern

    def _uses_outside(self, node: ast.Negation) -> bool:
        values = self.scope.values
        named = any(isinstance(n, ast.Word) and n.name in values for n in nodes_in(node))
        return named or bool(names_in(node) & set(self.scope.vars))

    def _inner_scope(self) -> Scope:
        inner = self.scope.inner()
        inner.hidden = {}
        return inner

    def _optionals(self, clauses: tuple[ast.Clause, ...]) -> tuple[irq.Pattern, ...]:
        patterns: list[irq.Pattern] = []
        visible: dict[str, Var] = {}
        for clause in clauses:
            if not isinstance(clause, ast.Optional):
                continue
            inner = self._inner_scope()
            patterns.append(PatternChecker(self.ctx, inner).check(clause.clauses))
            for name, var in inner.vars.items():
                if name in self.scope.vars:
                    continue
                if name in visible:
                    message = f"`${name}` is bound in two `optional` blocks"
                    hint = "nest the second block in the first, or choose another name"
                    self.ctx.error("T26", message, clause.span, hint)
                visible[name] = as_nullable(var)
        for name, var in visible.items():
            self.scope.vars[name] = var
            self.scope.hidden.pop(name, None)
        return tuple(patterns)


def as_nullable(var: Var) -> Var:
    """A variable of an optional block, as seen from outside."""
    if isinstance(var, NodeVar):
        return var._replace(nullable=True, fixed=True)
    if isinstance(var, EdgeVar):
        return var._replace(nullable=True)
    if isinstance(var, ValueVar):
        return ValueVar(var.type.as_nullable())
    return var


def _named(name: ast.Name | None) -> str | None:
    return None if name is None or name.text == ANONYMOUS else name.text
