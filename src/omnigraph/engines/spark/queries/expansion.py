"""Walking traversals from the rows of a flow.

Guarantees: without an edge variable each (row, far node) comes once; with one, each edge once. An
edge whose node is missing leads nowhere.
Deliberately absent: adjacency kept between queries. Edges are read and joined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING

from omnigraph.engines.spark.queries.columnnames import Bound, Held
from omnigraph.engines.spark.queries.flow import Flow
from omnigraph.engines.spark.queries.run import Run
from omnigraph.engines.spark.queries.scans import (
    ReadColumn,
    bound_to,
    columns_of,
    scan,
    table_frame,
    united,
)
from omnigraph.ir.expr import Expr, Property
from omnigraph.ir.fold import replace_parts
from omnigraph.ir.query import EDGE, Direction, EdgeStep, Traversal
from omnigraph.model.catalog import DST_COLUMN, SRC_COLUMN, EdgeType
from omnigraph.model.types import I64, STRING
from omnigraph.plan.operators import Expand, NodeVar

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_WAYS = {Direction.OUT: (True,), Direction.IN: (False,), Direction.BOTH: (True, False)}


@dataclass(frozen=True, slots=True)
class Leg:
    """One edge type walked in one direction."""

    edge: EdgeType
    outwards: bool
    where: tuple[Expr, ...] = field(default=(), compare=False)

    @property
    def near(self) -> str:
        return self.edge.src_type if self.outwards else self.edge.dst_type

    @property
    def far(self) -> str:
        return self.edge.dst_type if self.outwards else self.edge.src_type


@dataclass(frozen=True)
class Pairs:
    """Neighbours: `near` and `far` bind their ends, `edge` the edge where that matters."""

    frame: DataFrame
    near: Bound
    far: Bound
    edge: Bound | None
    rows: int  # at most


def legs_of(steps: Sequence[EdgeStep], *, reverse: bool, run: Run) -> list[Leg]:
    """The legs of a traversal's steps, walked from its src or, in reverse, from its dst."""
    found: dict[Leg, None] = {}
    for step in steps:
        for outwards in _WAYS[step.direction]:
            found[Leg(run.edge(step.edge), outwards is not reverse, step.where)] = None
    return list(found)


def expand(operator: Expand, flow: Flow, run: Run) -> Flow:
    """Rows for every acceptable far end, or, when both ends are bound, the rows that connect."""
    from pyspark.sql import functions as f

    traversal = operator.traversal
    if traversal.min_hops != 1 or traversal.max_hops != 1:
        from omnigraph.engines.spark.queries.walk import walk

        return walk(operator, flow, run)
    near = flow.layout.entities[operator.source]
    pairs = neighbours(
        traversal,
        operator.reverse,
        near.types,
        _far_types(operator, flow),
        run,
        operator.edge_predicates,
    )
    on = same(near, pairs.near)
    if operator.into:
        on += same(flow.layout.entities[operator.node.var], pairs.far)
    joined = flow.frame.join(run.hinted(pairs.frame, pairs.rows), reduce(_and, on), "inner")
    layout = flow.layout
    if traversal.edge_var is not None and pairs.edge is not None:
        layout = layout.bind(traversal.edge_var, pairs.edge)
    if traversal.hops_var is not None:
        hops = run.fresh()
        joined = joined.withColumn(hops, f.lit(1).cast("bigint"))
        layout = layout.bind_value(traversal.hops_var, Held(hops, I64))
    found = flow.on(joined, layout)
    return found if operator.into else arrive(found, pairs.far, operator.node, run)


def _far_types(operator: Expand, flow: Flow) -> tuple[str, ...]:
    if operator.into:
        return flow.layout.entities[operator.node.var].types
    return operator.node.types


def arrive(flow: Flow, far: Bound, node: NodeVar, run: Run) -> Flow:
    """Bind the far end to the nodes that are acceptable there."""
    there = scan(node, run)
    bound = there.layout.entities[node.var]
    rows = run.rows_of(run.node(name) for name in node.types)
    on = reduce(_and, same(far, bound))
    joined = flow.frame.join(run.hinted(there.frame, rows), on, "inner")
    return flow.on(joined, flow.layout.bind(node.var, bound)).pruned(run)


def same(one: Bound, other: Bound) -> list[Column]:
    """Conditions under which two bound nodes are the same; never, where one is missing."""
    from pyspark.sql import functions as f

    found = [f.col(one.id_column) == f.col(other.id_column)]
    if one.type_column is None and other.type_column is None:
        return found if one.types == other.types else [*found, f.lit(False)]
    return [*found, _type(one) == _type(other)]


def _type(bound: Bound) -> Column:
    from pyspark.sql import functions as f

    return f.lit(bound.types[0]) if bound.type_column is None else f.col(bound.type_column)


def _and(left: Column, right: Column) -> Column:
    return left & right


def neighbours(
    traversal: Traversal,
    reverse: bool,
    near_types: Sequence[str],
    far_types: Sequence[str],
    run: Run,
    predicates: tuple[Expr, ...] = (),
) -> Pairs:
    """Pairs of neighbours over a traversal's steps; by edge if it has an edge variable."""
    every = legs_of(traversal.steps, reverse=reverse, run=run)
    legs = [leg for leg in every if leg.near in near_types and leg.far in far_types]
    var = traversal.edge_var
    names = list(dict.fromkeys(step.edge for step in traversal.steps))
    edge = None if var is None else bound_to([run.edge(n) for n in names], run.wanted(var), run)
    near, far = _end(near_types, run), _end(far_types, run)
    frames = [
        _leg_frame(leg, near, far, edge, var or EDGE, predicates, _repeats_loops(leg, every), run)
        for leg in legs
    ]
    frame = united(frames, [near, far, *([edge] if edge else [])], run)
    if edge is None:
        frame = frame.distinct()
    return Pairs(frame, near, far, edge, run.rows_of(leg.edge for leg in legs))


def _repeats_loops(leg: Leg, legs: Sequence[Leg]) -> bool:
    """Whether a leg finds edges from a node to itself that another leg has found already."""
    may_loop = leg.near == leg.far  # ids are unique within one type only
    return may_loop and not leg.outwards and replace(leg, outwards=True) in legs


def _of_edge(predicate: Expr, var: str) -> Expr:
    """A predicate of a step's filter, restated over the edge variable."""

    def renamed(part: Expr) -> Expr | None:
        if isinstance(part, Property) and part.var == EDGE:
            return replace(part, var=var)
        return None

    return replace_parts(predicate, renamed)


def _end(types: Sequence[str], run: Run) -> Bound:
    return Bound(tuple(types), run.fresh(), run.fresh() if len(types) != 1 else None)


def _leg_frame(
    leg: Leg,
    near: Bound,
    far: Bound,
    edge: Bound | None,
    var: str,
    predicates: tuple[Expr, ...],
    drop_loops: bool,
    run: Run,
) -> DataFrame:
    from pyspark.sql import functions as f

    here, there = (SRC_COLUMN, DST_COLUMN) if leg.outwards else (DST_COLUMN, SRC_COLUMN)
    wanted: list[ReadColumn] = [(near.id_column, here, STRING), (far.id_column, there, STRING)]
    if edge is not None:
        wanted += columns_of(leg.edge, edge)
    predicates = (*predicates, *(_of_edge(each, var) for each in leg.where))
    frame = table_frame(leg.edge, var, tuple(wanted), predicates, run)
    if edge is not None and drop_loops:
        # Walked both ways, an edge from a node to itself is still one edge.
        frame = frame.where(f.col(near.id_column) != f.col(far.id_column))
    types = [(near, leg.near), (far, leg.far)] + ([(edge, leg.edge.name)] if edge else [])
    for bound, name in types:
        if bound.type_column is not None:
            frame = frame.withColumn(bound.type_column, f.lit(name))
    return frame
