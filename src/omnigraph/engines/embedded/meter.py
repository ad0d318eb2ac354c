"""What each operator of a running plan costs: rows, time and reads, counted where they arise.

Operators are generators that call each other; the meter knows whose turn it is. Time and reads go
to the operator whose turn it is, so what an operator's inputs cost is not counted as its own.

Nothing is measured, and almost nothing spent, unless a profile or debug log is wanted.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator

from omnigraph import logs
from omnigraph.engines.embedded.frame import Frame
from omnigraph.engines.embedded.run import Run
from omnigraph.plan.operators import Operator
from omnigraph.plan.plantext import Actual, title
from omnigraph.storage.table import IoCounters

log = logs.logger("omnigraph.engines.embedded.execute")


class Meter:
    """The figures of one run."""

    def __init__(self, run: Run, profile: bool) -> None:
        self._run = run
        self._logs = log.isEnabledFor(logging.DEBUG)
        self.is_on = profile or self._logs
        self.actuals: dict[int, Actual] | None = {} if profile else None
        self._figures: dict[int, Actual] = {} if self.actuals is None else self.actuals
        self._turn: Actual | None = None
        self._since = 0.0
        self._io = IoCounters()

    def measured(self, operator: Operator, frames: Iterator[Frame]) -> Iterator[Frame]:
        """The same frames, with what they cost counted."""
        actual = self._figures.setdefault(id(operator), Actual())
        while True:
            before = self._switch(actual)
            try:
                frame = next(frames, None)
            finally:
                self._switch(before)
            if frame is None:
                break
            actual.rows += frame.rows
            yield frame
        if self._logs:
            shown = {"operator": title(operator), "estimate": operator.rows, "actual": actual.rows}
            log.debug("operator done", extra=logs.fields(**shown))

    def _switch(self, turn: Actual | None) -> Actual | None:
        """Give the turn to an operator; what has passed belongs to the one that had it."""
        now = time.perf_counter()
        io = self._run.io() if self.actuals is not None else self._io
        before = self._turn
        if before is not None:
            spent = io - self._io
            before.seconds += now - self._since
            before.requests += spent.requests
            before.bytes += spent.bytes
            before.notes += [n for n in self._run.notes if n not in before.notes]
            self._run.notes.clear()
        self._turn, self._io = turn, io
        self._since = time.perf_counter()
        return before
