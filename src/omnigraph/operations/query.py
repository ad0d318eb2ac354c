"""Read queries: text and parameters in, a lazy result out.

One snapshot is resolved and read to the end; the result contains its commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from omnigraph.engines.base import DEFAULT_OPTIONS, Limits, Options
from omnigraph.engines.queryembedder import embed_by_environment
from omnigraph.engines.registry import EMBEDDED, engine_named
from omnigraph.errors import InvalidArgumentError
from omnigraph.ir.query import ReadQuery
from omnigraph.lang import gq
from omnigraph.model.result import Result
from omnigraph.model.snapshot import Snapshot
from omnigraph.operations.context import Context
from omnigraph.operations.requests import Query, Question
from omnigraph.plan.planner import Plan, Planner
from omnigraph.plan.statistics import Statistics

_planner = Planner()
_EMBEDDED_OPTIONS = replace(DEFAULT_OPTIONS, embed=embed_by_environment)


def query(context: Context, request: Query) -> Result:
    """Run a read query against one snapshot. `spark` are the settings of the spark engine."""
    snapshot = context.snapshot(request.target)
    plan, params = prepare(request, snapshot, request.engine)
    chosen = request.options or default_options(request.engine)
    if chosen.embed is None:
        chosen = replace(chosen, embed=embed_by_environment)
    return engine_named(request.engine, request.spark).run(plan, snapshot, params, chosen)


def default_options(engine: str) -> Options:
    """The default limits of a query. Queries on Spark have no time limit."""
    return _EMBEDDED_OPTIONS if engine == EMBEDDED else Options(Limits(seconds=None))


def prepare(
    question: Question, snapshot: Snapshot, engine: str = EMBEDDED
) -> tuple[Plan, Mapping[str, Any]]:
    """Compile and plan a read query for a snapshot, and bind its parameters."""
    plan = plan_for(question, snapshot, engine)
    return plan, gq.bind_params(plan.query, question.params)


def plan_for(question: Question, snapshot: Snapshot, engine: str = EMBEDDED) -> Plan:
    """Compile and plan a read query for a snapshot, whatever its parameters will be."""
    statistics = engine_named(engine).statistics(snapshot)
    if question.kept is None:
        return _planned(question, snapshot, statistics)
    return question.kept.get(
        snapshot.catalog.hash, statistics, lambda: _planned(question, snapshot, statistics)
    )


def _planned(question: Question, snapshot: Snapshot, statistics: Statistics) -> Plan:
    compiled = gq.compile_query(question.text, snapshot.catalog, question.name, question.file)
    if not isinstance(compiled.query, ReadQuery):
        raise InvalidArgumentError(
            f"The query {compiled.query.name!r} changes the graph.",
            hint="Run it as a mutation: `omnigraph mutate`, or `graph.mutate(...)`.",
        )
    return _planner.plan(compiled.query, snapshot.catalog, statistics)
