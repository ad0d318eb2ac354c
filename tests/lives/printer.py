"""Queries as text, with as few parentheses as the documented precedence allows."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from tests.lives.syntax import (
    Bind,
    Block,
    Cond,
    Delete,
    Expr,
    Query,
    Stage,
    Statement,
    Update,
    Walk,
    Write,
)

ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
LEVELS = {"or": 1, "and": 2, "+": 5, "-": 5, "*": 6, "/": 6, "%": 6}
COMPARISON, UNARY, ATOM = 4, 7, 8


def quoted(text: str) -> str:
    return '"' + "".join(ESCAPES.get(c, c) for c in text) + '"'


def literal(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, datetime):
        stamp = value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return f'datetime("{stamp}")'
    if isinstance(value, date):
        return f'date("{value.isoformat()}")'
    if isinstance(value, list):
        return "[" + ", ".join(literal(item) for item in value) + "]"
    return repr(value)


def level(expr: Expr) -> int:
    if expr[0] == "bin":
        return LEVELS.get(expr[1], COMPARISON)
    if expr[0] in ("in", "null"):
        return COMPARISON
    if expr[0] == "not":
        return 3
    if expr[0] == "neg" or (expr[0] == "lit" and _negative(expr[2])):
        return UNARY
    return ATOM


def _negative(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and str(value)[0] == "-"


def show(expr: Expr, least: int = 0) -> str:
    text = _SHOWN[expr[0]](expr)
    return f"({text})" if level(expr) < least else text


def _binary(expr: Expr) -> str:
    _, op, left, right = expr
    own = level(expr)
    # Comparisons do not chain; the other operators group to the left.
    first = own + 1 if own == COMPARISON else own
    return f"{show(left, first)} {op} {show(right, own + 1)}"


def _member(expr: Expr) -> str:
    word = "not in" if expr[3] else "in"
    items = expr[2] if isinstance(expr[2], tuple) and expr[2][0] == "param" else None
    told = show(items) if items else "[" + ", ".join(show(item) for item in expr[2][1]) + "]"
    return f"{show(expr[1], 5)} {word} {told}"


def _aggregate(expr: Expr) -> str:
    arg = "*" if expr[3] is None else show(expr[3])
    return f"{expr[1]}({'distinct ' if expr[2] else ''}{arg})"


_SHOWN = {
    "lit": lambda e: literal(e[2]),
    "param": lambda e: f"${e[1]}",
    "var": lambda e: f"${e[1]}",
    "prop": lambda e: e[2] if e[1] is None else f"${e[1]}.{e[2]}",
    "alias": lambda e: e[1],
    "bin": _binary,
    "not": lambda e: f"not {show(e[1], 3)}",
    "neg": lambda e: f"-{show(e[1], ATOM)}",
    "null": lambda e: f"{show(e[1], 5)} is {'not ' if e[2] else ''}null",
    "in": _member,
    "call": lambda e: f"{e[1]}({', '.join(show(arg) for arg in e[2])})",
    "agg": _aggregate,
}


def _walk(walk: Walk) -> str:
    edges = "|".join(_small(edge) for edge in walk.edges) or "_"
    bounds = ""
    if walk.most is not None:
        bounds = "{" + f"{walk.least},{'' if walk.most == -1 else walk.most}" + "}"
    if walk.edge_var:
        edges = f"${walk.edge_var}:{edges}"
    told = {"derived": edges, "reverse": f"<-{edges}", "both": f"<{edges}>"}[
        walk.direction
    ] + bounds
    hops = f" as ${walk.hops}" if walk.hops else ""
    short = "shortest " if walk.shortest else ""
    return f"${walk.src} {short}{told}{hops} ${walk.dst}"


def _small(name: str) -> str:
    return name[0].lower() + name[1:]


def _clause(clause: Any, pad: str) -> str:
    if isinstance(clause, Bind):
        props = ", ".join(f"{name}: {show(value)}" for name, value in clause.props)
        return f"{pad}${clause.var}: {clause.type}" + (f" {{ {props} }}" if props else "")
    if isinstance(clause, Walk):
        return pad + _walk(clause)
    if isinstance(clause, Cond):
        text = show(clause.expr)
        wrapped = text.startswith("-") or _bare(clause.expr)
        return pad + (f"({text})" if wrapped else text)
    inner = "\n".join(_clause(c, pad + "  ") for c in clause.clauses)
    return f"{pad}{clause.word} {{\n{inner}\n{pad}}}"


def _bare(expr: Expr) -> bool:
    """Whether a condition starts with a variable alone, which could be read as a walk."""
    return expr[0] == "bin" and expr[2][0] in ("var", "param")


def _stage(stage: Stage, last: bool) -> str:
    lines = []
    if stage.clauses:
        lines += ["match {", *(_clause(c, "  ") for c in stage.clauses), "}"]
    values = ", ".join(show(e) + (f" as {alias}" if alias else "") for e, alias in stage.values)
    word = "return" if last else "with"
    lines.append(f"{word}{' distinct' if stage.distinct else ''} {{ {values} }}")
    if stage.having is not None:
        lines.append(f"having {{ {show(stage.having)} }}")
    if stage.order:
        keys = ", ".join(show(e) + (" desc" if desc else "") for e, desc in stage.order)
        lines.append(f"order {{ {keys} }}")
    if stage.offset is not None:
        lines.append(f"offset {stage.offset}")
    if stage.limit is not None:
        lines.append(f"limit {stage.limit}")
    return "\n".join(lines)


def query(query: Query, name: str = "q") -> str:
    params = ", ".join(f"${p}: {kind}" for p, kind in query.params)
    body = "\n".join(_stage(s, s is query.stages[-1]) for s in query.stages)
    return f"query {name}({params}) {{\n{body}\n}}"


def _fields(fields: tuple[tuple[str, Expr], ...]) -> str:
    return "{ " + ", ".join(f"{name}: {show(value)}" for name, value in fields) + " }"


def _statement(statement: Statement) -> str:
    if isinstance(statement, Delete):
        return f"delete {statement.type} where {show(statement.where)}"
    if isinstance(statement, Update):
        return (
            f"update {statement.type} set {_fields(statement.sets)} where {show(statement.where)}"
        )
    if statement.policy is None:
        return f"insert {statement.type} {_fields(statement.values)}"
    sets = f" set {_fields(statement.sets)}" if statement.sets else ""
    return (
        f"upsert {statement.type} {_fields(statement.values)} on conflict {statement.policy}{sets}"
    )


def write(write: Write, name: str = "w") -> str:
    params = ", ".join(f"${p}: {kind}" for p, kind in write.params)
    body = "\n".join(f"  {_statement(s)}" for s in write.statements)
    return f"query {name}({params}) {{\n{body}\n}}"


__all__ = ["Block", "query", "show", "write"]
