"""Where two versions of a table are compared: here, or on Spark.

Guarantees: the same differences either way. Unless somebody says where, tables of which more than
`LARGE_ROWS` rows must be read are compared on Spark, if this machine has one; checks of the merged
result and the commit concern changes alone, and stay here.
Deliberately absent: comparing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.errors import EngineUnavailableError, InvalidArgumentError
from omnigraph.history.diff import Differ, diff_size, diff_versions
from omnigraph.history.images import TableDiff, TypePair
from omnigraph.model.snapshot import TableVersion
from omnigraph.operations.engines import EMBEDDED, SPARK
from omnigraph.storage.root import GraphRoot

if TYPE_CHECKING:
    from omnigraph.engines.spark.settings import SparkSettings

LARGE_ROWS = 5_000_000


def differ_for(engine: str | None = None, spark: SparkSettings | None = None) -> Differ:
    """How to compare tables. Without an engine, by their size."""
    if engine == EMBEDDED:
        return diff_versions
    if engine == SPARK:
        return _on_spark(spark)
    if engine is not None:
        raise InvalidArgumentError(
            f"There is no engine {engine!r}.", hint=f"Use {EMBEDDED!r} or {SPARK!r}.", engine=engine
        )

    def by_size(
        root: GraphRoot, types: TypePair, old: TableVersion | None, new: TableVersion | None
    ) -> TableDiff:
        return _chosen(root, old, new, spark)(root, types, old, new)

    return by_size


def _chosen(
    root: GraphRoot,
    old: TableVersion | None,
    new: TableVersion | None,
    spark: SparkSettings | None,
) -> Differ:
    rows = sum(version.rows for version in (old, new) if version is not None)
    if rows <= LARGE_ROWS or diff_size(root, old, new) <= LARGE_ROWS:
        return diff_versions
    try:
        return _on_spark(spark)
    except EngineUnavailableError:
        return diff_versions  # slower, and no less right


def _on_spark(spark: SparkSettings | None) -> Differ:
    from omnigraph.engines.spark.comparing import differ_on
    from omnigraph.engines.spark.session import get_session

    return differ_on(get_session(spark))
