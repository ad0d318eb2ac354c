"""Check a stage and lower it: what it returns or hands on, how it is grouped, ordered and cut.

Guarantees: column names are unique; a projection never refers to another one (aliases are
written out), so an engine may compute them in any order; `order` and `having` of a grouped stage
use group keys, properties of nodes that are group keys, and aggregates.
Deliberately absent: patterns.
"""

from __future__ import annotations

from omnigraph.ir import expr as ir
from omnigraph.ir import query as irq
from omnigraph.ir.fold import children, contains, parts
from omnigraph.lang.diagnostics import first_hint, offer
from omnigraph.lang.gq import ast
from omnigraph.lang.gq.check.exprops import identity
from omnigraph.lang.gq.check.patterns import PatternChecker
from omnigraph.lang.gq.check.scope import Context, NodeVar, Scope, ValueVar, Var
from omnigraph.lang.gq.check.values import Values
from omnigraph.model.types import INTEGER_KINDS, Kind, ValueType

Columns = dict[str, irq.Projection]


class SelectValues(Values):
    """Expressions in `return` and `with`: earlier aliases can be used, and stand for their text."""

    no_aggregates = None

    def __init__(self, stage: StageChecker) -> None:
        super().__init__(stage.ctx, stage.scope)
        self.columns = stage.columns
        self.broken = stage.broken

    def word(self, node: ast.Word) -> ir.Expr | None:
        if node.name in self.broken:
            return None
        if node.name not in self.columns:
            return super().word(node)
        found = self.columns[node.name].expr
        if self.in_aggregate and contains(found, ir.Aggregate):
            message = f"`{node.name}` is an aggregate and cannot be aggregated again"
            return self.error("T32", message, node.span, "group in two steps, with `with`")
        return found


class ColumnValues(Values):
    """Expressions in `order` and `having`: every column of the stage can be used."""

    def __init__(self, stage: StageChecker) -> None:
        super().__init__(stage.ctx, stage.scope)
        self.columns = stage.columns
        self.broken = stage.broken
        self.no_aggregates = None if stage.grouped else "the results are not grouped"

    def word(self, node: ast.Word) -> ir.Expr | None:
        if node.name in self.broken:
            return None
        if node.name in self.columns:
            return ir.ValueRef(node.name, self.columns[node.name].expr.type)
        if node.name in self.scope.values:
            return super().word(node)
        names = [*self.columns, *self.scope.values]
        hint = first_hint(self.scope.hidden.get(node.name), offer(node.name, names))
        return self.error("T33", f"there is no column `{node.name}`", node.span, hint)


class StageChecker:
    """One stage."""

    def __init__(self, ctx: Context, scope: Scope, node: ast.Stage) -> None:
        self.ctx = ctx
        self.scope = scope
        self.node = node
        self.columns: Columns = {}
        self.items: dict[str, ast.Projection] = {}
        self.broken: set[str] = set()
        self.grouped = False

    def check(self) -> irq.Stage:
        node = self.node
        pattern = irq.Pattern()
        if node.match is not None:
            pattern = PatternChecker(self.ctx, self.scope).check(node.match.clauses)
        for item in node.select.items:
            self._project(item)
        self._check_groups()
        having = self._having()
        order = tuple(key for key in map(self._order_key, self._keys()) if key is not None)
        offset, limit = self._bound(node.offset), self._bound(node.limit)
        self._require_limit(order)
        return irq.Stage(
            pattern,
            tuple(self.columns.values()),
            node.select.distinct,
            having,
            order,
            offset,
            limit,
        )

    def next_scope(self) -> Scope:
        """What the stage after this one sees."""
        vars: dict[str, Var] = {}
        values: dict[str, ValueType] = {}
        for name, column in self.columns.items():
            expr = column.expr
            if isinstance(expr, ir.Entity):
                vars[name] = NodeVar(expr.types, expr.type.nullable, fixed=True)
            elif isinstance(expr, ir.ValueRef) and isinstance(self.scope.vars.get(name), ValueVar):
                vars[name] = ValueVar(expr.type)
            else:
                values[name] = expr.type
        gone = {*self.scope.vars, *self.scope.values} - vars.keys() - values.keys()
        return Scope(vars, values, dict.fromkeys(gone, "`with` does not hand it on"))

    # Columns --------------------------------------------------------------------------------

    def _project(self, item: ast.Projection) -> None:
        found = SelectValues(self).lower(item.expr)
        name = self._name(item)
        if name in self.columns:
            span = item.alias.span if item.alias else item.span
            self.ctx.error("T33", f"two columns are named `{name}`", span, "rename one of them")
            return
        if found is None:
            self.broken.add(name)
            return
        if self._is_other_value(name, found):
            span = item.alias.span if item.alias else item.span
            message = f"the name `{name}` means another value in this stage"
            self.ctx.error("T33", message, span, "choose another alias")
            return
        if found.type.kind is Kind.EDGE:
            var = found.var if isinstance(found, ir.Entity) else "edge"
            message = f"edge variable `${var}` cannot be used as a value"
            self.ctx.error("T23", message, item.expr.span, f"use a property: `${var}.…`")
        elif Kind.BLOB in (found.type.kind, found.type.item):
            self.ctx.error("T24", "a blob cannot be used as a value", item.expr.span)
        elif self.node.select.keyword == "with" and not _names_itself(item, found):
            message = "a value that `with` hands on needs a name"
            self.ctx.error("T34", message, item.expr.span, "add `as name`")
        self.columns[name] = irq.Projection(name, found)
        self.items[name] = item

    def _is_other_value(self, name: str, found: ir.Expr) -> bool:
        taken = name in self.scope.values or isinstance(self.scope.vars.get(name), ValueVar)
        return taken and found != ir.ValueRef(name, found.type)

    def _name(self, item: ast.Projection) -> str:
        if item.alias is not None:
            return item.alias.text
        name = default_name(item.expr)
        unique, count = name, 1
        while unique in self.columns:
            count += 1
            unique = f"{name}_{count}"
        return unique

    def _check_groups(self) -> None:
        aggregates = {name: contains(c.expr, ir.Aggregate) for name, c in self.columns.items()}
        self.grouped = any(aggregates.values())
        if not self.grouped:
            return
        for name, column in self.columns.items():
            span = self.items[name].span
            if not aggregates[name] and contains(column.expr, _SCORES):
                hint = "hand it on with `with { … as score }` first"
                self.ctx.error("T9", "results cannot be grouped by a score", span, hint)
            elif aggregates[name] and _leaks(column.expr):
                message = "an aggregate cannot be combined with a value that differs by row"
                self.ctx.error("T9", message, span, "aggregate in `with` first, then combine")

    # Conditions and order -------------------------------------------------------------------

    def _having(self) -> ir.Expr | None:
        node = self.node.having
        if node is None:
            return None
        found = self._column_values().condition(node.expr)
        return None if found is None else self._settle(found, node.expr, "having")

    def _column_values(self) -> ColumnValues:
        return ColumnValues(self)

    def _keys(self) -> tuple[ast.OrderKey, ...]:
        return self.node.order.keys if self.node.order is not None else ()

    def _order_key(self, node: ast.OrderKey) -> irq.OrderKey | None:
        found = self._column_values().lower(node.expr)
        if found is None:
            return None
        found = self._as_key(found)
        if not found.type.is_orderable:
            code = _ORDER_CODES.get(found.type.kind, "T43")
            message = f"results cannot be ordered by {show_kind(found.type)}"
            hint = "order by a property: `$w.since`" if code == "T23" else None
            return self.ctx.error(code, message, node.expr.span, hint)
        settled = self._settle(found, node.expr, "order")
        return None if settled is None else irq.OrderKey(settled, self._descends(node))

    def _as_key(self, found: ir.Expr) -> ir.Expr:
        """A node is ordered by its id, also under the name of its column."""
        if isinstance(found, ir.ValueRef) and found.type.kind is Kind.NODE:
            found = self.columns[found.name].expr
        if isinstance(found, ir.Entity) and found.type.kind is Kind.NODE:
            return identity(found)
        return found

    def _descends(self, node: ast.OrderKey) -> bool:
        # A ranking that is written out is ordered best first, whatever the direction says; its
        # alias, `score(…)` and `rank(…)` are ordinary numbers.
        name = node.expr.name.text if isinstance(node.expr, ast.Call) else None
        return name in _BEST_IS_LARGEST or node.direction == "desc"

    def _settle(self, expr: ir.Expr, node: ast.Expr, keyword: str) -> ir.Expr | None:
        """The expression, if what it uses is still there when the keyword has its turn."""
        distinct = self.node.select.distinct and keyword == "order"
        if not (self.grouped or distinct) or self._uses_columns(expr):
            return expr
        code = "T9" if self.grouped else "T44"
        what = "groups" if self.grouped else "distinct results"
        message = f"`{keyword}` uses a value that the {what} do not hold"
        hint = "return the value too, or an aggregate of it"
        return self.ctx.error(code, message, node.span, hint)

    def _uses_columns(self, expr: ir.Expr) -> bool:
        """Whether columns and, in a grouped stage, aggregates are all that it needs."""
        if any(column.expr == expr for column in self.columns.values()):
            return True
        if isinstance(expr, ir.ValueRef):
            return expr.name in self.columns
        if isinstance(expr, ir.Aggregate):
            return self.grouped
        if isinstance(expr, ir.Property):
            return any(
                isinstance(column.expr, ir.Entity) and column.expr.var == expr.var
                for column in self.columns.values()
            )
        if isinstance(expr, (ir.Entity, ir.TextMatch, *_SCORES)):
            return False
        return all(self._uses_columns(child) for child in children(expr))

    def _require_limit(self, order: tuple[irq.OrderKey, ...]) -> None:
        if self.node.limit is not None or self.node.order is None:
            return
        for key in order:
            expr = key.expr
            if isinstance(expr, ir.ValueRef) and expr.name in self.columns:
                expr = self.columns[expr.name].expr
            fused = contains(expr, ir.Fuse)
            if fused or contains(expr, ir.VectorScore):
                name, code = ("rrf", "T21") if fused else ("nearest", "T17")
                message = f"an order by `{name}` needs a `limit`"
                self.ctx.error(code, message, self.node.order.span, "add `limit 10`")

    def _bound(self, node: ast.Bound | None) -> ir.Expr | None:
        if node is None:
            return None
        value = Values(self.ctx, Scope()).lower(node.value)
        if value is None:
            return None
        constant = isinstance(value, ir.Literal) and value.value < 2**63
        param = isinstance(value, ir.Param) and value.type.kind in INTEGER_KINDS
        if not (constant or param):
            message = f"`{node.keyword}` takes an integer or an integer parameter"
            return self.ctx.error("T37", message, node.value.span)
        return value


_BEST_IS_LARGEST = frozenset({"bm25", "search", "fuzzy", "match_text", "rrf"})
_SCORES = (ir.VectorScore, ir.TextScore, ir.Fuse, ir.RankOf)


def _leaks(expr: ir.Expr) -> bool:
    """Whether an expression uses a row's own values outside its aggregates."""
    rowwise = (ir.Property, ir.Entity, ir.ValueRef, ir.TextMatch, *_SCORES)
    return any(isinstance(part, rowwise) for part in parts(expr, into=_not_aggregate))


def _not_aggregate(expr: ir.Expr) -> bool:
    return not isinstance(expr, ir.Aggregate)


def _names_itself(item: ast.Projection, found: ir.Expr) -> bool:
    if item.alias is not None:
        return True
    if isinstance(item.expr, ast.Word):
        return True
    return isinstance(found, ir.Entity | ir.ValueRef)


def default_name(node: ast.Expr) -> str:
    """The name of a column that has no alias."""
    match node:
        case ast.Property():
            return f"{node.var.text}.{node.name.text}"
        case ast.Variable() | ast.Word():
            return node.name
        case ast.Call():
            return node.name.text
        case ast.Literal() | ast.ListOf():
            return "literal"
    return "value"


def show_kind(type_: ValueType) -> str:
    return _KIND_NAMES.get(type_.kind, str(type_))


_ORDER_CODES = {Kind.BLOB: "T24", Kind.EDGE: "T23"}
_KIND_NAMES = {
    Kind.NODE: "a node",
    Kind.EDGE: "an edge",
    Kind.LIST: "a list",
    Kind.VECTOR: "a vector",
    Kind.BLOB: "a blob",
}
