"""Handing tasks of maintenance to Spark's executors.

Guarantees: an engine is named and exists; in this process nothing of Spark is loaded.
"""

from __future__ import annotations

from collections.abc import Callable

from omnigraph.engines.spark.progress import ProgressEvent
from omnigraph.engines.spark.settings import SparkSettings
from omnigraph.errors import InvalidArgumentError
from omnigraph.operations.context import Context
from omnigraph.storage.spreading import Spread

EMBEDDED, SPARK = "embedded", "spark"


def spread_by(
    context: Context,
    engine: str,
    settings: SparkSettings | None,
    progress: Callable[[ProgressEvent], None] | None = None,
) -> Spread | None:
    """Who carries tasks out; None: this process."""
    if engine == EMBEDDED:
        return None
    if engine != SPARK:
        raise InvalidArgumentError(
            f"There is no engine {engine!r}.", hint=f"Use {EMBEDDED} or {SPARK}."
        )
    if context.root.location.scheme == "memory":
        raise InvalidArgumentError(
            "A graph in memory cannot be reached from Spark's own processes.",
            hint="Use engine='embedded'.",
        )
    from omnigraph.engines.spark.progress import Watch
    from omnigraph.engines.spark.session import get_session
    from omnigraph.engines.spark.tasks import SparkRunner

    return SparkRunner(get_session(settings), Watch(progress)).run
