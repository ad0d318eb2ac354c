"""Cardinality estimates of operators: rough, cheap and deterministic.

Guarantees: estimates depend on the expression, the catalog and the statistics alone.
Deliberately absent: histograms. What is wrong here is seen in `plantext`, where estimates stand
beside actuals, and in the log.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from omnigraph.ir.expr import (
    And,
    Compare,
    CompareOp,
    Expr,
    In,
    IsNull,
    ListContains,
    Literal,
    Not,
    Or,
    Property,
    StringOp,
    StringTest,
    TextMatch,
)
from omnigraph.ir.query import Direction, EdgeStep, Traversal
from omnigraph.model.catalog import Catalog, NodeType
from omnigraph.model.types import Kind
from omnigraph.plan.boundnames import step_types
from omnigraph.plan.operators import (
    Aggregate,
    Branch,
    Distinct,
    Exists,
    Filter,
    Join,
    Limit,
    NodeVar,
    Operator,
    Optional,
    Project,
    Reduce,
    Reduction,
    Search,
    Sort,
    TopK,
)
from omnigraph.plan.statistics import Statistics
from omnigraph.plan.trees import names_in

EQUAL = 0.1
INDEXED = 0.01  # who asks for an index expects few rows
RANGE = 0.3
NULL = 0.1
TEXT = 0.05
PREFIX = 0.05
SUBSTRING = 0.1
OTHER = 0.5
LIST_LENGTH = 5
UNBOUNDED_HOPS = 6


@dataclass(frozen=True)
class Context:
    """What every rule may look at."""

    catalog: Catalog
    statistics: Statistics

    def node_rows(self, node: NodeVar) -> float:
        """Rows of a variable after its own predicates."""
        rows = float(self.statistics.node_rows(node.types))
        if node.key is not None:
            many = node.key.type.kind is Kind.LIST
            rows = min(rows, float(LIST_LENGTH * len(node.types) if many else len(node.types)))
        return rows * self.all_of(node.predicates, node.types)

    def share(self, node: NodeVar) -> float:
        """The share of its types' nodes that a variable may stand for."""
        return self.node_rows(node) / max(1.0, float(self.statistics.node_rows(node.types)))

    def all_of(self, predicates: tuple[Expr, ...], types: tuple[str, ...]) -> float:
        found = 1.0
        for predicate in predicates:
            found *= self.selectivity(predicate, types)
        return found

    def selectivity(self, expr: Expr, types: tuple[str, ...] = ()) -> float:
        """The share of rows for which a predicate holds."""
        match expr:
            case And() | Or() | Not():
                return self._connective(expr, types)
            case Compare():
                return self._comparison(expr, types)
            case In():
                return min(1.0, self._equality(expr.item, types) * _length(expr.options))
            case IsNull():
                return 1.0 - NULL if expr.negated else NULL
            case StringTest():
                return PREFIX if expr.op is StringOp.STARTS_WITH else SUBSTRING
            case TextMatch():
                return TEXT
            case ListContains():
                return EQUAL
            case _:
                return OTHER

    def _connective(self, expr: And | Or | Not, types: tuple[str, ...]) -> float:
        if isinstance(expr, Not):
            return 1.0 - self.selectivity(expr.item, types)
        if isinstance(expr, And):
            return self.all_of(expr.items, types)
        misses = 1.0
        for item in expr.items:
            misses *= 1.0 - self.selectivity(item, types)
        return 1.0 - misses

    def _comparison(self, expr: Compare, types: tuple[str, ...]) -> float:
        if expr.op in (CompareOp.EQ, CompareOp.NE):
            equal = min(self._equality(expr.left, types), self._equality(expr.right, types))
            return equal if expr.op is CompareOp.EQ else 1.0 - equal
        return RANGE

    def _equality(self, expr: Expr, types: tuple[str, ...]) -> float:
        """The share of rows in which a property has one given value."""
        if not isinstance(expr, Property):
            return EQUAL if names_in(expr) else 1.0
        if self._is_unique(expr.name, types):
            return 1.0 / max(1.0, float(self.statistics.node_rows(types)))
        if expr.type.enum:
            return 1.0 / len(expr.type.enum)
        if types and self.statistics.has_index(types, expr.name):
            return INDEXED
        return OTHER if expr.type.kind is Kind.BOOL else EQUAL

    def _is_unique(self, name: str, types: tuple[str, ...]) -> bool:
        tables = [self.catalog.node(type_name) for type_name in types]
        return bool(tables) and all(t is not None and _unique_in(t, name) for t in tables)

    def degree(self, traversal: Traversal, reverse: bool, node: NodeVar) -> float:
        """Far ends of acceptable type per near end, over all hops."""
        fan_out = 0.0
        for step in traversal.steps:
            fan_out += self._step_degree(turned(step) if reverse else step)
        most = max(1.0, float(self.statistics.node_rows(node.types)))
        hops = traversal.max_hops if traversal.max_hops is not None else UNBOUNDED_HOPS
        if hops == 1:
            return min(fan_out, most) if traversal.edge_var is None else fan_out
        return min(most, sum(min(most, fan_out**hop) for hop in range(1, hops + 1)))

    def _step_degree(self, step: EdgeStep) -> float:
        near, _ = step_types(self.catalog, step)
        edge = self.catalog.edge(step.edge)
        rows = self.statistics.edge_rows(edge.name) if edge is not None else 0
        sides = 2 if step.direction is Direction.BOTH else 1
        return sides * rows / max(1.0, float(self.statistics.node_rows(near)))

    def branch_factor(self, branch: Branch) -> float:
        """The share of anchor rows that a branch lets through."""
        matches = self.degree(branch.traversal, branch.reverse, branch.node)
        matches *= self.share(branch.node)
        for child in branch.children:
            matches *= self.branch_factor(child)
        kept = min(1.0, matches)
        return max(0.1, 1.0 - kept) if branch.how is Reduction.ABSENT else kept


def with_rows(operator: Operator, context: Context) -> Operator:
    """The same operator with an estimate, from those of its inputs."""
    rows = _rows(operator, context)
    return operator if rows is None else replace(operator, rows=rows)


def _rows(operator: Operator, context: Context) -> float | None:
    match operator:
        case Filter():
            return operator.input.rows * context.all_of(operator.predicates, ())
        case Exists():
            return operator.input.rows * OTHER
        case Optional():
            return max(operator.input.rows, operator.plan.rows)
        case Reduce():
            return operator.input.rows * context.branch_factor(operator.branch)
        case Aggregate():
            return 1.0 if not operator.keys else max(1.0, operator.input.rows * EQUAL)
        case Join():
            return operator.left.rows * operator.right.rows * EQUAL ** len(operator.keys)
        case TopK(limit=limit) | Limit(limit=limit):
            return min(operator.input.rows, _constant(limit))
        case Project() | Distinct() | Sort() | Search():
            return operator.input.rows
        case _:
            return None


def _constant(limit: Expr | None) -> float:
    known = isinstance(limit, Literal) and isinstance(limit.value, int)
    return float(limit.value) if known and isinstance(limit, Literal) else float("inf")


def turned(step: EdgeStep) -> EdgeStep:
    """The same step, walked from its far end."""
    other = {Direction.OUT: Direction.IN, Direction.IN: Direction.OUT}
    return EdgeStep(step.edge, other.get(step.direction, step.direction))


def _unique_in(table: NodeType, name: str) -> bool:
    return name == "id" or (name,) == table.key or (name,) in table.uniques


def _length(options: Expr) -> float:
    if isinstance(options, Literal) and isinstance(options.value, list | tuple):
        return float(len(options.value))
    return float(LIST_LENGTH)
