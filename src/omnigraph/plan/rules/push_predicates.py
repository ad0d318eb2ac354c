"""Move each predicate into the match below it, and to its variable when it speaks of one alone.

There a scan can hand it to storage, and an expansion can test far ends before it makes rows.
"""

from __future__ import annotations

from dataclasses import replace

from omnigraph.ir.expr import Expr
from omnigraph.plan.estimate import Context
from omnigraph.plan.operators import Filter, Match, Operator
from omnigraph.plan.trees import names_in, transform


def push_predicates(root: Operator, context: Context) -> Operator:
    return transform(root, _push)


def _push(operator: Operator) -> Operator:
    if isinstance(operator, Filter) and isinstance(operator.input, Match):
        found = operator.input
        for predicate in operator.predicates:
            found = _place(found, predicate)
        return found
    return operator


def _place(match: Match, predicate: Expr) -> Match:
    names = names_in(predicate)
    if len(names) == 1:
        (name,) = names
        if any(node.var == name for node in match.nodes):
            nodes = tuple(
                replace(node, predicates=(*node.predicates, predicate))
                if node.var == name
                else node
                for node in match.nodes
            )
            return replace(match, nodes=nodes)
        if any(traversal.edge_var == name for traversal in match.traversals):
            return _on_edge(match, name, predicate)
    return replace(match, predicates=(*match.predicates, predicate))


def _on_edge(match: Match, name: str, predicate: Expr) -> Match:
    known = dict(match.edge_predicates)
    known[name] = (*known.get(name, ()), predicate)
    return replace(match, edge_predicates=tuple(known.items()))
