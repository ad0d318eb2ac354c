"""Test for existence instead of listing matches.

- A negation that hangs on one variable becomes an anti-join: the set of nodes that match is found
  once, over node numbers, and never as a list of ids.
- Where repeats do not matter (distinct rows; only min, max and distinct aggregates), variables that
  are not used become semi-joins.
"""

from __future__ import annotations

from dataclasses import replace

from omnigraph.plan.boundnames import endpoint_types
from omnigraph.plan.estimate import Context
from omnigraph.plan.leaves import peel
from omnigraph.plan.liveness import (
    distinct_project,
    ignores_repeats,
    live_above,
    match_below,
    replace_match,
)
from omnigraph.plan.operators import (
    Aggregate,
    Branch,
    Distinct,
    Exists,
    Match,
    Operator,
    Reduce,
    Reduction,
)
from omnigraph.plan.trees import transform


def reduce_semi_joins(root: Operator, context: Context) -> Operator:
    def reduce(operator: Operator) -> Operator:
        if isinstance(operator, Exists):
            return _as_branch(operator, context)
        if isinstance(operator, Aggregate):
            return _without_repeats(operator, context)
        project = distinct_project(operator)
        if project is not None and match_below(project.input) is not None:
            return Distinct(_peeled(project, live_above(project), context))
        return operator

    return transform(root, reduce)


def _without_repeats(operator: Aggregate, context: Context) -> Operator:
    if match_below(operator.input) is None:
        return operator
    if not all(ignores_repeats(call) for _, call in operator.aggregates):
        return operator
    return _peeled(operator, live_above(operator), context)


def _peeled(operator: Operator, live: frozenset[str], context: Context) -> Operator:
    return replace_match(operator, lambda match: peel(match, live, Reduction.EXISTS, context))


def _as_branch(operator: Exists, context: Context) -> Operator:
    """A correlated test on one variable as a branch, pushed into the match if that is next."""
    branch = _branch_of(operator, context)
    if branch is None:
        return operator
    if isinstance(operator.input, Match) and _binds(operator.input, branch.anchor):
        return replace(operator.input, branches=(*operator.input.branches, branch))
    return Reduce(operator.input, branch)


def _binds(match: Match, var: str) -> bool:
    return any(node.var == var for node in match.nodes)


def _branch_of(operator: Exists, context: Context) -> Branch | None:
    if len(operator.shared) != 1 or not isinstance(operator.plan, Match):
        return None
    (anchor,) = operator.shared
    if not _binds(operator.plan, anchor):
        return None
    inner = peel(operator.plan, frozenset({anchor}), Reduction.EXISTS, context)
    if inner.traversals or inner.predicates or len(inner.nodes) != 1 or len(inner.branches) != 1:
        return None
    (node,), (branch,) = inner.nodes, inner.branches
    near = set(endpoint_types(context.catalog, branch.traversal, anchor))
    if node.predicates or node.key is not None or not near <= set(node.types):
        return None
    return replace(branch, how=Reduction.ABSENT if operator.negated else Reduction.EXISTS)
