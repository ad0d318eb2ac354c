"""Choose how rows are found: by id, through an index, by reading; by adjacency or edge by edge.

An engine that already holds a table's adjacency or columns in memory may use those instead; this
rule says what to do when it holds nothing.
"""

from __future__ import annotations

from dataclasses import replace

from omnigraph.ir.expr import Compare, CompareOp, Expr, In, Property, StringOp, StringTest
from omnigraph.plan.estimate import UNBOUNDED_HOPS, Context
from omnigraph.plan.operators import Access, Expand, NodeVar, Operator, Scan
from omnigraph.plan.trees import names_in, transform

# An index probe pays off when it leaves less than this share of the table.
_SELECTIVE = 0.05
# What one edge costs when adjacency is built, against one key of an index probe.
_EDGES_PER_PROBE = 200.0
_SMALL_TABLE = 50_000


def choose_access(root: Operator, context: Context) -> Operator:
    def choose(operator: Operator) -> Operator:
        if isinstance(operator, Scan):
            return replace(operator, access=_scan_access(operator.node, context))
        if isinstance(operator, Expand):
            return replace(operator, access=_expand_access(operator, context))
        return operator

    return transform(root, choose)


def _scan_access(node: NodeVar, context: Context) -> Access:
    if node.key is not None:
        return Access.KEY
    for predicate in node.predicates:
        name = _probed(predicate)
        if name is None or not context.statistics.has_index(node.types, name):
            continue
        if context.selectivity(predicate, node.types) <= _SELECTIVE:
            return Access.INDEX
    return Access.SCAN


def _probed(predicate: Expr) -> str | None:
    """The property that an ordered index could answer this predicate on."""
    match predicate:
        case Compare(op=op) if op is not CompareOp.NE:
            for here, there in (
                (predicate.left, predicate.right),
                (predicate.right, predicate.left),
            ):
                if isinstance(here, Property) and not names_in(there):
                    return here.name
        case In(item=Property() as item) if not names_in(predicate.options):
            return item.name
        case StringTest(op=StringOp.STARTS_WITH, left=Property() as left, ignore_case=False):
            return left.name
    return None


def _expand_access(operator: Expand, context: Context) -> Access:
    edges = 0
    for step in operator.traversal.steps:
        edge = context.catalog.edge(step.edge)
        if edge is None or not context.statistics.has_index((edge.name,), "src"):
            return Access.ADJACENCY
        edges += context.statistics.edge_rows(edge.name)
    hops = operator.traversal.max_hops or UNBOUNDED_HOPS
    probes = max(1.0, operator.input.rows) * hops
    if hops > 1:
        probes *= max(1.0, context.degree(operator.traversal, operator.reverse, operator.node))
    cheap = edges > _SMALL_TABLE and probes * _EDGES_PER_PROBE < edges
    return Access.INDEX if cheap else Access.ADJACENCY
