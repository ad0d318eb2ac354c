"""Check expressions and lower them to IR expressions.

What it does: `Values.lower` gives an expression's IR with its type; `Values.condition` does the
same for a place where only true or false will do.
Guarantees: None stands for an expression with a mistake that is already reported; no second
finding follows from it.
Deliberately absent: what a bare word means. That depends on the place, so the subclasses say it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from omnigraph.ir import expr as ir
from omnigraph.lang.diagnostics import Span, first_hint, offer, suggest
from omnigraph.lang.gq import ast
from omnigraph.lang.gq.check import calls, exprops, rules, searchcalls
from omnigraph.lang.gq.check.scope import (
    Context,
    EdgeVar,
    Missing,
    NodeVar,
    Scope,
    Unknown,
    ValueVar,
    find_property,
    show_type,
)
from omnigraph.model.types import (
    BOOL,
    F64,
    FLOAT_KINDS,
    I64,
    INTEGER_KINDS,
    STRING,
    Kind,
    ValueType,
)

NULL = ValueType(Kind.STRING, nullable=True)
_CONSTANT_TYPES = {
    "string": STRING,
    "float": F64,
    "bool": BOOL,
    "null": NULL,
    "date": ValueType(Kind.DATE),
    "datetime": ValueType(Kind.DATETIME),
}


class Values:
    """Expressions at one place of a query."""

    # Why aggregates cannot stand here, or nothing where they can.
    no_aggregates: str | None = "rows are not grouped here"

    def __init__(self, ctx: Context, scope: Scope) -> None:
        self.ctx = ctx
        self.scope = scope
        self.in_aggregate = False

    def lower(self, node: ast.Expr) -> ir.Expr | None:
        """The IR of an expression, or nothing if it has a mistake."""
        return _LOWER[type(node)](self, node)

    def lower_all(self, nodes: tuple[ast.Expr, ...]) -> list[ir.Expr] | None:
        """The IR of several expressions, or nothing if any has a mistake."""
        found = [self.lower(node) for node in nodes]
        whole = [each for each in found if each is not None]
        return whole if len(whole) == len(found) else None

    def condition(self, node: ast.Expr) -> ir.Expr | None:
        """The IR of an expression that must be true or false."""
        if isinstance(node, ast.Call) and node.name.text in searchcalls.TEXT_MODES:
            return searchcalls.text_match(self, node)
        found = self.lower(node)
        if found is None or found.type.kind is Kind.BOOL:
            return found
        message = f"a condition must be Bool, this is {show_type(found.type)}"
        hint = "compare it with something" if found.type.is_orderable else None
        return self.error("T29", message, node.span, hint)

    def word(self, node: ast.Word) -> ir.Expr | None:
        """The meaning of a bare name."""
        if node.name in self.scope.values:
            return ir.ValueRef(node.name, self.scope.values[node.name])
        hint = first_hint(
            self.scope.hidden.get(node.name),
            self._foreign_hint(node.name),
            suggest(node.name, self.scope.values),
            f"variables start with a dollar sign: `${node.name}`"
            if node.name in self.scope.vars
            else None,
        )
        return self.error("T33", f"there is no value named `{node.name}` here", node.span, hint)

    def _foreign_hint(self, name: str) -> str | None:
        if self.ctx.catalog.edge(name) is not None:
            return "a walk is a clause of its own: on its own line, or in `not { … }`"
        if name == "like":
            return "use `contains`, `starts_with`, `ends_with` or `matches`"
        return "use `>=` and `<=`, joined with `and`" if name == "between" else None

    def error(self, code: str, message: str, span: Span, hint: str | None = None) -> Any | None:
        """Report a mistake. Returns None, which stands for the expression that has it."""
        return self.ctx.error(code, message, span, hint)

    # Leaves ---------------------------------------------------------------------------------

    def literal(self, node: ast.Literal) -> ir.Literal | None:
        value: Any = node.value
        if node.kind == "int":
            return self.integer(value, node.span)
        try:
            if node.kind == "date":
                value = rules.parse_date(str(value))
            elif node.kind == "datetime":
                value = rules.parse_datetime(str(value))
        except (ValueError, OverflowError):
            example = "2026-02-14" if node.kind == "date" else "2026-02-14T10:00:00Z"
            message = f"`{node.value}` is not a {node.kind}"
            return self.error("T39", message, node.span, f'write it as `{node.kind}("{example}")`')
        return ir.Literal(value, _CONSTANT_TYPES[node.kind])

    def listed(self, node: ast.ListOf) -> ir.Literal | None:
        items = self.lower_all(node.items)
        if items is None:
            return None
        constants = [item for item in items if isinstance(item, ir.Literal)]
        if len(constants) < len(items):
            hint = "declare the list as a parameter, such as `$items: [String]`"
            return self.error("T28", "a list holds constants only", node.span, hint)
        if any(item.type.kind is Kind.LIST for item in constants):
            return self.error("T28", "lists do not nest", node.span)
        if any(item.value is None for item in constants):
            return self.error("T28", "a list cannot hold null", node.span)
        kind = Kind.STRING
        if constants:
            merged = rules.common(calls.constant_types(list(constants)))
            if merged is None:
                message = "the items of a list must have the same type"
                return self.error("T28", message, node.span)
            kind = merged.kind
        values = [item.value for item in constants]
        return ir.Literal(values, ValueType(Kind.LIST, item=kind))

    def variable(self, node: ast.Variable) -> ir.Expr | None:
        name = node.name
        if name in self.ctx.params:
            return ir.Param(name, self.ctx.params[name])
        match self.scope.vars.get(name):
            case NodeVar(types=types, nullable=nullable):
                return ir.Entity(name, types, ValueType(Kind.NODE, nullable))
            case EdgeVar(types=types, nullable=nullable):
                return ir.Entity(name, types, ValueType(Kind.EDGE, nullable))
            case ValueVar(type=type_):
                return ir.ValueRef(name, type_)
            case Unknown():
                return None
        message = f"variable `${name}` is not bound"
        return self.error("T25", message, node.span, self._unbound_hint(name))

    def _unbound_hint(self, name: str) -> str | None:
        known = [f"${each}" for each in (*self.scope.vars, *self.ctx.params)]
        bare = f"write it without the dollar sign: `{name}`" if name in self.scope.values else None
        return first_hint(self.scope.hidden.get(name), bare, offer(f"${name}", known))

    def property(self, node: ast.Property) -> ir.Property | None:
        found = self._find(node, "T6")
        if found is not None and _is_blob(found.type):
            shown = f"${node.var.text}.{node.name.text}"
            message = f"blob property `{shown}` cannot be used as a value"
            return self.error("T24", message, node.span, "read blobs through the blob API")
        return found

    def _find(self, node: ast.Property, code: str) -> ir.Property | None:
        name = node.var.text
        var = self.scope.vars.get(name)
        if isinstance(var, Unknown):
            return None
        if var is None or isinstance(var, ValueVar):
            what = "is a number" if var else "is not bound"
            hint = f"use it alone: `${name}`" if var else self._unbound_hint(name)
            return self.error(code, f"variable `${name}` {what}", node.var.span, hint)
        found = find_property(self.ctx, var, node.name.text)
        if isinstance(found, Missing):
            own = code if found.code == "T6" else found.code
            return self.error(own, found.message, node.name.span, found.hint)
        return ir.Property(name, found.name, found.type)

    def searched(self, node: ast.Property, code: str, function: str) -> ir.Property | None:
        """A property that a search function runs on, which only nodes have."""
        if isinstance(self.scope.vars.get(node.var.text), EdgeVar):
            message = f"`{function}` searches node properties, `${node.var.text}` is an edge"
            return self.error("T23", message, node.span, "filter edges with comparisons")
        return self._find(node, code)

    # Operators ------------------------------------------------------------------------------

    def negative(self, node: ast.Negative) -> ir.Expr | None:
        if isinstance(node.item, ast.Literal) and node.item.kind == "int":
            return self.integer(-int(node.item.value or 0), node.span)
        item = self.lower(node.item)
        if item is None:
            return None
        if not item.type.is_numeric:
            message = f"only numbers can be negated, this is {show_type(item.type)}"
            return self.error("T30", message, node.span)
        if isinstance(item, ir.Literal) and item.type.kind in INTEGER_KINDS:
            return self.integer(-int(item.value), node.span)
        if isinstance(item, ir.Literal):
            return ir.Literal(-item.value, item.type)
        type_ = F64 if item.type.kind in FLOAT_KINDS else I64
        zero = ir.Literal(0, I64)
        return ir.Arithmetic(ir.ArithmeticOp.SUB, zero, item, type_.as_nullable(item.type.nullable))

    def integer(self, value: int, span: Span) -> ir.Literal | None:
        """An integer constant: I64, or U64 where only that can hold it."""
        if value < -(2**63):
            message = f"the integer is smaller than {-(2**63)}"
            return self.error("Q004", message, span, "no integer type holds it")
        return ir.Literal(value, ValueType(Kind.I64 if value < 2**63 else Kind.U64))

    def logic(self, node: ast.Logic) -> ir.Expr | None:
        found = [self.condition(item) for item in node.items]
        items = tuple(each for each in found if each is not None)
        if len(items) < len(found):
            return None
        return ir.And(items) if node.op == "and" else ir.Or(items)

    def inverse(self, node: ast.Inverse) -> ir.Expr | None:
        item = self.condition(node.item)
        return None if item is None else ir.Not(item)

    def is_null(self, node: ast.IsNull) -> ir.Expr | None:
        item = self.lower(node.item)
        return None if item is None else ir.IsNull(item, node.negated)

    def binary(self, node: ast.Binary) -> ir.Expr | None:
        return exprops.lower_binary(self, node)

    def member(self, node: ast.Member) -> ir.Expr | None:
        return exprops.lower_member(self, node)

    def call(self, node: ast.Call) -> ir.Expr | None:
        return calls.lower_call(self, node)


def _is_blob(type_: ValueType) -> bool:
    return Kind.BLOB in (type_.kind, type_.item)


_LOWER: dict[type[ast.Node], Callable[[Values, Any], ir.Expr | None]] = {
    ast.Literal: Values.literal,
    ast.ListOf: Values.listed,
    ast.Variable: lambda values, node: values.variable(node),
    ast.Property: Values.property,
    ast.Word: lambda values, node: values.word(node),
    ast.Call: Values.call,
    ast.Negative: Values.negative,
    ast.Binary: Values.binary,
    ast.Logic: Values.logic,
    ast.Inverse: Values.inverse,
    ast.IsNull: Values.is_null,
    ast.Member: Values.member,
}
