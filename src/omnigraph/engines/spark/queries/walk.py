"""Walks of several hops: for each source, every node once, at its smallest distance.

Breadth first: the distinct sources of a flow walk together, level by level; each level is computed
once and kept, so that the next one starts from it instead of from the beginning.

The language's rule for self-loops: an edge from a node to itself yields the node one hop after the
node was reached, within the bounds, unless it was yielded already; it is not searched again.

Guarantees: at most one row per (source, node); a walk without an upper bound ends when a level is
empty.
Deliberately absent: paths. Only ends and distances are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from omnigraph.engines.spark.queries.columnnames import Bound, Held
from omnigraph.engines.spark.queries.expansion import arrive, legs_of, neighbours, same
from omnigraph.engines.spark.queries.flow import Flow, settled
from omnigraph.engines.spark.queries.run import Run
from omnigraph.model.types import I64
from omnigraph.plan.operators import Expand

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_UNBOUNDED = 2**31 - 1
# Frames of so many levels are put together into one, to keep plans short.
_LEVELS_TOGETHER = 8


@dataclass(frozen=True, slots=True)
class _Names:
    """Columns of a walk: the source, the node reached, and after how many hops."""

    source: Bound
    node: Bound
    hops: str

    @property
    def ends(self) -> tuple[str, ...]:
        return (*self.source.identity, *self.node.identity)


def walk(operator: Expand, flow: Flow, run: Run) -> Flow:
    """Rows for every node within the bounds of hops from each row's node."""
    traversal = operator.traversal
    near = flow.layout.entities[operator.source]
    flow = settled(flow, run)
    names, reached = _reached(operator, flow, near, run)
    on = same(near, names.source)
    if operator.into:
        on += same(flow.layout.entities[operator.node.var], names.node)
    joined = flow.frame.join(run.hinted(reached), reduce(lambda a, b: a & b, on), "inner")
    layout = flow.layout
    if traversal.hops_var is not None:
        layout = layout.bind_value(traversal.hops_var, Held(names.hops, I64))
    found = flow.on(joined, layout)
    return found if operator.into else arrive(found, names.node, operator.node, run)


def _reached(operator: Expand, flow: Flow, near: Bound, run: Run) -> tuple[_Names, DataFrame]:
    """(source, node, hops) for everything that the walk yields."""
    traversal = operator.traversal
    legs = legs_of(traversal.steps, reverse=operator.reverse, run=run)
    types = dict.fromkeys((*near.types, *(t for leg in legs for t in (leg.near, leg.far))))
    steps = _Steps(operator, tuple(types), run)
    names = _Names(_bound(tuple(types), run), _bound(tuple(types), run), run.fresh())
    frontier = _starts(flow, near, names, run)
    levels = _Levels(names, frontier)
    most = _UNBOUNDED if traversal.max_hops is None else traversal.max_hops
    loops: DataFrame | None = None
    looping: DataFrame | None = None
    for hop in range(1, most + 1):
        stepped = steps.from_(frontier, names, run)
        if hop == 1 and operator.reverse:
            looping = stepped.loops.select(*names.source.identity).distinct()
        if hop == traversal.min_hops:
            loops = _with_hops(_again(frontier, looping, names, stepped), names, hop)
        frontier = levels.add(stepped.far, hop)
        if frontier.isEmpty():
            break
    found = levels.within(traversal.min_hops)
    return names, found if loops is None else found.unionByName(loops)


def _bound(types: tuple[str, ...], run: Run) -> Bound:
    return Bound(types, run.fresh(), run.fresh() if len(types) != 1 else None)


def _starts(flow: Flow, near: Bound, names: _Names, run: Run) -> DataFrame:
    """Every distinct source at itself."""
    from pyspark.sql import functions as f

    type_: Column = f.lit(near.types[0]) if near.type_column is None else f.col(near.type_column)
    columns = []
    for bound in (names.source, names.node):
        columns.append(f.col(near.id_column).alias(bound.id_column))
        if bound.type_column is not None:
            columns.append(type_.alias(bound.type_column))
    present = flow.frame.where(f.col(near.id_column).isNotNull())
    return present.select(*columns).distinct().localCheckpoint(eager=True)


def _with_hops(frame: DataFrame, names: _Names, hop: int) -> DataFrame:
    from pyspark.sql import functions as f

    return frame.select(*names.ends, f.lit(hop).cast("bigint").alias(names.hops))


@dataclass(frozen=True)
class _Stepped:
    """One hop further: (source, far node), and (source, node) for nodes with a self-loop."""

    far: DataFrame
    loops: DataFrame


class _Steps:
    """Pairs of neighbours of all types that the walk touches, read once."""

    def __init__(self, operator: Expand, types: tuple[str, ...], run: Run) -> None:
        pairs = neighbours(operator.traversal, operator.reverse, types, types, run)
        there = _existing(types, pairs.far, run)
        on = reduce(lambda a, b: a & b, same(pairs.far, there[1]))
        frame = pairs.frame.join(run.hinted(there[0]), on, "left_semi")
        self._frame = frame.localCheckpoint(eager=True)
        self._near, self._far = pairs.near, pairs.far

    def from_(self, frontier: DataFrame, names: _Names, run: Run) -> _Stepped:
        from pyspark.sql import functions as f

        on = reduce(lambda a, b: a & b, same(names.node, self._near))
        joined = frontier.join(run.hinted(self._frame), on, "inner")
        loop = reduce(lambda a, b: a & b, same(self._near, self._far))
        moved = zip(self._far.identity, names.node.identity, strict=True)
        columns = [f.col(c) for c in names.source.identity]
        columns += [f.col(old).alias(new) for old, new in moved]
        return _Stepped(
            joined.select(*columns).distinct(),
            joined.where(loop).select(*names.ends).distinct(),
        )


def _existing(types: Sequence[str], far: Bound, run: Run) -> tuple[DataFrame, Bound]:
    """The existing nodes: edges with a missing endpoint are dropped."""
    from omnigraph.engines.spark.queries.scans import read

    flow = read([run.node(name) for name in types], "", (), (), run)
    return flow.frame, flow.layout.entities[""]


def _again(
    before: DataFrame, looping: DataFrame | None, names: _Names, stepped: _Stepped
) -> DataFrame:
    """Nodes that their own edge yields again. Walked backwards, the sources are the far ends, so
    it is their self-loops that count."""
    if looping is None:
        return stepped.loops
    return before.join(looping, list(names.source.identity), "left_semi")


class _Levels:
    """What was visited, level by level."""

    def __init__(self, names: _Names, starts: DataFrame) -> None:
        self._names = names
        self._visited = _with_hops(starts, names, 0)
        self._open = 0

    def add(self, found: DataFrame, hop: int) -> DataFrame:
        """The nodes that are new at this level; they count as visited from now on."""
        ends = list(self._names.ends)
        fresh = found.join(self._visited.select(*ends), ends, "left_anti")
        fresh = fresh.localCheckpoint(eager=True)
        self._visited = self._visited.unionByName(_with_hops(fresh, self._names, hop))
        self._open += 1
        if self._open == _LEVELS_TOGETHER:
            self._visited = self._visited.localCheckpoint(eager=True)
            self._open = 0
        return fresh

    def within(self, least: int) -> DataFrame:
        from pyspark.sql import functions as f

        return self._visited.where(f.col(self._names.hops) >= least)
