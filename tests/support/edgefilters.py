"""Queries whose traversals see only some edges, by the IR's filter of a step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from omnigraph.ir.expr import Expr, Property
from omnigraph.ir.fold import replace_parts
from omnigraph.ir.query import EDGE, EdgeStep, Pattern, ReadQuery, Traversal
from omnigraph.lang import gq
from omnigraph.model.catalog import Catalog


def edge_filter(catalog: Catalog, edge: str, text: str) -> tuple[Expr, ...]:
    """The predicates of a condition on `$e`, such as `$e.since > 2010`."""
    found = catalog.edge(edge)
    assert found is not None
    name = edge[0].lower() + edge[1:]
    query = gq.compile_query(
        f"query q() {{ match {{ $a: {found.src_type} $b: {found.dst_type} "
        f"$a $e:{name} $b {text} }} return {{ $a as a }} }}",
        catalog,
    ).query
    assert isinstance(query, ReadQuery)
    return tuple(replace_parts(p, _renamed) for p in query.stages[0].pattern.predicates)


def _renamed(part: Expr) -> Expr | None:
    return replace(part, var=EDGE) if isinstance(part, Property) and part.var == "e" else None


def with_edge_filters(
    query: ReadQuery, catalog: Catalog, filters: Mapping[str, str] | None
) -> ReadQuery:
    """The query with these conditions by edge type in all of its traversals."""
    if not filters:
        return query
    compiled = {edge: edge_filter(catalog, edge, text) for edge, text in filters.items()}
    stages = tuple(replace(s, pattern=_pattern(s.pattern, compiled)) for s in query.stages)
    return replace(query, stages=stages)


def _pattern(pattern: Pattern, filters: Mapping[str, tuple[Expr, ...]]) -> Pattern:
    return replace(
        pattern,
        traversals=tuple(_traversal(t, filters) for t in pattern.traversals),
        negations=tuple(_pattern(p, filters) for p in pattern.negations),
        optionals=tuple(_pattern(p, filters) for p in pattern.optionals),
    )


def _traversal(traversal: Traversal, filters: Mapping[str, tuple[Expr, ...]]) -> Traversal:
    def step(each: EdgeStep) -> EdgeStep:
        return replace(each, where=filters.get(each.edge, ()))

    return replace(traversal, steps=tuple(step(each) for each in traversal.steps))
