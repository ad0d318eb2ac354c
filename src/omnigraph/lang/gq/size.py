"""How large a query may be.

A query within these limits is checked, planned and explained in a time that grows with its length,
without exhausting the interpreter's stack. A larger one is refused before that. Constants in lists
do not count: they are data. A write may have any number of statements; the limits hold for each of
them.
Not included: how deep a query may nest, which the parser limits (`MAX_DEPTH`).
"""

from __future__ import annotations

from typing import Final

from omnigraph.errors import LimitExceededError
from omnigraph.lang.gq import ast

MOST_STAGES: Final = 50
MOST_WALKS: Final = 100
MOST_BLOCKS: Final = 100
MOST_BINDINGS: Final = 200
MOST_EXPRESSIONS: Final = 10_000

_HINT = "Split the query, or pass many values as one list parameter."
_LIMITS: Final[dict[type[ast.Node], tuple[str, str, int]]] = {
    ast.Stage: ("query_stages", "stages", MOST_STAGES),
    ast.Traversal: ("query_walks", "walks", MOST_WALKS),
    ast.Negation: ("query_blocks", "`not` and `optional` blocks", MOST_BLOCKS),
    ast.Optional: ("query_blocks", "`not` and `optional` blocks", MOST_BLOCKS),
    ast.Binding: ("query_bindings", "bound variables", MOST_BINDINGS),
}
_EXPRESSIONS = ("query_expressions", "operators, calls and operands", MOST_EXPRESSIONS)


def check_size(query: ast.Query) -> None:
    """Refuse a query that is larger than the compiler and the planner can handle."""
    for part in query.body.statements if isinstance(query.body, ast.Write) else (query.body,):
        for (resource, what, most), count in _counts(part).items():
            if count > most:
                raise _too_large(query, resource, what, most, count)


def _counts(part: ast.Node) -> dict[tuple[str, str, int], int]:
    counts: dict[tuple[str, str, int], int] = {}
    waiting: list[object] = [part]
    while waiting:
        node = waiting.pop()
        if isinstance(node, tuple):
            waiting.extend(node)
            continue
        if not isinstance(node, ast.Node) or isinstance(node, ast.Name):
            continue
        limit = _LIMITS.get(type(node), _EXPRESSIONS)
        counts[limit] = counts.get(limit, 0) + 1
        if isinstance(node, ast.ListOf):
            waiting.extend(item for item in node.items if not _is_constant(item))
            continue
        waiting.extend(getattr(node, name) for name in node.FIELDS)
    return counts


def _is_constant(item: ast.Expr) -> bool:
    inner = item.item if isinstance(item, ast.Negative) else item
    return isinstance(inner, ast.Literal)


def _too_large(
    query: ast.Query, resource: str, what: str, most: int, count: int
) -> LimitExceededError:
    return LimitExceededError(
        f"The query `{query.name.text}` has {count:,} {what}; the limit is {most:,}.",
        resource=resource,
        limit=float(most),
        actual=float(count),
        hint=_HINT,
    )
