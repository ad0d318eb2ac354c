"""Comparison of tables for a merge: in this process, or on Spark.

Two versions are compared, and a rule that many changed rows must obey is checked against all rows
of a table. What is found, the changes and the rows that hold their keys, comes here, where changes
are combined and committed: that much must fit into the memory of one machine (see `mergeplan`).

Guarantees: the same differences and violations either way. By default, tables of which more than
`LARGE_ROWS` rows must be read are read on Spark, if this machine has one.
Deliberately absent: comparing and checking.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.engines.embedded.migratedview import Passer
from omnigraph.engines.embedded.view import pass_here
from omnigraph.engines.registry import EMBEDDED, SPARK
from omnigraph.errors import EngineUnavailableError, InvalidArgumentError
from omnigraph.history.entitydiff import Differ, diff_size, diff_versions
from omnigraph.history.images import TableDiff, TypePair
from omnigraph.model.snapshot import TableVersion
from omnigraph.rows.keyowners import Holders, KeyShape
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
    _refuse(engine)

    def by_size(
        root: GraphRoot, types: TypePair, old: TableVersion | None, new: TableVersion | None
    ) -> TableDiff:
        return _chosen(root, old, new, spark)(root, types, old, new)

    return by_size


def passer_for(engine: str | None = None, spark: SparkSettings | None = None) -> Passer:
    """How to look for the holders of many keys. Without an engine, by the size of the table."""
    if engine == EMBEDDED:
        return pass_here
    if engine == SPARK:
        return _passing_on_spark(spark)
    _refuse(engine)

    def by_size(root: GraphRoot, version: TableVersion, shape: KeyShape, keys: pa.Array) -> Holders:
        passer: Passer = pass_here
        if version.rows > LARGE_ROWS:
            try:
                passer = _passing_on_spark(spark)
            except EngineUnavailableError:
                passer = pass_here  # slower, and no less right
        return passer(root, version, shape, keys)

    return by_size


def _refuse(engine: str | None) -> None:
    if engine is not None:
        raise InvalidArgumentError(
            f"There is no engine {engine!r}.", hint=f"Use {EMBEDDED!r} or {SPARK!r}.", engine=engine
        )


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
    from omnigraph.engines.spark.session import get_session
    from omnigraph.engines.spark.tablecompare import differ_on

    return differ_on(get_session(spark))


def _passing_on_spark(spark: SparkSettings | None) -> Passer:
    from omnigraph.bulk.keyscan import passer_on
    from omnigraph.engines.spark.session import get_session
    from omnigraph.engines.spark.sparkrunner import SparkRunner

    return passer_on(SparkRunner(get_session(spark)))
