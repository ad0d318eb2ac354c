"""Drop the types that a variable cannot have where the traversals of its pattern put it.

A binding by interface or over any edge is a union of types; each type that goes is a table less.
"""

from __future__ import annotations

from dataclasses import replace

from omnigraph.plan.boundnames import endpoint_types
from omnigraph.plan.estimate import Context
from omnigraph.plan.operators import Match, NodeVar, Operator
from omnigraph.plan.trees import transform


def narrow_types(root: Operator, context: Context) -> Operator:
    def narrow(operator: Operator) -> Operator:
        if not isinstance(operator, Match):
            return operator
        nodes = tuple(_narrowed(node, operator, context) for node in operator.nodes)
        return replace(operator, nodes=nodes) if nodes != operator.nodes else operator

    return transform(root, narrow)


def _narrowed(node: NodeVar, match: Match, context: Context) -> NodeVar:
    types = node.types
    for traversal in match.traversals:
        if node.var in (traversal.src, traversal.dst):
            possible = set(endpoint_types(context.catalog, traversal, node.var))
            types = tuple(name for name in types if name in possible)
    return replace(node, types=types) if types != node.types else node
