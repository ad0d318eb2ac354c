"""What stands in a pattern, as Python values.

node(p, "Person", name="Ada")               $p: Person { name: "Ada" }
walk(p, "knows", f, hops=(1, 3))            $p knows{1,3} $f
optional(walk(f, "worksAt", c))             optional { … }
without(walk(f, "blocked", p))              not { … }
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from omnigraph.arguments import checked
from omnigraph.errors import InvalidArgumentError
from omnigraph.lang.gq import ast
from omnigraph.lang.gq.drafts.expressions import Expr, Value, Var, name_node, tree_of


class Clause:
    """One clause of a pattern."""

    __slots__ = ("tree",)

    def __init__(self, tree: ast.Clause) -> None:
        self.tree = tree


Part: TypeAlias = "Clause | Expr"


@checked
def node(var: Var, type: str, **properties: Value) -> Clause:
    """A node of a type or interface, with values of some properties."""
    fields = tuple(ast.Field(name_node(name), tree_of(value)) for name, value in properties.items())
    return Clause(ast.Binding(ast.Name(var._name), name_node(type), fields))


@checked
def walk(
    src: Var,
    edge: str | Sequence[str],
    dst: Var,
    *,
    hops: int | tuple[int, int | None] | None = None,
    direction: ast.EdgeDirection = "derived",
    edge_var: Var | None = None,
    hops_var: Var | None = None,
    shortest: bool = False,
) -> Clause:
    """From a node over an edge to another. Several edges are an alternation, `_` is any edge;
    `direction` is derived from the types, `reverse` or `both`."""
    if direction not in ("derived", "reverse", "both"):
        raise InvalidArgumentError(
            f"There is no direction {direction!r}.", hint="Use derived, reverse or both."
        )
    names = (edge,) if isinstance(edge, str) else tuple(edge)
    bounds = (hops, hops) if isinstance(hops, int) else hops
    return Clause(
        ast.Traversal(
            ast.Name(src._name),
            ast.Name(dst._name),
            tuple(name_node(name) for name in names),
            direction,
            bounds,
            None if edge_var is None else ast.Name(edge_var._name),
            None if hops_var is None else ast.Name(hops_var._name),
            shortest,
        )
    )


@checked
def optional(*parts: Part) -> Clause:
    """An optional pattern; without a match, its variables are null."""
    return Clause(ast.Optional(trees_of(parts)))


@checked
def without(*parts: Part) -> Clause:
    """A pattern that must not match."""
    return Clause(ast.Negation(trees_of(parts)))


def trees_of(parts: Sequence[Part]) -> tuple[ast.Clause, ...]:
    """Clauses as trees; an expression is a filter."""
    return tuple(
        part.tree if isinstance(part, Clause) else ast.Filter(tree_of(part)) for part in parts
    )
