"""A session of SQL for queries, beside the one that the caller has.

Settings that queries rely on, such as times in UTC, hold whatever the caller's session says;
nothing of the caller's is changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from omnigraph.engines.spark.session import is_classic
from omnigraph.engines.spark.settings import SparkSettings, read_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Where rows are few, moving them between tasks and compiling plans cost more than they do.
_SMALL = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
}

# For each session of the caller: our sessions, by their settings.
_made: WeakKeyDictionary[Any, dict[frozenset[tuple[str, str]], Any]] = WeakKeyDictionary()


@contextmanager
def own_session(
    spark: SparkSession, settings: SparkSettings | None, *, small: bool
) -> Iterator[SparkSession]:
    """The session in which to put a query together. `small`: over a graph of few rows."""
    if not is_classic(spark):
        yield spark
        return
    told = _told(settings or read_settings(), small)
    key, held = frozenset(told.items()), _made.setdefault(spark, {})
    if key not in held:
        held[key] = _beside(spark, told)
    try:
        yield held[key]
    finally:
        _activate(spark)


def _told(settings: SparkSettings, small: bool) -> dict[str, str]:
    """The settings of one of our sessions."""
    every = {**settings.spark_config(), **(_SMALL if small else {})}
    return {name: value for name, value in every.items() if name.startswith("spark.sql.")}


def _beside(spark: SparkSession, told: dict[str, str]) -> SparkSession:
    found = spark.newSession()
    for name, value in told.items():
        found.conf.set(name, value)
    return found


def _activate(spark: Any) -> None:
    """PySpark sets the session that created the last frame as the session of the thread."""
    sessions = import_module("pyspark.sql").SparkSession
    sessions._activeSession = spark
    sessions._get_j_spark_session_class(spark._jvm).setActiveSession(spark._jsparkSession)
