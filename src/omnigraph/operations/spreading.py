"""Handing tasks of maintenance and of schema changes to Spark's executors.

Guarantees: an engine is named and exists; in this process nothing of Spark is loaded.
"""

from __future__ import annotations

from collections.abc import Callable

from omnigraph.engines.spark.progress import ProgressEvent
from omnigraph.engines.spark.settings import SparkSettings
from omnigraph.errors import EngineUnavailableError, InvalidArgumentError
from omnigraph.operations.context import Context
from omnigraph.storage.spreading import Spread

EMBEDDED, SPARK = "embedded", "spark"
# From so many rows on, tables are written on Spark unless somebody says where.
LARGE_ROWS = 5_000_000


def spread_for(
    context: Context, engine: str | None, settings: SparkSettings | None, rows: int
) -> Spread | None:
    """Who writes so many rows; None: this process. Without an engine, by their number and by
    whether Spark can be had."""
    if engine is not None:
        _refuse_wrong(context, engine)
        return spread_by(context, engine, settings) if rows else None
    if rows <= LARGE_ROWS or context.root.location.scheme == "memory":
        return None
    try:
        return spread_by(context, SPARK, settings)
    except EngineUnavailableError:
        return None  # slower, and no less right


def spread_by(
    context: Context,
    engine: str,
    settings: SparkSettings | None,
    progress: Callable[[ProgressEvent], None] | None = None,
) -> Spread | None:
    """Who carries tasks out; None: this process."""
    _refuse_wrong(context, engine)
    if engine == EMBEDDED:
        return None
    from omnigraph.engines.spark.progress import Watch
    from omnigraph.engines.spark.session import get_session
    from omnigraph.engines.spark.tasks import SparkRunner

    return SparkRunner(get_session(settings), Watch(progress)).run


def _refuse_wrong(context: Context, engine: str) -> None:
    if engine not in (EMBEDDED, SPARK):
        raise InvalidArgumentError(
            f"There is no engine {engine!r}.", hint=f"Use {EMBEDDED} or {SPARK}."
        )
    if engine == SPARK and context.root.location.scheme == "memory":
        raise InvalidArgumentError(
            "A graph in memory cannot be reached from Spark's own processes.",
            hint="Use engine='embedded'.",
        )
