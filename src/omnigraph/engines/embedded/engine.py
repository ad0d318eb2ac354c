"""The embedded engine: statistics, runs and explanations.

Guarantees: safe to share between threads; one cache of columns and adjacency per engine, within its
byte budget; a run reads exactly its snapshot.
Deliberately absent: resolving snapshots and compiling queries, which `operations` conducts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa

from omnigraph.caches import AnyCache, Cache
from omnigraph.engines.base import DEFAULT_OPTIONS, Options
from omnigraph.engines.embedded import firstpage, projection
from omnigraph.engines.embedded.execute import Execution
from omnigraph.engines.embedded.frame import Frame
from omnigraph.engines.embedded.lineage import Lineage
from omnigraph.engines.embedded.malloc import suit_queries
from omnigraph.engines.embedded.run import Run
from omnigraph.engines.explanation import Explanation
from omnigraph.engines.expressions.shapes import declared, last_projection, schema_of
from omnigraph.ir.query import Projection
from omnigraph.model.catalog import EdgeType, NodeType
from omnigraph.model.result import Result
from omnigraph.model.snapshot import Snapshot
from omnigraph.plan.operators import Access, Branch, Expand, Operator, Reduce
from omnigraph.plan.planner import Plan
from omnigraph.plan.statistics import Statistics, from_snapshot
from omnigraph.plan.trees import operators
from omnigraph.storage.table import open_table

_STATISTICS = 256
_NOMINAL = 4 << 10  # bytes of the statistics of one commit, about
# A branch on fewer rows than this asks the indexes of its edges.
_FEW_ANCHORS = 1000
# Up to this many rows, a query ends before anybody could interrupt it.
_MANY_ROWS = 50_000.0


@dataclass(frozen=True, slots=True)
class _Traits:
    """What running a plan needs to know of it, found out once."""

    root: Operator  # below the last projection
    columns: tuple[Projection, ...]
    schema: pa.Schema
    edges: list[str]
    is_long: bool
    start: Operator | None  # where a result that streams is cut into parts


class EmbeddedEngine:
    """Runs plans in this process."""

    name = "embedded"

    def __init__(self, cache_bytes: int | None = None) -> None:
        self.cache: AnyCache = Cache(cache_bytes)
        self._lineage = Lineage()
        self._known: WeakKeyDictionary[Plan, _Traits] = WeakKeyDictionary()
        self._statistics: Cache[tuple[str, str, str, str], Statistics] = Cache(
            entries=_STATISTICS, nominal_bytes=_NOMINAL
        )

    def statistics(self, snapshot: Snapshot) -> Statistics:
        """Row counts from the snapshot, indexes from its tables; read once per commit."""
        key = (
            snapshot.location.key,
            snapshot.incarnation,
            snapshot.commit_id,
            snapshot.catalog.hash,
        )
        found = self._statistics.peek(key)
        if found is None:
            found = from_snapshot(snapshot, _indexed(snapshot))
            if snapshot.commit_id:
                self._statistics.put(key, found)
        return found

    def _traits(self, plan: Plan) -> _Traits:
        found = self._known.get(plan)
        if found is None:
            found = _traits_of(plan)
            self._known[plan] = found
        return found

    def run(
        self,
        plan: Plan,
        snapshot: Snapshot,
        params: Mapping[str, Any],
        options: Options = DEFAULT_OPTIONS,
    ) -> Result:
        """The rows of a plan. The first part is matched now, so that most failures show at once;
        further parts when they are read. Properties are fetched batch by batch."""
        suit_queries()
        run = Run(snapshot, params, self.cache, options, self._lineage)
        execution = Execution(run, options.profile)
        traits = self._traits(plan)
        root, start = traits.root, traits.start
        frames = iter(()) if start is None else execution.stream(root, start)

        def match() -> Frame:
            run.adopt(traits.edges)
            return execution.rows_of(root) if start is None else next(frames)

        first = run.bounds.listening(match) if traits.is_long else match()
        rest = () if start is None else _rest(frames, run)
        made: Iterator[pa.RecordBatch] = projection.batches(
            traits.columns, chain((first,), rest), traits.schema, run, is_whole=start is None
        )
        return Result(
            traits.schema,
            made,
            commit_id=snapshot.commit_id,
            branch=snapshot.branch,
            explanation=Explanation(plan, self.name, execution.actuals),
        )


def _traits_of(plan: Plan) -> _Traits:
    root, columns = last_projection(plan)
    return _Traits(
        root,
        columns,
        schema_of(declared(plan), plan.catalog),
        _edges_walked(plan.root),
        _may_be_long(plan.root),
        firstpage.start_of_stream(root),
    )


def _rest(frames: Iterator[Frame], run: Run) -> Iterator[Frame]:
    """The parts of a stream after the first, each one matched so that Ctrl-C is seen."""
    while (frame := run.bounds.listening(lambda: next(frames, None))) is not None:
        yield frame


def _may_be_long(root: Operator) -> bool:
    """Whether a plan touches more rows than a moment is enough for."""
    return any(operator.rows > _MANY_ROWS for operator in operators(root))


def _edges_walked(root: Operator) -> list[str]:
    """The edge types whose adjacency a plan is going to use."""
    found: dict[str, None] = {}
    for operator in operators(root):
        if isinstance(operator, Expand) and operator.access is Access.ADJACENCY:
            found.update(dict.fromkeys(step.edge for step in operator.traversal.steps))
        if isinstance(operator, Reduce) and operator.input.rows > _FEW_ANCHORS:
            found.update(dict.fromkeys(_edges_of(operator.branch)))
    return list(found)


def _edges_of(branch: Branch) -> Iterator[str]:
    for step in branch.traversal.steps:
        yield step.edge
    for child in branch.children:
        yield from _edges_of(child)


def _indexed(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """(type, property) pairs that some index of the snapshot's tables covers, fully or not."""
    for table in snapshot.catalog.tables():
        version = snapshot.table(table.id)
        if version is None:
            continue
        names = _names_by_column(table)
        for index in open_table(snapshot.location, version).indexes():
            if index.column in names:
                yield table.name, names[index.column]


def _names_by_column(table: NodeType | EdgeType) -> dict[str, str]:
    plain = {name: name for name in ("id", "src", "dst")}
    return {**plain, **{p.column: p.name for p in table.properties}}
