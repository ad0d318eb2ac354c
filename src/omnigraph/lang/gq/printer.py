"""Write the parts of a query that stand on one line: expressions, clauses, statements.

Guarantees: what is written reads back as the same tree. Parentheses are written where the tree
needs them, and where a clause would otherwise run into the one before it or after it.
Deliberately absent: lines, indentation and comments (`format`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from omnigraph.lang.gq import ast
from omnigraph.lang.gq.syntax.expressions import (
    ADDITIVE,
    AND,
    COMPARISON,
    MARK_OPERATORS,
    NOT,
    OR,
    UNARY,
    WORD_OPERATORS,
)

_PRIMARY = UNARY + 1
# Words that an expression cannot start with unless they stand in parentheses.
_GUARDED = frozenset({*WORD_OPERATORS, "as", "distinct"})
_ENDS_IN_WORD = re.compile(r"(?:^|[^A-Za-z0-9_.$])[a-z_][A-Za-z0-9_]*\Z")
_STARTS_WITH_WORD = re.compile(r"[a-z_]")


class Printer:
    """Writes trees that were read from `text`; constants are copied from it."""

    def __init__(self, text: str) -> None:
        self.text = text

    # Expressions ----------------------------------------------------------------------------

    def expr(self, node: ast.Expr, minimum: int = OR) -> str:
        """An expression, in parentheses if it binds less tightly than its place demands."""
        level = _level(node)
        text = self._bare(node, level)
        return f"({text})" if level < minimum else text

    def _bare(self, node: ast.Expr, level: int) -> str:
        match node:
            case ast.Literal():
                return self.text[node.span.start : node.span.end]
            case ast.ListOf():
                return f"[{self._listed(node.items)}]"
            case ast.Variable():
                return f"${node.name}"
            case ast.Property():
                return f"${node.var.text}.{node.name.text}"
            case ast.Word():
                return f"({node.name})" if node.name in _GUARDED else node.name
            case ast.Call():
                return self._call(node)
        return self._operation(node, level)

    def _operation(self, node: ast.Expr, level: int) -> str:
        match node:
            case ast.Negative():
                return f"-{self.expr(node.item, UNARY)}"
            case ast.Inverse():
                return f"not {self.expr(node.item, NOT)}"
            case ast.Logic():
                return f" {node.op} ".join(self.expr(item, level + 1) for item in node.items)
            case ast.IsNull():
                negation = "not " if node.negated else ""
                return f"{self.expr(node.item, ADDITIVE)} is {negation}null"
            case ast.Member():
                word = "not in" if node.negated else "in"
                item, options = self.expr(node.item, ADDITIVE), self.expr(node.options, ADDITIVE)
                return f"{item} {word} {options}"
            case ast.Binary():
                # Comparisons do not chain, so neither side may be one.
                left = self.expr(node.left, level + 1 if level == COMPARISON else level)
                return f"{left} {node.op} {self.expr(node.right, level + 1)}"
        raise AssertionError(f"{type(node).__name__} is not an operation")

    def _listed(self, items: Sequence[ast.Expr]) -> str:
        return ", ".join(self.expr(item) for item in items)

    def _call(self, node: ast.Call) -> str:
        inner = "*" if node.star else self._listed(node.args)
        return f"{node.name.text}({'distinct ' if node.distinct else ''}{inner})"

    # Clauses --------------------------------------------------------------------------------

    def clauses(self, nodes: Sequence[ast.Clause]) -> list[str]:
        """The clauses of a block, written so that each ends where the next begins."""
        texts = [self._clause(node, nodes[at - 1] if at else None) for at, node in enumerate(nodes)]
        for at in range(len(texts) - 2, -1, -1):
            if isinstance(nodes[at], ast.Filter) and _runs_into(texts[at], texts[at + 1]):
                texts[at] = f"({texts[at]})"
        return texts

    def _clause(self, node: ast.Clause, before: ast.Clause | None) -> str:
        match node:
            case ast.Binding():
                return self._binding(node)
            case ast.Traversal():
                return traversal(node)
            case ast.Filter():
                return self._filter(node, isinstance(before, ast.Filter))
        word = "not" if isinstance(node, ast.Negation) else "optional"
        return f"{word} {{ {' '.join(self.clauses(node.clauses))} }}"

    def _binding(self, node: ast.Binding) -> str:
        text = f"${node.var.text}: {node.type.text}"
        return f"{text} {self.fields(node.fields)}" if node.fields else text

    def fields(self, nodes: Sequence[ast.Field]) -> str:
        inner = ", ".join(self.field(node) for node in nodes)
        return f"{{ {inner} }}" if inner else "{ }"

    def field(self, node: ast.Field) -> str:
        return f"{node.name.text}: {self.expr(node.value)}"

    def _filter(self, node: ast.Filter, after_filter: bool) -> str:
        text = self.expr(node.expr)
        first, operator, second = _opening(node.expr)
        if isinstance(first, ast.Negative) and after_filter and text.startswith("-"):
            # Otherwise it would be subtracted from the clause before.
            leading = self.expr(first)
            return f"({leading}){text[len(leading) :]}"
        reads_as_walk = isinstance(first, ast.Variable) and isinstance(second, ast.Variable)
        if reads_as_walk and operator in WORD_OPERATORS and not text.startswith("("):
            leading = self.expr(first)
            return f"({leading}){text[len(leading) :]}"
        return text

    # Items and statements -------------------------------------------------------------------

    def projection(self, node: ast.Projection) -> str:
        text = self.expr(node.expr)
        return f"{text} as {node.alias.text}" if node.alias else text

    def order_key(self, node: ast.OrderKey) -> str:
        text = self.expr(node.expr)
        return f"{text} {node.direction}" if node.direction else text

    def param(self, node: ast.Param) -> str:
        return f"${node.name.text}: {type_ref(node.type)}"

    def annotation(self, node: ast.Annotation) -> str:
        return f"@{node.name.text}({self.expr(node.value)})"


def _runs_into(text: str, following: str) -> bool:
    """Whether a filter and the clause after it would be read as one."""
    if following.startswith("("):
        return _ENDS_IN_WORD.search(text) is not None  # a call
    bare_variable = text.startswith("$") and text[1:].replace("_", "a").isalnum()
    # A walk over an edge of that name. `not` is never an edge.
    starts_with_word = _STARTS_WITH_WORD.match(following) is not None
    return bare_variable and starts_with_word and not re.match(r"not\b", following)


def _opening(node: ast.Expr) -> tuple[ast.Expr, str | None, ast.Expr | None]:
    """The leftmost operand of an expression, the operator after it, and what follows that."""
    operator: str | None = None
    second: ast.Expr | None = None
    while True:
        match node:
            case ast.Binary():
                operator, second, node = node.op, _opening(node.right)[0], node.left
            case ast.Logic():
                operator, second, node = node.op, _opening(node.items[1])[0], node.items[0]
            case ast.Member():
                word = "not in" if node.negated else "in"
                operator, second, node = word, _opening(node.options)[0], node.item
            case ast.IsNull():
                operator, second, node = "is", None, node.item
            case _:
                return node, operator, second


def _level(node: ast.Expr) -> int:
    match node:
        case ast.Logic():
            return OR if node.op == "or" else AND
        case ast.Inverse():
            return NOT
        case ast.IsNull() | ast.Member():
            return COMPARISON
        case ast.Binary():
            return MARK_OPERATORS.get(node.op, COMPARISON)
        case ast.Negative():
            return UNARY
    return _PRIMARY


def traversal(node: ast.Traversal) -> str:
    parts = [f"${node.src.text}"]
    names = "|".join(name.text for name in node.edges)
    edge = {"derived": names, "reverse": f"<-{names}", "both": f"<{names}>"}[node.direction]
    if node.edge_var is not None:
        edge = f"${node.edge_var.text}:{edge}"
    if node.bounds is not None:
        low, high = node.bounds
        edge += f"{{{low},{'' if high is None else high}}}"
    parts += ["shortest", edge] if node.shortest else [edge]
    if node.hops_var is not None:
        parts += ["as", f"${node.hops_var.text}"]
    return " ".join([*parts, f"${node.dst.text}"])


def type_ref(node: ast.TypeRef) -> str:
    text = node.name if node.dim is None else f"{node.name}({node.dim})"
    text = f"[{text}]" if node.is_list else text
    return f"{text}?" if node.nullable else text
