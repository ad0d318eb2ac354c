"""Walks of several hops as the query text has them, independent of the checker.

`from_text(query, text, catalog)` gives the IR of a read query again, in which the edges of every
walk of several hops, and the possible types of variables that such a walk binds, come from the
syntax tree and the rules of the reference alone. The oracle evaluates that, so that it sees an edge
type which the checker loses.

The rule: every hop walks any of the named edges. `<-` walks against the edges, `<…>` both ways.
Without a mark, an edge between nodes of one type leads from left to right; any other edge goes in
each direction that begins at a type of the left end or ends at one of the right end, or as it was
declared if there is none. Types of ends are known from bindings, from the pattern around, and from
clauses before.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from omnigraph.ir.query import Direction, EdgeStep, NodeBinding, Pattern, ReadQuery, Traversal
from omnigraph.lang import gq
from omnigraph.lang.gq import ast
from omnigraph.model.catalog import Catalog, EdgeType

Known = dict[str, set[str]]


def from_text(query: ReadQuery, text: str, catalog: Catalog) -> ReadQuery:
    """The query with its walks of several hops as the text says them."""
    (tree,) = [each for each in gq.parse(text).queries if each.name.text == query.name]
    assert isinstance(tree.body, ast.Read)
    known: Known = {}
    stages = []
    for stage, node in zip(query.stages, tree.body.stages, strict=True):
        clauses = node.match.clauses if node.match is not None else ()
        stages.append(replace(stage, pattern=_pattern(stage.pattern, clauses, known, catalog)))
        for projection in stage.projections:
            known.update(_carried(projection.name, projection.expr))
    return replace(query, stages=tuple(stages))


def _carried(name: str, expr: Any) -> Known:
    return {name: set(expr.types)} if hasattr(expr, "types") else {}


def _pattern(
    pattern: Pattern, clauses: Iterable[ast.Clause], outer: Known, catalog: Catalog
) -> Pattern:
    clauses = list(clauses)
    known = dict(outer)
    labels: Known = {}
    for clause in clauses:
        if isinstance(clause, ast.Binding):
            types = _labelled(clause.type.text, catalog)
            name = clause.var.text
            labels[name] = labels.get(name, types) & types
            known[name] = known.get(name, types) & types
    walked: set[str] = set()
    traversals = []
    nodes = [clause for clause in clauses if isinstance(clause, ast.Traversal)]
    for traversal, node in zip(pattern.traversals, nodes, strict=True):
        traversals.append(_traversal(traversal, node, known, walked, catalog))
        known.update(outer)  # what was bound outside is not narrowed
    bound: Known = {n.var: set(n.types) for n in pattern.nodes}
    every = {table.name for table in catalog.nodes}
    wider = tuple(
        NodeBinding(n.var, tuple(labels.get(n.var, every))) if n.var in walked else n
        for n in pattern.nodes
    )
    blocks = [c for c in clauses if isinstance(c, ast.Negation)]
    maybes = [c for c in clauses if isinstance(c, ast.Optional)]
    # What stands around a block is known to it as the checker has settled it.
    inside = {**outer, **bound}
    optionals = tuple(
        _pattern(inner, node.clauses, inside, catalog)
        for inner, node in zip(pattern.optionals, maybes, strict=True)
    )
    for each in pattern.optionals:
        inside.update({n.var: set(n.types) for n in each.nodes})
    return replace(
        pattern,
        nodes=wider,
        traversals=tuple(traversals),
        optionals=optionals,
        negations=tuple(
            _pattern(inner, node.clauses, inside, catalog)
            for inner, node in zip(pattern.negations, blocks, strict=True)
        ),
    )


def _labelled(name: str, catalog: Catalog) -> set[str]:
    if catalog.node(name) is not None:
        return {name}
    return {table.name for table in catalog.nodes if name in table.implements}


def _traversal(
    traversal: Traversal, node: ast.Traversal, known: Known, walked: set[str], catalog: Catalog
) -> Traversal:
    left, right = known.get(traversal.src), known.get(traversal.dst)
    several = node.bounds is not None and node.bounds[1] != 1
    edges = list(catalog.edges)
    if [name.text for name in node.edges] != ["_"]:
        edges = [edge for name in node.edges if (edge := catalog.edge(name.text)) is not None]
    hops = [
        (edge.name, way, *_ends(edge, way))
        for edge in edges
        for way in _directions(node, edge, left, right, several)
    ]
    if several:
        walked |= {traversal.src, traversal.dst}
        low, high = node.bounds or (1, 1)
        _learn(known, traversal, _pairs(hops, low, high, left))
        return replace(traversal, steps=tuple(EdgeStep(name, way) for name, way, _, _ in hops))
    _learn(known, traversal, {(src, dst) for _, _, src, dst in hops})
    return traversal


def _directions(
    node: ast.Traversal,
    edge: EdgeType,
    left: set[str] | None,
    right: set[str] | None,
    several: bool,
) -> list[Direction]:
    if node.direction == "reverse":
        return [Direction.IN]
    if edge.src_type == edge.dst_type:
        return [Direction.BOTH if node.direction == "both" else Direction.OUT]
    both = [Direction.OUT, Direction.IN]
    if node.direction == "both":
        return both
    if not several:
        return [Direction.OUT] if left is None and right is None else both
    fitting = []
    for way in both:
        src, dst = _ends(edge, way)
        if src in (left or ()) or dst in (right or ()):
            fitting.append(way)
    return fitting or [Direction.OUT]


def _ends(edge: EdgeType, way: Direction) -> tuple[str, str]:
    ends = (edge.src_type, edge.dst_type)
    return ends if way is not Direction.IN else (ends[1], ends[0])


def _pairs(
    hops: list[tuple[str, Direction, str, str]], low: int, high: int | None, left: set[str] | None
) -> set[tuple[str, str]]:
    """(first, last) type of everything that so many hops can connect."""
    starts = {src for _, _, src, _ in hops} if left is None else left
    reached = {(start, start) for start in starts}
    found: set[tuple[str, str]] = set()
    for hop in range(1, (low + 20 if high is None else high) + 1):
        reached = {(a, dst) for a, b in reached for _, _, src, dst in hops if src == b}
        if hop >= low:
            found |= reached
    return found


def _learn(known: Known, traversal: Traversal, pairs: set[tuple[str, str]]) -> None:
    left, right = known.get(traversal.src), known.get(traversal.dst)
    fitting = [
        (a, b) for a, b in pairs if (left is None or a in left) and (right is None or b in right)
    ]
    known[traversal.src] = {a for a, _ in fitting}
    known[traversal.dst] = {b for _, b in fitting}
