"""Peeling leaves off a pattern: variables that are only tested or counted become branches.

Guarantees: a pattern with its branches has the same matches per remaining row, as existence or as
number, as before; live names, names bound outside and the last variable stay.
Deliberately absent: when this is allowed. That depends on what is done with the rows, and is for
the rules to say.
"""

from __future__ import annotations

from dataclasses import replace

from omnigraph.ir.query import Traversal
from omnigraph.plan.boundnames import traversal_extras
from omnigraph.plan.estimate import Context
from omnigraph.plan.operators import Branch, Match, NodeVar, Reduction
from omnigraph.plan.trees import names_in

# What it costs to visit a node on its own, in edges of a pass over all of them.
_VISIT = 8.0


def peel(match: Match, live: frozenset[str], how: Reduction, context: Context) -> Match:
    """Turn every unused leaf into a branch, from the outside in, until none is left."""
    needed = live | set(match.bound)
    for predicate in match.predicates:
        needed |= names_in(predicate)
    needed |= _natural_root(match, needed, context)
    while leaves := _leaves(match, needed):
        # All leaves of a round at once: a chain shrinks from both ends, and its middle stays.
        for var in leaves:
            match = _fold(match, var, how)
    return _settle(match, needed, how, context)


def _natural_root(match: Match, needed: frozenset[str], context: Context) -> frozenset[str]:
    """Where little is visited on the way to everything else, if there is such a place."""
    if any(node.var in needed for node in match.nodes):
        return frozenset()
    costs = {node.var: _visited_from(node, match, context) for node in match.nodes}
    best = min(costs, key=costs.__getitem__, default=None)
    if best is None or costs[best] * _VISIT > _everything(match, context):
        return frozenset()
    return frozenset({best})


def _visited_from(root: NodeVar, match: Match, context: Context) -> float:
    """How many nodes a walk from this one over the pattern looks at."""
    kept = {root.var: context.node_rows(root)}
    visited = kept[root.var]
    waiting = [root.var]
    while waiting:
        near = waiting.pop()
        for traversal in _touching(match, near):
            node = _node(match, _other(traversal, near))
            if node.var in kept:
                continue
            reached = kept[near] * context.degree(traversal, traversal.dst == near, node)
            visited += reached
            kept[node.var] = reached * context.share(node)
            waiting.append(node.var)
    return visited


def _everything(match: Match, context: Context) -> float:
    """How many edges one pass over each traversal looks at."""
    steps = (step for traversal in match.traversals for step in traversal.steps)
    return float(sum(context.statistics.edge_rows(step.edge) for step in steps))


def _settle(match: Match, needed: frozenset[str], how: Reduction, context: Context) -> Match:
    """Of two variables that could each be the other's branch, keep the one with branches, or else
    the one with fewer rows."""
    if len(match.nodes) != 2 or len(match.traversals) != 1:
        return match
    free = [node for node in match.nodes if node.var not in needed]
    if not free or not _is_plain(match.traversals[0], needed):
        return match
    anchors = {branch.anchor for branch in match.branches}
    free.sort(key=lambda node: (node.var in anchors, -context.node_rows(node)))
    return _fold(match, free[0].var, how)


def _leaves(match: Match, needed: frozenset[str]) -> list[str]:
    """Free variables with a single plain traversal to a variable that has others besides."""
    found: list[str] = []
    for node in match.nodes:
        touching = _touching(match, node.var)
        if node.var in needed or len(touching) != 1 or not _is_plain(touching[0], needed):
            continue
        other = _other(touching[0], node.var)
        if other in needed or len(_touching(match, other)) > 1:
            found.append(node.var)
    return found


def _is_plain(traversal: Traversal, needed: frozenset[str]) -> bool:
    single = traversal.min_hops == 1 and traversal.max_hops == 1
    hidden = not needed & set(traversal_extras(traversal))
    return single and hidden and traversal.src != traversal.dst


def _touching(match: Match, var: str) -> list[Traversal]:
    return [t for t in match.traversals if var in (t.src, t.dst)]


def _other(traversal: Traversal, var: str) -> str:
    return traversal.src if traversal.dst == var else traversal.dst


def _fold(match: Match, var: str, how: Reduction) -> Match:
    (traversal,) = _touching(match, var)
    branch = Branch(
        traversal,
        reverse=traversal.src == var,
        node=_node(match, var),
        how=how,
        children=tuple(b for b in match.branches if b.anchor == var),
        edge_predicates=dict(match.edge_predicates).get(traversal.edge_var or "", ()),
    )
    return replace(
        match,
        nodes=tuple(node for node in match.nodes if node.var != var),
        traversals=tuple(t for t in match.traversals if t is not traversal),
        edge_predicates=tuple(e for e in match.edge_predicates if e[0] != traversal.edge_var),
        branches=(*(b for b in match.branches if b.anchor != var), branch),
    )


def _node(match: Match, var: str) -> NodeVar:
    return next(node for node in match.nodes if node.var == var)
