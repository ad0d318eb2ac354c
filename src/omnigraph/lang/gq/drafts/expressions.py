"""Expressions as Python values.

    p = var("p")
    (p.age > 30) & p.name.contains("a")
    fn.count(distinct(p.city))

Python's `and`, `or` and `not` cannot be built, so `&`, `|` and `~` stand for them; they bind
tighter than comparisons, which therefore stand in parentheses.

Guarantees: values are immutable; what is no constant of the language is refused where it is used.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC, date, datetime
from typing import Any, TypeAlias

from omnigraph.arguments import check_text, checked, shown
from omnigraph.errors import InvalidArgumentError
from omnigraph.lang.gq import ast

_SYMBOLS = frozenset({"=", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%"})
_DEEPEST = 50  # lists in lists

Constant: TypeAlias = str | int | float | bool | date | datetime | None
Value: TypeAlias = "Expr | Constant | list[Any] | tuple[Any, ...]"


@checked
class Expr:
    """An expression. Operators combine expressions."""

    __slots__ = ("_tree",)

    def __init__(self, tree: ast.Expr) -> None:
        self._tree = tree

    __hash__ = None  # type: ignore[assignment]  # `==` builds an expression

    def __bool__(self) -> bool:
        raise InvalidArgumentError(
            "An expression has no truth of its own.", hint="Write & for and, | for or, ~ for not."
        )

    def __repr__(self) -> str:
        from omnigraph.lang.gq.drafts.querytext import Writer

        return Writer().expr(self._tree)

    def __eq__(self, other: object) -> Expr:  # type: ignore[override]
        return self._binary("=", other)

    def __ne__(self, other: object) -> Expr:  # type: ignore[override]
        return self._binary("!=", other)

    def __lt__(self, other: Value) -> Expr:
        return self._binary("<", other)

    def __le__(self, other: Value) -> Expr:
        return self._binary("<=", other)

    def __gt__(self, other: Value) -> Expr:
        return self._binary(">", other)

    def __ge__(self, other: Value) -> Expr:
        return self._binary(">=", other)

    def __add__(self, other: Value) -> Expr:
        return self._binary("+", other)

    def __radd__(self, other: Value) -> Expr:
        return as_expr(other)._binary("+", self)

    def __sub__(self, other: Value) -> Expr:
        return self._binary("-", other)

    def __rsub__(self, other: Value) -> Expr:
        return as_expr(other)._binary("-", self)

    def __mul__(self, other: Value) -> Expr:
        return self._binary("*", other)

    def __rmul__(self, other: Value) -> Expr:
        return as_expr(other)._binary("*", self)

    def __truediv__(self, other: Value) -> Expr:
        return self._binary("/", other)

    def __rtruediv__(self, other: Value) -> Expr:
        return as_expr(other)._binary("/", self)

    def __mod__(self, other: Value) -> Expr:
        return self._binary("%", other)

    def __neg__(self) -> Expr:
        return Made(ast.Negative(self._tree))

    def __and__(self, other: Value) -> Expr:
        return self._logic("and", other)

    def __or__(self, other: Value) -> Expr:
        return self._logic("or", other)

    def __invert__(self) -> Expr:
        return Made(ast.Inverse(self._tree))

    def contains(self, other: Value) -> Expr:
        """A text that holds another, or a list that holds an item."""
        return self._binary("contains", other)

    def starts_with(self, other: Value) -> Expr:
        return self._binary("starts_with", other)

    def ends_with(self, other: Value) -> Expr:
        return self._binary("ends_with", other)

    def matches(self, pattern: Value) -> Expr:
        """A regular expression is found somewhere in the text."""
        return self._binary("matches", pattern)

    def is_in(self, options: Value) -> Expr:
        return Made(ast.Member(self._tree, tree_of(options), False))

    def not_in(self, options: Value) -> Expr:
        return Made(ast.Member(self._tree, tree_of(options), True))

    def is_null(self) -> Expr:
        return Made(ast.IsNull(self._tree, False))

    def is_not_null(self) -> Expr:
        return Made(ast.IsNull(self._tree, True))

    def operator(self, op: str, other: Value) -> Expr:
        """Any operator of the language by its name, as `icontains`."""
        return self._binary(op if op in _SYMBOLS else checked_name(op), other)

    def asc(self) -> Key:
        return Key(self, "asc")

    def desc(self) -> Key:
        return Key(self, "desc")

    def _binary(self, op: str, other: object) -> Expr:
        return Made(ast.Binary(op, self._tree, tree_of(other)))

    def _logic(self, op: ast.LogicOp, other: object) -> Expr:
        items: list[ast.Expr] = []
        for tree in (self._tree, tree_of(other)):
            same = isinstance(tree, ast.Logic) and tree.op == op
            items += tree.items if isinstance(tree, ast.Logic) and same else [tree]
        return Made(ast.Logic(op, tuple(items)))


class Made(Expr):
    """Any expression that is not just a variable. Beside `Var` and not above it: Python would turn
    `x == var` around, if the right side's class were a special case of the left side's."""

    __slots__ = ()


class Var(Expr):
    """`$name`: a node, an edge, a hop count or a parameter; `var.property` is its property."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        super().__init__(ast.Variable(checked_name(name)))
        self._name = name

    def __getattr__(self, name: str) -> Expr:
        if name.startswith("_"):  # Python asks for many of these by itself
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, name: str) -> Expr:
        """A property by its name, also one that Python has another meaning for."""
        return Made(ast.Property(ast.Name(self._name), ast.Name(checked_name(name))))


class Key:
    """What rows are ordered by, and in which direction."""

    __slots__ = ("direction", "expr")

    def __init__(self, expr: Expr, direction: ast.SortDirection) -> None:
        self.expr = expr
        self.direction = direction


class Distinct:
    """What a function takes each value of only once."""

    __slots__ = ("expr",)

    def __init__(self, expr: Expr) -> None:
        self.expr = expr


class _Functions:
    """Every function of the language: `fn.lower(x)`, `fn.count()`, `fn.nearest(d.vec, "text")`."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def call(*args: Value | Distinct) -> Expr:
            distinct = any(isinstance(arg, Distinct) for arg in args)
            trees = tuple(tree_of(arg.expr if isinstance(arg, Distinct) else arg) for arg in args)
            star = name == "count" and not args
            return Made(ast.Call(ast.Name(checked_name(name)), trees, distinct, star))

        return call


fn = _Functions()


class _Row:
    """The row at hand in a mutation's condition and values: `this.age`, `this["age"]`."""

    def __getattr__(self, name: str) -> Expr:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, name: str) -> Expr:
        return Made(ast.Word(checked_name(name)))


this = _Row()


@checked
def var(name: str) -> Var:
    """A variable or parameter, without its dollar sign."""
    return Var(name)


@checked
def variables(names: str) -> tuple[Var, ...]:
    """Several variables at once: `p, f = variables("p f")`."""
    return tuple(Var(name) for name in names.split())


@checked
def alias(name: str) -> Expr:
    """A column of this or an earlier stage, by name."""
    return Made(ast.Word(checked_name(name)))


@checked
def distinct(value: Expr) -> Distinct:
    return Distinct(value)


def as_expr(value: object) -> Expr:
    return value if isinstance(value, Expr) else Made(_constant(value))


def tree_of(value: object) -> ast.Expr:
    """An expression's tree; a Python value becomes a constant."""
    return as_expr(value)._tree


def _constant(value: object, depth: int = 0) -> ast.Expr:
    if isinstance(value, list | tuple):
        if depth == _DEEPEST:
            raise InvalidArgumentError(f"Lists are nested more than {_DEEPEST} deep.")
        return ast.ListOf(
            tuple(
                item._tree if isinstance(item, Expr) else _constant(item, depth + 1)
                for item in value
            )
        )
    if value is None:
        return ast.Literal("null", None)
    if isinstance(value, bool):
        return ast.Literal("bool", value)
    if isinstance(value, str):
        return ast.Literal("string", check_text(value, "value"))
    if isinstance(value, int | float):
        return _number(value)
    if isinstance(value, datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=UTC)
        return ast.Literal("datetime", moment.isoformat())
    if isinstance(value, date):
        return ast.Literal("date", value.isoformat())
    raise InvalidArgumentError(
        f"The query language has no constant for {shown(value)}.",
        hint="Use a parameter for it: var('name'), declared with its type.",
    )


def _number(value: int | float) -> ast.Expr:
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidArgumentError(f"{value} is no constant of the query language.")
    kind: ast.LiteralKind = "int" if isinstance(value, int) else "float"
    if isinstance(value, int) and abs(value) >= 2**64:
        raise InvalidArgumentError(
            f"No number of the query language is as large as {shown(value)}."
        )
    literal = ast.Literal(kind, abs(value))
    return ast.Negative(literal) if math.copysign(1, value) < 0 else literal


def checked_name(name: object) -> str:
    """A name that can stand in a query's text and mean nothing but itself."""
    if not isinstance(name, str) or not name.isidentifier() or not name.isascii():
        raise InvalidArgumentError(
            f"{shown(name)} is no name of the query language.",
            hint="Names are letters, digits and underscores, and begin with no digit.",
        )
    return name


def name_node(name: str) -> ast.Name:
    return ast.Name(checked_name(name))


def all_of(values: Iterable[Value]) -> tuple[ast.Expr, ...]:
    return tuple(tree_of(value) for value in values)
