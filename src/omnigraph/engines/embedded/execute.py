"""Running a plan: one generator per operator, each over the frames of its inputs.

Rows flow in parts where an expansion would make too many at once; operators that need all rows take
them together, those that group, cut or drop repeats take part after part.

Guarantees: every operator yields at least one frame, so that its names are known even without rows;
bounds are checked between frames.
Deliberately absent: choices. The plan has made them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from omnigraph.engines.embedded import (
    expansion,
    firstpage,
    joins,
    matchsearch,
    projection,
    reduction,
    scans,
    sortorder,
)
from omnigraph.engines.embedded.frame import UNIT, Frame, stack
from omnigraph.engines.embedded.frameexpr import holds
from omnigraph.engines.embedded.meter import Meter
from omnigraph.engines.embedded.partial import aggregate_parts, distinct_parts
from omnigraph.engines.embedded.run import Run
from omnigraph.engines.expressions.evaluate import bounds_of
from omnigraph.plan import operators as op
from omnigraph.plan.operators import Operator
from omnigraph.plan.plantext import Actual


class Execution:
    """One plan on its way through one run."""

    def __init__(self, run: Run, profile: bool) -> None:
        self.run = run
        self._meter = Meter(run, profile)
        self._arguments: list[Frame] = []
        self._starts: dict[int, Frame] = {}  # by operator: rows to use instead of running it

    @property
    def actuals(self) -> dict[int, Actual] | None:
        return self._meter.actuals

    def rows_of(self, operator: Operator) -> Frame:
        """All rows of an operator."""
        return stack(list(self.frames_of(operator)))

    def stream(self, root: Operator, start: Operator) -> Iterator[Frame]:
        """The rows of a plan in parts, each matched and sorted when it is asked for. `start` is
        what `firstpage.start_of_stream` returned for the plan."""
        assert isinstance(root, op.Sort)
        frames = self._checked(self._sorted_parts(root, start))
        yield from self._meter.measured(root, frames) if self._meter.is_on else frames

    def _sorted_parts(self, root: op.Sort, start: Operator) -> Iterator[Frame]:
        order = firstpage.order_of_starts(root, start)
        slicing = firstpage.Slicing(sortorder.sort(order, self.rows_of(start), self.run))
        for starts in slicing:
            rows = self._rows_from(starts, start, root.input)
            slicing.matched(rows.rows)
            yield sortorder.sort(root, rows, self.run)

    def _rows_from(self, starts: Frame, start: Operator, operator: Operator) -> Frame:
        """The rows of an operator when `start`, somewhere below it, has only these rows."""
        self._starts[id(start)] = starts
        try:
            return self.rows_of(operator)
        finally:
            del self._starts[id(start)]

    def frames_of(self, operator: Operator) -> Iterator[Frame]:
        """The rows of an operator, in one or more parts."""
        if self._starts and id(operator) in self._starts:
            return iter((self._starts[id(operator)],))
        frames = self._checked(_RUNNERS[type(operator)](self, operator))
        return self._meter.measured(operator, frames) if self._meter.is_on else frames

    def _checked(self, frames: Iterator[Frame]) -> Iterator[Frame]:
        for frame in frames:
            self.run.bounds.check()
            yield frame

    # Operators

    def _unit(self, operator: op.Unit) -> Iterator[Frame]:
        yield UNIT

    def _argument(self, operator: op.Argument) -> Iterator[Frame]:
        yield self._arguments[-1]

    def _scan(self, operator: op.Scan) -> Iterator[Frame]:
        found = scans.scan(operator.node, operator.access, self.run)
        yield Frame(len(found.numbers), {operator.node.var: found})

    def _expand(self, operator: op.Expand) -> Iterator[Frame]:
        for frame in self.frames_of(operator.input):
            yield from expansion.expand_in_parts(operator, frame, self.run)

    def _reduce(self, operator: op.Reduce) -> Iterator[Frame]:
        for frame in self.frames_of(operator.input):
            yield reduction.reduce_rows(operator, frame, self.run)

    def _filter(self, operator: op.Filter) -> Iterator[Frame]:
        for frame in self.frames_of(operator.input):
            yield frame.where(holds(operator.predicates, frame, self.run))

    def _join(self, operator: op.Join) -> Iterator[Frame]:
        right = self.rows_of(operator.right)
        for left in self.frames_of(operator.left):
            for part in joins.parts_of(operator, left, right):
                yield joins.join(operator, part, right, self.run)

    def _exists(self, operator: op.Exists) -> Iterator[Frame]:
        inner = self._inner_plan(operator.plan)
        for frame in self.frames_of(operator.input):
            yield joins.exists(operator, frame, inner, self.run)

    def _optional(self, operator: op.Optional) -> Iterator[Frame]:
        inner = self._inner_plan(operator.plan)
        for frame in self.frames_of(operator.input):
            yield joins.optional(operator, frame, inner, self.run)

    def _inner_plan(self, plan: Operator) -> Callable[[Frame], Frame]:
        def inner(outer: Frame) -> Frame:
            self._arguments.append(outer)
            try:
                return self.rows_of(plan)
            finally:
                self._arguments.pop()

        return inner

    def _search(self, operator: op.Search) -> Iterator[Frame]:
        yield matchsearch.search(operator, self.rows_of(operator.input), self.run)

    def _aggregate(self, operator: op.Aggregate) -> Iterator[Frame]:
        yield aggregate_parts(operator, self.frames_of(operator.input), self.run)

    def _project(self, operator: op.Project) -> Iterator[Frame]:
        for frame in self.frames_of(operator.input):
            yield projection.project(operator.columns, frame, self.run)

    def _distinct(self, operator: op.Distinct) -> Iterator[Frame]:
        yield distinct_parts(self.frames_of(operator.input), self.run)

    def _sort(self, operator: op.Sort) -> Iterator[Frame]:
        yield sortorder.sort(operator, self.rows_of(operator.input), self.run)

    def _top_k(self, operator: op.TopK) -> Iterator[Frame]:
        start = firstpage.start_of(operator)
        frames = self.frames_of(operator.input) if start is None else self._pages(operator, start)
        yield sortorder.top_k(operator, frames, self.run)

    def _pages(self, operator: op.TopK, start: op.Scan) -> Iterator[Frame]:
        """Rows from the first starts on, until there are enough of them."""
        skipped, wanted = bounds_of(operator.offset, operator.limit, self.run)
        order = firstpage.order_of_starts(operator, start)
        found = 0
        for starts in firstpage.slices(self.rows_of(start), order, self.run):
            rows = self._rows_from(starts, start, operator.input)
            yield rows
            found += rows.rows
            if wanted is not None and found >= skipped + wanted:
                return

    def _limit(self, operator: op.Limit) -> Iterator[Frame]:
        yield sortorder.limit(operator, self.rows_of(operator.input), self.run)


_RUNNERS: dict[type[Any], Callable[[Execution, Any], Iterator[Frame]]] = {
    op.Unit: Execution._unit,
    op.Argument: Execution._argument,
    op.Scan: Execution._scan,
    op.Expand: Execution._expand,
    op.Reduce: Execution._reduce,
    op.Filter: Execution._filter,
    op.Join: Execution._join,
    op.Exists: Execution._exists,
    op.Optional: Execution._optional,
    op.Search: Execution._search,
    op.Aggregate: Execution._aggregate,
    op.Project: Execution._project,
    op.Distinct: Execution._distinct,
    op.Sort: Execution._sort,
    op.TopK: Execution._top_k,
    op.Limit: Execution._limit,
}
