"""Prepared queries: compiled and planned once, run many times.

    friends = graph.prepare("query q($who: String) { ... }")
    friends({"who": "Ada"}).rows()

The plan is made again when the schema changes, or when row counts or indexes change so much that
the planner would see other statistics. A prepared query may be called from several threads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from omnigraph.arguments import checked
from omnigraph.engines.base import Options
from omnigraph.model.result import Result
from omnigraph.plan.planner import Plan
from omnigraph.plan.statistics import Statistics


class KeptPlan:
    """The plan of one prepared query, and what it was made for."""

    def __init__(self) -> None:
        self._kept: tuple[str, Statistics, Plan] | None = None

    def get(self, schema: str, statistics: Statistics, make: Callable[[], Plan]) -> Plan:
        """The plan for the catalog with the hash `schema`; made if there is none yet."""
        kept = self._kept
        if kept is not None and schema and kept[0] == schema and kept[1] == statistics:
            return kept[2]
        plan = make()
        self._kept = (schema, statistics, plan)
        return plan


class _Run(Protocol):
    def __call__(self, params: Mapping[str, Any], options: Options | None) -> Result: ...


class PreparedQuery:
    """A read query of one graph. Each call reads the state that the graph has by then."""

    def __init__(self, run: _Run) -> None:
        self._run = run

    @checked
    def __call__(
        self, params: Mapping[str, Any] | None = None, *, options: Options | None = None
    ) -> Result:
        """Run the query.

        Args:
            params: The values of its parameters by name.
            options: Limits, cancellation and other options, as in `Graph.query`.

        Returns:
            The rows, as `Graph.query` returns them.
        """
        return self._run(params or {}, options)
