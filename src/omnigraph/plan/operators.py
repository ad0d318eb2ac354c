"""Plan operators: what to do, in which order, as frozen dataclasses.

A plan is a tree. Rows flow upwards; each row binds names (nodes, edges, values) and, once counts
are factorized, a weight that says how many plain rows it stands for.

Guarantees: a closed set (`Operator`); estimates ride along but take no part in equality, so that
"same plan" can be asserted; `Match` is logical and never survives planning.
Deliberately absent: how an operator runs, and anything that one engine alone would understand.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from omnigraph.ir.expr import Aggregate as AggregateExpr
from omnigraph.ir.expr import Expr, Score
from omnigraph.ir.query import OrderKey, Projection, Traversal

UNKNOWN_ROWS = -1.0


class Access(StrEnum):
    """How a scan finds its rows, or an expansion its neighbours."""

    SCAN = "scan"  # read the columns and test every row
    INDEX = "index"  # ask an index of the table
    KEY = "key"  # ask for rows by id
    ADJACENCY = "adjacency"  # neighbour lists over dense node numbers


class Reduction(StrEnum):
    """What a branch does to the rows of its anchor."""

    EXISTS = "exists"  # keep rows with at least one match
    ABSENT = "absent"  # keep rows without any
    COUNT = "count"  # multiply the weight by the number of matches


@dataclass(frozen=True, slots=True)
class NodeVar:
    """A node variable of a pattern: its possible types and the predicates on it alone."""

    var: str
    types: tuple[str, ...]
    predicates: tuple[Expr, ...] = ()
    key: Expr | None = None  # when set: the row's id, or the list of ids, is this


@dataclass(frozen=True, slots=True)
class Branch:
    """A part of a pattern that hangs on one variable and is only tested or counted.

    `reverse`: the anchor is the traversal's dst. `edge_predicates` speak of the edge variable.
    """

    traversal: Traversal
    reverse: bool
    node: NodeVar
    how: Reduction
    children: tuple[Branch, ...] = ()
    edge_predicates: tuple[Expr, ...] = ()

    @property
    def anchor(self) -> str:
        return self.traversal.dst if self.reverse else self.traversal.src


@dataclass(frozen=True, slots=True)
class Unit:
    """One row that binds nothing."""

    rows: float = field(default=1.0, compare=False)


@dataclass(frozen=True, slots=True)
class Argument:
    """The rows of the outer plan, inside a correlated one."""

    names: tuple[str, ...]
    rows: float = field(default=UNKNOWN_ROWS, compare=False)


@dataclass(frozen=True, slots=True)
class Match:
    """Logical: all that one pattern demands, in no order.

    `bound` are the names that the input binds already; their `NodeVar`s only carry predicates.
    """

    input: Operator
    bound: tuple[str, ...]
    nodes: tuple[NodeVar, ...]
    traversals: tuple[Traversal, ...]
    predicates: tuple[Expr, ...] = ()
    edge_predicates: tuple[tuple[str, tuple[Expr, ...]], ...] = ()
    branches: tuple[Branch, ...] = ()
    rows: float = field(default=UNKNOWN_ROWS, compare=False)


@dataclass(frozen=True, slots=True)
class Scan:
    node: NodeVar
    access: Access = Access.SCAN
    rows: float = field(default=UNKNOWN_ROWS, compare=False)


@dataclass(frozen=True, slots=True)
class Expand:
    """Walk a traversal from a bound variable to the other end.

    `reverse`: from dst to src. `into`: both ends are bound, and the row stays if they connect.
    `node` is the far end with its predicates, `edge_predicates` those of the edge variable.
    """

    input: Operator
    traversal: Traversal
    reverse: bool
    node: NodeVar
    into: bool = False
    edge_predicates: tuple[Expr, ...] = ()
    access: Access = Access.ADJACENCY
    rows: float = field(default=UNKNOWN_ROWS, compare=False)

    @property
    def source(self) -> str:
        return self.traversal.dst if self.reverse else self.traversal.src


@dataclass(frozen=True, slots=True)
class Reduce:
    """Apply a branch to the rows of its anchor: a semi-join, an anti-join or a weight."""

    input: Operator
    branch: Branch
    rows: float = field(default=UNKNOWN_ROWS, compare=False)


@dataclass(frozen=True, slots=True)
class Filter:
    input: Operator
    predicates: tuple[Expr, ...]
    rows: float = field(default=UNKNOWN_ROWS, compare=False)


@dataclass(frozen=True, slots=True)
class Join:
    """All pairs of rows whose keys are equal; all pairs when there are none. Null equals nothing.

    A key is (left expression, right expression).
    """

    left: Operator
    right: Operator
    keys: tuple[tuple[Expr, Expr], ...] = ()
    rows: float = field(default=UNKNOWN_ROWS, compare=False)


@dataclass(frozen=True, slots=True)
class Exists:
    """Keep the rows for which the correlated plan yields a row; or, negated, none."""

    input: Operator
    plan: Operator
    shared: tuple[str, ...]
    negated: bool
    rows: float = field(default=UNKNOWN_ROWS, compare=False)


@dataclass(frozen=True, slots=True)
class Optional:
    """Extend rows by the matches of the correlated plan, or by nulls where there are none."""

    input: Operator
    plan: Operator
    shared: tuple[str, ...]
    binds: tuple[str, ...]
    rows: float = field(default=UNKNOWN_ROWS, compare=False)


@dataclass(frozen=True, slots=True)
class Search:
    """Add score columns. `keep`: only this many best rows of the one score are needed."""

    input: Operator
    scores: tuple[Score, ...]
    keep: Expr | None = None
    rows: float = field(default=UNKNOWN_ROWS, compare=False)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One row per distinct key, in key order; exactly one row when there are no keys."""

    input: Operator
    keys: tuple[Projection, ...]
    aggregates: tuple[tuple[str, AggregateExpr], ...]
    rows: float = field(default=UNKNOWN_ROWS, compare=False)


@dataclass(frozen=True, slots=True)
class Project:
    """Replace all names by these. A bound node stays a bound node under its new name."""

    input: Operator
    columns: tuple[Projection, ...]
    rows: float = field(default=UNKNOWN_ROWS, compare=False)


@dataclass(frozen=True, slots=True)
class Distinct:
    input: Operator
    rows: float = field(default=UNKNOWN_ROWS, compare=False)


@dataclass(frozen=True, slots=True)
class Sort:
    """Order by the keys, then by `ties` ascending (nodes and edges by id)."""

    input: Operator
    keys: tuple[OrderKey, ...]
    ties: tuple[str, ...]
    rows: float = field(default=UNKNOWN_ROWS, compare=False)


@dataclass(frozen=True, slots=True)
class TopK:
    """Sort and Limit in one, without sorting what is not returned."""

    input: Operator
    keys: tuple[OrderKey, ...]
    ties: tuple[str, ...]
    offset: Expr | None
    limit: Expr
    rows: float = field(default=UNKNOWN_ROWS, compare=False)


@dataclass(frozen=True, slots=True)
class Limit:
    input: Operator
    offset: Expr | None
    limit: Expr | None
    rows: float = field(default=UNKNOWN_ROWS, compare=False)


Operator: TypeAlias = (
    Unit
    | Argument
    | Match
    | Scan
    | Expand
    | Reduce
    | Filter
    | Join
    | Exists
    | Optional
    | Search
    | Aggregate
    | Project
    | Distinct
    | Sort
    | TopK
    | Limit
)
