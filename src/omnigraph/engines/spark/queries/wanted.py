"""The properties of each variable that a plan uses after binding it.

Guarantees: nothing is missing; a variable that goes on under another name wants what that one does.
Deliberately absent: conditions on one variable alone. They are tested where its rows are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from omnigraph.engines.expressions.evaluate import is_constant
from omnigraph.engines.expressions.shapes import TYPE_FIELD, object_fields, tables_of
from omnigraph.engines.spark.queries.columnnames import Field
from omnigraph.ir.expr import (
    Entity,
    Expr,
    Fuse,
    Property,
    RankOf,
    Score,
    TextMatch,
    TextScore,
    VectorScore,
)
from omnigraph.ir.fold import contains, parts
from omnigraph.ir.query import Projection
from omnigraph.model.catalog import ID_COLUMN, Catalog
from omnigraph.plan import operators as op
from omnigraph.plan.operators import Operator
from omnigraph.plan.trees import operators

_SEARCHES = (TextMatch, TextScore, VectorScore, Fuse, RankOf)

Wanted = Mapping[str, Sequence[Field]]


def wanted_fields(root: Operator, returned: tuple[Projection, ...], catalog: Catalog) -> Wanted:
    """By variable, without ids, which are always there."""
    found: dict[str, dict[Field, None]] = {}
    names: list[tuple[str, str]] = []
    for operator in operators(root):
        for var, field in _looked_at(operator):
            found.setdefault(var, {})[field] = None
        names += _renames(operator)
    for item in returned:
        for var, field in _of_result(item.expr, catalog):
            found.setdefault(var, {})[field] = None
    _share(found, names)
    return {var: [f for f in fields if f[0] != ID_COLUMN] for var, fields in found.items()}


def late_predicates(predicates: Iterable[Expr]) -> tuple[Expr, ...]:
    """The conditions that need a text search in addition to the row."""
    return tuple(p for p in predicates if contains(p, TextMatch))


def _looked_at(operator: Operator) -> Iterator[tuple[str, Field]]:
    for expr in _expressions(operator):
        yield from _properties(expr)


def _expressions(operator: Operator) -> Iterator[Expr]:
    match operator:
        case op.Scan() | op.Expand():
            yield from late_predicates(operator.node.predicates)
        case op.Reduce():
            yield from _of_branch(operator.branch)
        case op.Filter():
            yield from operator.predicates
        case op.Join():
            yield from (side for pair in operator.keys for side in pair)
        case op.Search():
            yield from (part for score in operator.scores for part in _of_score(score))
        case _:
            yield from _shaped(operator)


def _shaped(operator: Operator) -> Iterator[Expr]:
    match operator:
        case op.Aggregate():
            yield from (key.expr for key in operator.keys)
            yield from (call.arg for _, call in operator.aggregates if call.arg is not None)
        case op.Project():
            yield from (item.expr for item in operator.columns)
        case op.Sort() | op.TopK():
            yield from (key.expr for key in operator.keys)
        case _:
            return


def _of_branch(branch: op.Branch) -> Iterator[Expr]:
    yield from late_predicates(branch.node.predicates)
    for child in branch.children:
        yield from _of_branch(child)


def _of_score(score: Score) -> Iterator[Expr]:
    """What a search compares row by row; rankings by a constant are found by id."""
    if isinstance(score, Fuse):
        for part in score.rankings:
            yield from _of_score(part)
    elif isinstance(score, RankOf):
        yield from _of_score(score.of)
    elif isinstance(score, VectorScore) and not is_constant(score.query):
        yield score.property
        yield score.query


def _properties(expr: Expr) -> Iterator[tuple[str, Field]]:
    for part in parts(expr, lambda e: not isinstance(e, _SEARCHES)):
        if isinstance(part, Property):
            yield part.var, (part.name, None)


def _of_result(expr: Expr, catalog: Catalog) -> Iterator[tuple[str, Field]]:
    yield from _properties(expr)
    if isinstance(expr, Entity):
        for item in object_fields(tables_of(expr, catalog)):
            if item.source != TYPE_FIELD:
                yield expr.var, (item.source, item.only)


def _renames(operator: Operator) -> Iterator[tuple[str, str]]:
    if isinstance(operator, op.Project):
        columns: tuple[Projection, ...] = operator.columns
    elif isinstance(operator, op.Aggregate):
        columns = operator.keys
    else:
        return
    for item in columns:
        if isinstance(item.expr, Entity) and item.expr.var != item.name:
            yield item.expr.var, item.name


def _share(found: dict[str, dict[Field, None]], names: list[tuple[str, str]]) -> None:
    """Hand what a new name wants back to the old one, through any number of stages."""
    for old, new in reversed(names):
        found.setdefault(old, {}).update(found.get(new, {}))
