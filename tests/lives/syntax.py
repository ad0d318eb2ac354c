"""Queries as values. The generator makes them, the printer writes them, the parser reads them back.

Expressions are tuples: ("lit", kind, value), ("param", name), ("var", name), ("prop", var, name)
with var None for a bare name in a write, ("alias", name), ("bin", op, a, b), ("not", a),
("neg", a), ("null", a, negated), ("in", a, items, negated), ("call", name, args),
("agg", name, distinct, arg).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Expr = tuple[Any, ...]


@dataclass(frozen=True)
class Bind:
    var: str
    type: str
    props: tuple[tuple[str, Expr], ...] = ()


@dataclass(frozen=True)
class Walk:
    """`edges` is empty for any edge; `most` is None for one hop, -1 for no upper bound."""

    src: str
    dst: str
    edges: tuple[str, ...]
    direction: str = "derived"  # or reverse, both
    least: int = 1
    most: int | None = None
    hops: str | None = None
    shortest: bool = False
    edge_var: str | None = None


@dataclass(frozen=True)
class Cond:
    expr: Expr


@dataclass(frozen=True)
class Block:
    """`word` is not or optional."""

    word: str
    clauses: tuple[Any, ...]


Clause = Bind | Walk | Cond | Block


@dataclass(frozen=True)
class Stage:
    clauses: tuple[Clause, ...]
    values: tuple[tuple[Expr, str | None], ...]
    distinct: bool = False
    having: Expr | None = None
    order: tuple[tuple[Expr, bool], ...] = ()
    offset: int | None = None
    limit: int | None = None


@dataclass(frozen=True)
class Query:
    stages: tuple[Stage, ...]
    params: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Insert:
    """Of a node or an edge; `policy` makes it an upsert."""

    type: str
    values: tuple[tuple[str, Expr], ...]
    policy: str | None = None
    sets: tuple[tuple[str, Expr], ...] = ()


@dataclass(frozen=True)
class Update:
    type: str
    sets: tuple[tuple[str, Expr], ...]
    where: Expr


@dataclass(frozen=True)
class Delete:
    type: str
    where: Expr


Statement = Insert | Update | Delete


@dataclass(frozen=True)
class Write:
    statements: tuple[Statement, ...]
    params: tuple[tuple[str, str], ...] = ()


@dataclass
class Call:
    """A text with the values of its parameters."""

    text: str
    params: dict[str, Any] = field(default_factory=dict)
