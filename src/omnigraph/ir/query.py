"""Read and write queries of the typed graph IR.

Guarantees: a read query is a chain of stages, each a pattern and what it hands on; a write query
is either constructive (insert, update, upsert) or destructive (delete), never both.
Deliberately absent: the order in which a pattern is matched; that is the planner's choice.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from omnigraph.ir.expr import Expr, Param
from omnigraph.model.types import ValueType


class Direction(StrEnum):
    OUT = "out"
    IN = "in"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class NodeBinding:
    """`$var: Type`. Several `types` when the query binds an interface or walks to several types.

    Every node variable has exactly one binding, in the pattern that introduces it, also when only
    a traversal does; a node that the query does not name (`$_`) gets a name of ours.
    """

    var: str
    types: tuple[str, ...]


EDGE = "__edge"
"""The variable under which the `where` of a step refers to the edge."""


@dataclass(frozen=True, slots=True)
class EdgeStep:
    """One edge type of a traversal with the direction in which it is walked from src to dst.

    `where`: only edges for which these predicates hold exist for the traversal. They use
    `Property(EDGE, …)`, constants and parameters. Without an edge variable the traversal still
    yields each pair of nodes once.
    """

    edge: str
    direction: Direction
    where: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class Traversal:
    """`$src edge{min,max} $dst`.

    Without `edge_var`: each pair (src, dst) once, and a node visited once is not searched again.
    With it: a single hop, one row per edge. Several `steps` are an alternation or any edge.
    `max_hops` None is unbounded. `hops_var` binds the number of hops at which dst was first
    found. `shortest` keeps, for each pair, only the smallest hop count.
    """

    src: str
    dst: str
    steps: tuple[EdgeStep, ...]
    min_hops: int = 1
    max_hops: int | None = 1
    edge_var: str | None = None
    hops_var: str | None = None
    shortest: bool = False


@dataclass(frozen=True, slots=True)
class Pattern:
    """What must hold together. Variables that an outer pattern or an earlier stage binds are
    shared, not bound again.

    Negations and optionals may use the variables of the pattern around them. What an optional
    binds is null for rows without a match; predicates and negations of the pattern around it may
    use it and so have their turn after it, other optionals may not.
    """

    nodes: tuple[NodeBinding, ...] = ()
    traversals: tuple[Traversal, ...] = ()
    predicates: tuple[Expr, ...] = ()
    negations: tuple[Pattern, ...] = ()
    optionals: tuple[Pattern, ...] = ()


@dataclass(frozen=True, slots=True)
class Projection:
    name: str
    expr: Expr


@dataclass(frozen=True, slots=True)
class OrderKey:
    """Nulls come first ascending and last descending."""

    expr: Expr
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Stage:
    """A pattern and the columns that it hands on. Projections that hold an aggregate make the
    others the group key. The last stage is the query's `return`.

    Projections never refer to each other. `having` and `order` refer to columns by `ValueRef`,
    and may use what the pattern binds; where the stage groups, only group keys, properties of an
    entity that is a group key, and aggregates, projected or not. The order of a distinct stage
    uses what it projects. A column that is an entity is a variable of that name in the next
    stage, any other column a `ValueRef`.
    """

    pattern: Pattern
    projections: tuple[Projection, ...]
    distinct: bool = False
    having: Expr | None = None
    order: tuple[OrderKey, ...] = ()
    offset: Expr | None = None
    limit: Expr | None = None


@dataclass(frozen=True, slots=True)
class ReadQuery:
    name: str
    params: tuple[Param, ...]
    stages: tuple[Stage, ...]


@dataclass(frozen=True, slots=True)
class Assignment:
    property: str
    value: Expr


@dataclass(frozen=True, slots=True)
class InsertNode:
    type_name: str
    assignments: tuple[Assignment, ...]


@dataclass(frozen=True, slots=True)
class InsertEdge:
    """`src` and `dst` are node ids or, for a node type with one key property, its key."""

    type_name: str
    src: Expr
    dst: Expr
    assignments: tuple[Assignment, ...]


class OnConflict(StrEnum):
    UPDATE = "update"  # set the given properties on the row that is there
    REPLACE = "replace"  # the new row takes the old one's place
    NOTHING = "nothing"  # keep what is there
    ERROR = "error"  # strict insert


@dataclass(frozen=True, slots=True)
class UpsertNode:
    """Insert by key, with a stated policy for a key that exists. `updates` is what UPDATE sets;
    empty means the assignments themselves."""

    type_name: str
    assignments: tuple[Assignment, ...]
    on_conflict: OnConflict
    updates: tuple[Assignment, ...] = ()


TARGET = "__target"
"""The variable under which a mutation's `where` speaks of the row at hand."""


@dataclass(frozen=True, slots=True)
class Update:
    """Values and predicate may use `Property(TARGET, …)`."""

    type_name: str
    assignments: tuple[Assignment, ...]
    where: Expr


@dataclass(frozen=True, slots=True)
class Delete:
    type_name: str
    where: Expr


Statement: TypeAlias = InsertNode | InsertEdge | UpsertNode | Update | Delete


@dataclass(frozen=True, slots=True)
class WriteQuery:
    name: str
    params: tuple[Param, ...]
    statements: tuple[Statement, ...]

    @property
    def deletes(self) -> bool:
        return isinstance(self.statements[0], Delete)


Query: TypeAlias = ReadQuery | WriteQuery


@dataclass(frozen=True, slots=True)
class ResultField:
    name: str
    type: ValueType
