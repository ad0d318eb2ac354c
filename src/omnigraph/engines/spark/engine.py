"""The spark engine: read queries over DataFrames.

Guarantees: a run reads exactly its snapshot; a session is found or started when a query is run, not
before.
Deliberately absent: caches. What Spark reads once it reads again.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.engines.base import DEFAULT_OPTIONS, Options
from omnigraph.engines.explanation import Explanation
from omnigraph.engines.expressions.shapes import declared, last_projection, schema_of
from omnigraph.engines.spark.jobprogress import observed
from omnigraph.engines.spark.session import get_session
from omnigraph.engines.spark.settings import SparkSettings
from omnigraph.errors import LimitExceededError
from omnigraph.model.result import Result
from omnigraph.model.snapshot import Snapshot
from omnigraph.plan.planner import Plan
from omnigraph.plan.statistics import Statistics, from_snapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from omnigraph.engines.spark.queries.cancellation import Clock


class SparkEngine:
    """Runs plans on Spark."""

    name = "spark"

    def __init__(self, settings: SparkSettings | None = None) -> None:
        self._settings = settings

    def statistics(self, snapshot: Snapshot) -> Statistics:
        """Row counts from the snapshot; indexes do not matter here."""
        return from_snapshot(snapshot)

    def run(
        self,
        plan: Plan,
        snapshot: Snapshot,
        params: Mapping[str, Any],
        options: Options = DEFAULT_OPTIONS,
    ) -> Result:
        """The rows of a plan. Most of the work happens when they are read."""
        from omnigraph.engines.spark.queries.cancellation import Clock, stoppable
        from omnigraph.engines.spark.queries.execute import Execution
        from omnigraph.engines.spark.queries.querysession import own_session
        from omnigraph.engines.spark.queries.resultbatches import packed
        from omnigraph.engines.spark.queries.run import Run, is_tiny
        from omnigraph.engines.spark.queries.wanted import wanted_fields

        spark, clock = get_session(self._settings), Clock(options)
        root, columns = last_projection(plan)
        schema = schema_of(declared(plan), snapshot.catalog)
        wanted = wanted_fields(root, columns, snapshot.catalog)
        beside = own_session(spark, self._settings, small=is_tiny(snapshot))
        with stoppable(spark, clock), beside as own, observed(spark, "prepare the query"):
            run = Run(own, snapshot, params, options, wanted)
            frame = packed(Execution(run).flow_of(root), columns, schema, run)
        return Result(
            schema,
            _batches(spark, frame, schema, options, clock),
            commit_id=snapshot.commit_id,
            branch=snapshot.branch,
            explanation=Explanation(plan, self.name, inner=_spark_plan(frame, options)),
        )


def _spark_plan(frame: DataFrame, options: Options) -> str | None:
    """What Spark is going to do, for `explain`."""
    if not options.profile:
        return None
    shown = io.StringIO()
    with redirect_stdout(shown):  # the only way that all kinds of frames have
        frame.explain()
    return shown.getvalue()


def _batches(
    spark: SparkSession, frame: DataFrame, schema: pa.Schema, options: Options, clock: Clock
) -> Iterator[pa.RecordBatch]:
    from omnigraph.engines.spark.queries.cancellation import stoppable
    from omnigraph.engines.spark.queries.resultbatches import unpack

    most, returned = options.limits.rows_returned, 0
    with stoppable(spark, clock), observed(spark, "run the query") as rows:
        for batch in unpack(frame, schema):
            rows.add(batch.num_rows)
            returned += batch.num_rows
            if most is not None and returned > most:
                raise LimitExceededError(
                    f"The query exceeded its limit on rows returned: {most:g}.",
                    resource="rows_returned",
                    limit=float(most),
                    actual=float(returned),
                    hint="Narrow the match, add a limit, or raise the limits of the query.",
                )
            yield batch
