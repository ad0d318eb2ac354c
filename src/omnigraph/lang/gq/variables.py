"""Which variables a part of a query uses, and where.

Pure, complete for every kind of node; parameters count as variables here, because only their
declaration distinguishes the two.
"""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.lang.diagnostics import Span
from omnigraph.lang.gq import ast

_VARIABLE_FIELDS = frozenset({"var", "src", "dst", "edge_var", "hops_var"})


def names_in(node: object) -> set[str]:
    """The names of all variables in a tree."""
    return {name for name, _ in occurrences(node)}


def occurrences(node: object) -> Iterator[tuple[str, Span]]:
    """Every use of a variable in a tree, in order, each as often as it is written."""
    if isinstance(node, ast.Variable):
        yield node.name, node.span
    elif isinstance(node, ast.Node):
        for field in node.FIELDS:
            value = getattr(node, field)
            if field in _VARIABLE_FIELDS and isinstance(value, ast.Name):
                yield value.text, value.span
            else:
                yield from occurrences(value)
    elif isinstance(node, tuple):
        for each in node:
            yield from occurrences(each)


def nodes_in(node: object) -> Iterator[ast.Node]:
    """A tree's nodes, each before what it holds."""
    if isinstance(node, ast.Node):
        yield node
        for field in node.FIELDS:
            yield from nodes_in(getattr(node, field))
    elif isinstance(node, tuple):
        for each in node:
            yield from nodes_in(each)
