"""Which names the rows of an operator carry, and in which order they were bound.

Guarantees: binding order is a function of the query text alone, never of the chosen join order, so
that it can break ties between rows the same way under every plan.
Deliberately absent: types of values; expressions carry those themselves.
"""

from __future__ import annotations

from collections.abc import Iterable

from omnigraph.ir.query import Direction, EdgeStep, Pattern, Traversal
from omnigraph.model.catalog import Catalog
from omnigraph.plan.operators import (
    Aggregate,
    Argument,
    Expand,
    Join,
    Match,
    Operator,
    Optional,
    Project,
    Scan,
    Unit,
)
from omnigraph.plan.trees import names_in


def bound_names(root: Operator) -> tuple[str, ...]:
    """The names that the rows of an operator carry."""
    match root:
        case Unit():
            return ()
        case Argument():
            return root.names
        case Scan():
            return (root.node.var,)
        case Match():
            return unique((*bound_names(root.input), *pattern_names(root)))
        case Expand():
            far = (root.node.var, *traversal_extras(root.traversal))
            return unique((*bound_names(root.input), *far))
        case Join():
            return unique((*bound_names(root.left), *bound_names(root.right)))
        case Optional():
            return unique((*bound_names(root.input), *root.binds))
        case Aggregate():
            return (*(k.name for k in root.keys), *(name for name, _ in root.aggregates))
        case Project():
            return tuple(c.name for c in root.columns)
        case _:
            return bound_names(root.input)


def pattern_names(match: Match) -> tuple[str, ...]:
    """What a logical match binds: nodes as written, then edges and hop counts as written."""
    nodes = tuple(node.var for node in match.nodes)
    extras = tuple(name for t in match.traversals for name in traversal_extras(t))
    return nodes + extras


def traversal_extras(traversal: Traversal) -> tuple[str, ...]:
    found = (traversal.edge_var, traversal.hops_var)
    return tuple(name for name in found if name is not None)


def names_of_pattern(pattern: Pattern) -> frozenset[str]:
    """Every name that a pattern speaks of, at any depth."""
    found: set[str] = {node.var for node in pattern.nodes}
    for traversal in pattern.traversals:
        found |= {traversal.src, traversal.dst, *traversal_extras(traversal)}
    for predicate in pattern.predicates:
        found |= names_in(predicate)
    for inner in (*pattern.negations, *pattern.optionals):
        found |= names_of_pattern(inner)
    return frozenset(found)


def endpoint_types(catalog: Catalog, traversal: Traversal, var: str) -> tuple[str, ...]:
    """The node types that a variable can have at its end of a traversal, in catalog order."""
    found: set[str] = set()
    for step in traversal.steps:
        near, far = step_types(catalog, step)
        if var == traversal.src:
            found |= near
        if var == traversal.dst:
            found |= far
    return tuple(node.name for node in catalog.nodes if node.name in found)


def step_types(catalog: Catalog, step: EdgeStep) -> tuple[frozenset[str], frozenset[str]]:
    """The node types at which a step can start, and at which it can end."""
    edge = catalog.edge(step.edge)
    if edge is None:
        return frozenset(), frozenset()
    out = (frozenset({edge.src_type}), frozenset({edge.dst_type}))
    match step.direction:
        case Direction.OUT:
            return out
        case Direction.IN:
            return out[1], out[0]
        case Direction.BOTH:
            both = out[0] | out[1]
            return both, both


def unique(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
