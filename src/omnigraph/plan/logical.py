"""Translates the IR of a read query to a logical plan, without optimization.

Guarantees: the plan means what the query means, whatever the rules do to it later; predicates sit
above their match, aliases are resolved, rows are in total order (`Sort` with its ties) wherever
order can be seen.
Deliberately absent: every choice. The rules make those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from omnigraph.ir.expr import Aggregate as AggregateExpr
from omnigraph.ir.expr import (
    AggregateFn,
    Entity,
    Expr,
    Fuse,
    IsNull,
    Property,
    Score,
    TextScore,
    ValueRef,
    VectorScore,
)
from omnigraph.ir.fold import parts, replace_parts
from omnigraph.ir.query import OrderKey, Pattern, Projection, ReadQuery, Stage
from omnigraph.model.catalog import Catalog
from omnigraph.plan.boundnames import (
    bound_names,
    endpoint_types,
    names_of_pattern,
)
from omnigraph.plan.operators import (
    Aggregate,
    Argument,
    Distinct,
    Exists,
    Filter,
    Limit,
    Match,
    NodeVar,
    Operator,
    Optional,
    Project,
    Search,
    Sort,
    Unit,
)
from omnigraph.plan.trees import (
    conjuncts,
    has_aggregate,
    names_in,
    scores_in,
    without_repeats,
)


def build(query: ReadQuery, catalog: Catalog) -> Operator:
    """The logical plan of a query."""
    root: Operator = Unit()
    for stage in query.stages:
        root = _stage(stage, root, catalog)
    return root


def _stage(stage: Stage, source: Operator, catalog: Catalog) -> Operator:
    columns = _resolve_aliases(stage.projections)
    aliases = {column.name: column.expr for column in columns}
    having = _inline(stage.having, aliases) if stage.having is not None else None
    order = tuple(OrderKey(_inline(k.expr, aliases), k.descending) for k in stage.order)
    matched = _pattern(stage.pattern, source, catalog)
    wanted = [*(c.expr for c in columns), *(k.expr for k in order)]
    matched = _scored(matched, wanted if having is None else [*wanted, having])
    matched = _only_ranked(matched, order)
    tail = _grouped if any(has_aggregate(c.expr) for c in columns) else _plain
    root = tail(matched, columns, having, order, stage.distinct)
    if stage.limit is None and stage.offset is None:
        return root
    return Limit(root, stage.offset, stage.limit)


def _plain(
    source: Operator,
    columns: tuple[Projection, ...],
    having: Expr | None,
    order: tuple[OrderKey, ...],
    distinct: bool,
) -> Operator:
    """Rows as they are: filter, sort, project; or project, drop repeats, sort."""
    if having is not None:
        source = Filter(source, tuple(conjuncts(having)))
    if not distinct:
        return Project(Sort(source, order, bound_names(source)), columns)
    return _without_repeats(source, columns, order)


def _grouped(
    source: Operator,
    columns: tuple[Projection, ...],
    having: Expr | None,
    order: tuple[OrderKey, ...],
    distinct: bool,
) -> Operator:
    """Rows by group: the projections without an aggregate are the key."""
    keys = tuple(c for c in columns if not has_aggregate(c.expr))
    wanted = [*(c.expr for c in columns), *(k.expr for k in order)]
    found = _aggregates(wanted if having is None else [*wanted, having])
    named = tuple((f"#{number}", call) for number, call in enumerate(found))
    if any(call.fn is AggregateFn.COLLECT for call in found):
        source = Sort(source, (), bound_names(source))
    root: Operator = Aggregate(source, keys, named)
    over = _over((*keys, *(Projection(name, call) for name, call in named)))
    if having is not None:
        root = Filter(root, tuple(conjuncts(over(having))))
    outputs = tuple(Projection(c.name, over(c.expr)) for c in columns)
    order = _restated(order, over)
    if distinct:
        return _without_repeats(root, outputs, order)
    if keys or order:
        root = Sort(root, order, tuple(k.name for k in keys))
    return Project(root, outputs)


def _without_repeats(
    source: Operator, columns: tuple[Projection, ...], order: tuple[OrderKey, ...]
) -> Operator:
    names = tuple(c.name for c in columns)
    restated = _restated(order, _over(columns))
    if all(names_in(key.expr) <= set(names) for key in restated):
        return Sort(Distinct(Project(source, columns)), restated, names)
    # Ordered by what is not returned: the first of equal rows decides where they stand.
    return Distinct(Project(Sort(source, order, bound_names(source)), columns))


def _pattern(pattern: Pattern, source: Operator, catalog: Catalog) -> Operator:
    """Match, then what depends on it: negations, optionals, predicates on optional names."""
    root: Operator = Match(
        source, bound_names(source), _nodes(pattern, catalog), pattern.traversals
    )
    predicates = [part for p in pattern.predicates for part in conjuncts(p)]
    scored = [p for p in predicates if scores_in(p)]
    late = _names_bound_late(pattern, bound_names(root))
    plain = [p for p in predicates if not scores_in(p)]
    early = [p for p in plain if not names_in(p) & late]
    if early:
        root = Filter(root, tuple(early))
    soon = [n for n in pattern.negations if not names_of_pattern(n) & late]
    for negation in soon:
        root = _negation(negation, root, catalog)
    for optional in pattern.optionals:
        root = _optional(optional, root, catalog)
    rest = [p for p in plain if names_in(p) & late]
    if rest:
        root = Filter(root, tuple(rest))
    for negation in pattern.negations:
        if negation not in soon:
            root = _negation(negation, root, catalog)
    if scored:
        root = Filter(_scored(root, scored), tuple(scored))
    return root


def _nodes(pattern: Pattern, catalog: Catalog) -> tuple[NodeVar, ...]:
    """Node variables as written, then those that only a traversal names."""
    types: dict[str, tuple[str, ...]] = {node.var: node.types for node in pattern.nodes}
    for traversal in pattern.traversals:
        for var in (traversal.src, traversal.dst):
            if var not in types:
                types[var] = endpoint_types(catalog, traversal, var)
    return tuple(NodeVar(var, names) for var, names in types.items())


def _names_bound_late(pattern: Pattern, bound: Sequence[str]) -> frozenset[str]:
    found: set[str] = set()
    for optional in pattern.optionals:
        found |= names_of_pattern(optional)
    return frozenset(found - set(bound))


def _negation(pattern: Pattern, source: Operator, catalog: Catalog) -> Operator:
    shared = _shared(pattern, source)
    inner = _pattern(pattern, Argument(shared), catalog)
    return Exists(source, inner, shared, negated=True)


def _optional(pattern: Pattern, source: Operator, catalog: Catalog) -> Operator:
    shared = _shared(pattern, source)
    inner = _pattern(pattern, Argument(shared), catalog)
    binds = tuple(name for name in bound_names(inner) if name not in bound_names(source))
    return Optional(source, inner, shared, binds)


def _shared(pattern: Pattern, source: Operator) -> tuple[str, ...]:
    wanted = names_of_pattern(pattern)
    return tuple(name for name in bound_names(source) if name in wanted)


def _scored(source: Operator, expressions: Iterable[Expr]) -> Operator:
    known = _known_scores(source)
    wanted = without_repeats(score for expr in expressions for score in scores_in(expr))
    fresh = tuple(score for score in wanted if score not in known)
    return Search(source, fresh) if fresh else source


def _only_ranked(source: Operator, order: tuple[OrderKey, ...]) -> Operator:
    """To order by a score is to search: rows that the ranking does not hold are no results."""
    ranked = [k.expr for k in order if isinstance(k.expr, VectorScore | TextScore | Fuse)]
    present = tuple(IsNull(score, negated=True) for score in without_repeats(ranked))
    return Filter(source, present) if present else source


def _known_scores(source: Operator) -> tuple[Score, ...]:
    if isinstance(source, Search):
        return source.scores
    return _known_scores(source.input) if isinstance(source, Filter) else ()


def _aggregates(expressions: Iterable[Expr]) -> list[AggregateExpr]:
    every = (part for expr in expressions for part in parts(expr))
    return without_repeats(part for part in every if isinstance(part, AggregateExpr))


def _resolve_aliases(projections: tuple[Projection, ...]) -> tuple[Projection, ...]:
    """A projection may use the alias of one before it."""
    aliases: dict[str, Expr] = {}
    resolved: list[Projection] = []
    for projection in projections:
        expr = _inline(projection.expr, aliases)
        resolved.append(Projection(projection.name, expr))
        aliases[projection.name] = expr
    return tuple(resolved)


def _inline(expr: Expr, aliases: dict[str, Expr]) -> Expr:
    return replace_parts(
        expr, lambda part: aliases.get(part.name) if isinstance(part, ValueRef) else None
    )


def _over(columns: Iterable[Projection]) -> Callable[[Expr], Expr]:
    """Restate an expression over these columns: values by reference, bound nodes by new name."""
    values: list[tuple[Expr, Expr]] = []
    renamed: dict[str, str] = {}
    for column in columns:
        if isinstance(column.expr, Entity):
            renamed.setdefault(column.expr.var, column.name)
        else:
            values.append((column.expr, ValueRef(column.name, column.expr.type)))

    def change(part: Expr) -> Expr | None:
        found = next((reference for held, reference in values if held == part), None)
        if found is None and isinstance(part, Property | Entity) and part.var in renamed:
            return replace(part, var=renamed[part.var])
        return found

    return lambda expr: replace_parts(expr, change)


def _restated(order: tuple[OrderKey, ...], over: Callable[[Expr], Expr]) -> tuple[OrderKey, ...]:
    return tuple(OrderKey(over(key.expr), key.descending) for key in order)
