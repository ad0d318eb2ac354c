"""Lay a pattern out as a chain of scans and expansions, the most selective first.

Every variable is tried as the start of its component; from there the cheapest next step is taken,
tests before steps. The start with the smallest sum of intermediate rows wins, the earlier one on a
tie. Components without a common variable are joined, by equality where a predicate gives one.

A long result is sorted by its leading variable first. A chain that starts there can be sorted and
returned in parts, so every other start is charged for the sort of all rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from omnigraph.ir.expr import Compare, CompareOp, Expr
from omnigraph.ir.query import Traversal
from omnigraph.plan.boundnames import traversal_extras
from omnigraph.plan.estimate import EQUAL, Context, with_rows
from omnigraph.plan.operators import (
    Argument,
    Branch,
    Exists,
    Expand,
    Filter,
    Join,
    Match,
    NodeVar,
    Operator,
    Optional,
    Project,
    Reduce,
    Scan,
    Sort,
    Unit,
)
from omnigraph.plan.trees import names_in

# Below this many rows, sorting all of them costs less than taking them in parts.
LONG_RESULT = 20_000.0


def order_joins(root: Operator, context: Context) -> Operator:
    return _ordered(root, 1.0, context, _lead(root))


def _lead(root: Operator) -> str | None:
    """The variable by which the returned rows are sorted first, if there is one."""
    if isinstance(root, Project):
        root = root.input
    if not isinstance(root, Sort) or not root.ties:
        return None
    names = {name for key in root.keys for name in names_in(key.expr)}
    return root.ties[0] if names <= {root.ties[0]} else None


def _ordered(
    operator: Operator, outer: float, context: Context, lead: str | None = None
) -> Operator:
    """Inputs first, so that a match knows how many rows come in; `outer` counts the rows of the
    plan around a correlated one."""
    if isinstance(operator, Argument):
        return replace(operator, rows=outer)
    if isinstance(operator, Join):
        left, right = (_ordered(side, outer, context) for side in (operator.left, operator.right))
        return with_rows(replace(operator, left=left, right=right), context)
    if isinstance(operator, Unit | Scan):
        return operator
    source = _ordered(operator.input, outer, context, lead)
    if isinstance(operator, Match):
        return _lower(replace(operator, input=source), context, lead)
    if isinstance(operator, Exists | Optional):
        inner = _ordered(operator.plan, source.rows, context)
        return with_rows(replace(operator, input=source, plan=inner), context)
    return with_rows(replace(operator, input=source), context)


@dataclass(frozen=True)
class _Chain:
    """A plan under construction: what it binds, what it still has to do, what it has cost."""

    plan: Operator
    bound: frozenset[str]
    predicates: tuple[Expr, ...]
    rows: float
    cost: float


def _lower(match: Match, context: Context, lead: str | None) -> Operator:
    parts = _components(match)
    if len(parts) > 1:
        lead = None  # joined rows are sorted after the join
    chains = [_best_chain(part, match, context, lead) for part in parts]
    chain = chains[0]
    for other in sorted(chains[1:], key=lambda c: c.rows):
        chain = _joined(chain, other, context)
    assert not chain.predicates, "every predicate of a match speaks of names that it binds"
    return chain.plan


def _components(match: Match) -> list[tuple[NodeVar, ...]]:
    """Node variables by connection; what the input binds is one component and comes first."""
    groups: list[set[str]] = [set(match.bound)]
    for node in match.nodes:
        touched = {node.var}
        for traversal in match.traversals:
            if node.var in (traversal.src, traversal.dst):
                touched |= {traversal.src, traversal.dst}
        merged = touched.union(*(g for g in groups if g & touched))
        keep = [g for g in groups if not g & touched]
        first = bool(groups[0] & touched)
        groups = [merged, *keep] if first else [*keep, merged]
    parts = [tuple(n for n in match.nodes if n.var in group) for group in groups]
    if not match.bound and isinstance(match.input, Unit) and len(parts) > 1:
        parts = [part for part in parts if part]
    return parts


def _best_chain(
    nodes: tuple[NodeVar, ...], match: Match, context: Context, lead: str | None
) -> _Chain:
    outside = frozenset(match.bound)
    if not nodes or any(node.var in outside for node in nodes):
        rows = max(1.0, match.input.rows)
        base = _Chain(match.input, outside, match.predicates, rows, 0.0)
        for node in nodes:
            if node.var in outside and node.predicates:
                base = _filtered(base, node.predicates, context)
        return _grow(base, nodes, match, context)
    candidates = [_grow(_scanned(n, match, context), nodes, match, context) for n in nodes]
    best = min(candidates, key=lambda c: c.cost)
    if best.rows < LONG_RESULT:
        return best
    leading = [c for node, c in zip(nodes, candidates, strict=True) if node.var == lead]
    return min([*leading, best], key=lambda c: c.cost + (0.0 if c in leading else c.rows))


def _scanned(node: NodeVar, match: Match, context: Context) -> _Chain:
    rows = context.node_rows(node)
    return _Chain(Scan(node, rows=rows), frozenset({node.var}), match.predicates, rows, rows)


def _grow(chain: _Chain, nodes: tuple[NodeVar, ...], match: Match, context: Context) -> _Chain:
    names = {node.var for node in nodes}
    traversals = [t for t in match.traversals if t.src in names or t.dst in names]
    branches = [b for b in match.branches if b.anchor in names]
    by_name = {node.var: node for node in match.nodes}
    while True:
        chain = _tested(chain, branches, context)
        steps = [
            _step(chain, traversal, reverse, by_name, match, context)
            for traversal in traversals
            for reverse in (False, True)
            if _start(traversal, reverse) in chain.bound
        ]
        if not steps:
            return chain
        chain, done = min(steps, key=lambda step: step[0].rows)
        traversals.remove(done)


def _tested(chain: _Chain, branches: list[Branch], context: Context) -> _Chain:
    """Apply every predicate and branch that has become ready."""
    ready = tuple(p for p in chain.predicates if names_in(p) <= chain.bound)
    if ready:
        chain = _filtered(chain, ready, context)
    for branch in [b for b in branches if b.anchor in chain.bound]:
        branches.remove(branch)
        rows = chain.rows * context.branch_factor(branch)
        chain = replace(chain, plan=Reduce(chain.plan, branch, rows=rows), rows=rows)
    return chain


def _filtered(chain: _Chain, predicates: tuple[Expr, ...], context: Context) -> _Chain:
    rows = chain.rows * context.all_of(predicates, ())
    done = {id(p) for p in predicates}
    left = tuple(p for p in chain.predicates if id(p) not in done)
    return replace(chain, plan=Filter(chain.plan, predicates, rows), predicates=left, rows=rows)


def _start(traversal: Traversal, reverse: bool) -> str:
    return traversal.dst if reverse else traversal.src


def _step(
    chain: _Chain,
    traversal: Traversal,
    reverse: bool,
    nodes: dict[str, NodeVar],
    match: Match,
    context: Context,
) -> tuple[_Chain, Traversal]:
    far = nodes[_start(traversal, not reverse)]
    into = far.var in chain.bound
    degree = context.degree(traversal, reverse, far)
    if into:
        total = max(1.0, float(context.statistics.node_rows(far.types)))
        rows = chain.rows * min(1.0, degree / total)
        node = replace(far, predicates=(), key=None)
    else:
        node = far
        rows = chain.rows * degree * _share(far, context)
    predicates = dict(match.edge_predicates).get(traversal.edge_var or "", ())
    rows *= context.all_of(predicates, ())
    plan = Expand(chain.plan, traversal, reverse, node, into, predicates, rows=rows)
    bound = chain.bound | {far.var, *traversal_extras(traversal)}
    grown = _Chain(plan, bound, chain.predicates, rows, chain.cost + rows)
    return grown, traversal


def _share(node: NodeVar, context: Context) -> float:
    """The share of far ends that a variable's own predicates let through."""
    total = float(context.statistics.node_rows(node.types))
    return context.node_rows(node) / total if total else 1.0


def _joined(left: _Chain, right: _Chain, context: Context) -> _Chain:
    keys: list[tuple[Expr, Expr]] = []
    used: list[Expr] = []
    for predicate in left.predicates:
        key = _join_key(predicate, left.bound, right.bound)
        if key is not None:
            keys.append(key)
            used.append(predicate)
    rows = left.rows * right.rows * EQUAL ** len(keys)
    closed = {id(p) for p in used}
    there = {id(p) for p in right.predicates} - closed
    open_left = tuple(p for p in left.predicates if id(p) in there)
    plan: Operator
    if isinstance(left.plan, Unit):
        plan = right.plan
    else:
        plan = Join(left.plan, right.plan, tuple(keys), rows)
    chain = _Chain(plan, left.bound | right.bound, open_left, rows, left.cost + right.cost + rows)
    return _tested(chain, [], context)


def _join_key(
    predicate: Expr, left: frozenset[str], right: frozenset[str]
) -> tuple[Expr, Expr] | None:
    if not isinstance(predicate, Compare) or predicate.op is not CompareOp.EQ:
        return None
    if predicate.left.type.kind is not predicate.right.type.kind:
        return None
    for here, there in ((predicate.left, predicate.right), (predicate.right, predicate.left)):
        ours, theirs = names_in(here), names_in(there)
        if ours and theirs and ours <= left and theirs <= right:
            return here, there
    return None
