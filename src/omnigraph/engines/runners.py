"""Handing tasks of maintenance and of schema changes to Spark's executors.

An engine is named and exists; in this process nothing of Spark is loaded.
"""

from __future__ import annotations

from collections.abc import Callable

from omnigraph.engines.registry import EMBEDDED, SPARK
from omnigraph.engines.spark.jobevents import ProgressEvent
from omnigraph.engines.spark.settings import SparkSettings
from omnigraph.errors import EngineUnavailableError, InvalidArgumentError
from omnigraph.storage.maintenancetasks import Spread
from omnigraph.storage.root import GraphRoot

# From this many rows, tables are written on Spark by default.
LARGE_ROWS = 5_000_000


def spread_for(
    root: GraphRoot, engine: str | None, settings: SparkSettings | None, rows: int
) -> Spread | None:
    """Who writes so many rows; None: this process. Without an engine, by their number and by
    whether Spark can be had."""
    if engine is not None:
        _refuse_wrong(root, engine)
        return spread_by(root, engine, settings) if rows else None
    if rows <= LARGE_ROWS or root.location.scheme == "memory":
        return None
    try:
        return spread_by(root, SPARK, settings)
    except EngineUnavailableError:
        return None  # slower, and no less right


def spread_by(
    root: GraphRoot,
    engine: str,
    settings: SparkSettings | None,
    progress: Callable[[ProgressEvent], None] | None = None,
) -> Spread | None:
    """Who carries tasks out; None: this process."""
    _refuse_wrong(root, engine)
    if engine == EMBEDDED:
        return None
    from omnigraph.engines.spark.jobevents import Watch
    from omnigraph.engines.spark.session import get_session
    from omnigraph.engines.spark.sparkrunner import SparkRunner

    return SparkRunner(get_session(settings), Watch(progress)).run


def _refuse_wrong(root: GraphRoot, engine: str) -> None:
    if engine not in (EMBEDDED, SPARK):
        raise InvalidArgumentError(
            f"There is no engine {engine!r}.", hint=f"Use {EMBEDDED} or {SPARK}."
        )
    if engine == SPARK and root.location.scheme == "memory":
        raise InvalidArgumentError(
            "A graph in memory cannot be reached from Spark's own processes.",
            hint="Use engine='embedded'.",
        )
