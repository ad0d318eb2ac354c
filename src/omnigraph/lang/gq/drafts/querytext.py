"""A query's tree as text.

Guarantees: the text reads back as the same tree.
"""

from __future__ import annotations

from omnigraph.arguments import shown
from omnigraph.errors import InvalidArgumentError, QueryError
from omnigraph.lang.gq import ast
from omnigraph.lang.gq.compile import parse
from omnigraph.lang.gq.format import format_queries
from omnigraph.lang.gq.printer import Printer

_ESCAPES = str.maketrans({'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"})


class Writer(Printer):
    """Writes trees that were never text: constants are spelled out."""

    def __init__(self) -> None:
        super().__init__("")

    def _bare(self, node: ast.Expr, level: int) -> str:
        return spelled(node) if isinstance(node, ast.Literal) else super()._bare(node, level)


def spelled(node: ast.Literal) -> str:
    """A constant as a query writes it."""
    match node.kind:
        case "string":
            return f'"{str(node.value).translate(_ESCAPES)}"'
        case "date" | "datetime":
            return f'{node.kind}("{node.value}")'
        case "bool":
            return "true" if node.value else "false"
        case "null":
            return "null"
    return repr(node.value)


def text_of(query: ast.Query) -> str:
    """A query in canonical layout."""
    write = Writer()
    params = ", ".join(write.param(param) for param in query.params)
    notes = "".join(f" {write.annotation(note)}" for note in query.annotations)
    body = _read(query.body) if isinstance(query.body, ast.Read) else _write(query.body)
    return format_queries(f"query {query.name.text}({params}){notes} {{ {body} }}")


def _read(body: ast.Read) -> str:
    return " ".join(_stage(stage) for stage in body.stages)


def _stage(stage: ast.Stage) -> str:
    write = Writer()
    parts = []
    if stage.match is not None:
        parts.append(f"match {{ {' '.join(write.clauses(stage.match.clauses))} }}")
    items = ", ".join(write.projection(item) for item in stage.select.items)
    word = f"{stage.select.keyword} distinct" if stage.select.distinct else stage.select.keyword
    parts.append(f"{word} {{ {items} }}")
    if stage.having is not None:
        parts.append(f"having {{ {write.expr(stage.having.expr)} }}")
    if stage.order is not None:
        keys = ", ".join(write.order_key(key) for key in stage.order.keys)
        parts.append(f"order {{ {keys} }}")
    for bound in (stage.offset, stage.limit):
        if bound is not None:
            parts.append(f"{bound.keyword} {write.expr(bound.value)}")
    return " ".join(parts)


def _write(body: ast.Write) -> str:
    return " ".join(_statement(statement) for statement in body.statements)


def _statement(node: ast.Statement) -> str:
    write = Writer()
    match node:
        case ast.Insert():
            return f"insert {node.type.text} {write.fields(node.fields)}"
        case ast.Update():
            where = write.expr(node.where)
            return f"update {node.type.text} set {write.fields(node.fields)} where {where}"
        case ast.Delete():
            return f"delete {node.type.text} where {write.expr(node.where)}"
    text = f"upsert {node.type.text} {write.fields(node.fields)} on conflict {node.policy.text}"
    return f"{text} set {write.fields(node.updates)}" if node.updates else text


def read_type(text: str) -> ast.TypeRef:
    """A parameter's type as it is written: `String`, `[I32]`, `Vector(3)?`."""
    try:
        tree = parse(f"query q($x: {text}) {{ match {{ $n: Node }} return {{ $n }} }}")
    except QueryError as error:
        raise QueryError(
            f"{shown(text)} is no type of a parameter.", diagnostics=error.diagnostics
        ) from error
    if len(tree.queries) > 1 or len(tree.queries[0].params) > 1:
        raise InvalidArgumentError(f"{shown(text)} is more than one type of a parameter.")
    return tree.queries[0].params[0].type
