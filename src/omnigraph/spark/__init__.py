"""OmniGraph inside your own Spark programs.

    import omnigraph

    omnigraph.spark.register(spark)
    people = spark.read.format("omnigraph").options(graph="shop", type="Person").load()
    omnigraph.spark.create_views(spark, "shop")
    spark.sql("select count(*) from Person where age > 30")

- `register` makes the data source `omnigraph` known to a session.
- `create_views` makes a view for every type of a snapshot, all of one commit.

A read is pinned to one commit when it is planned; a write goes through the checks and the door that
every load goes through.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from omnigraph.arguments import checked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["create_views", "register"]


@checked
def register(spark: SparkSession) -> None:
    """Make `format("omnigraph")` known to a session.

    Relative addresses of graphs count from the folder that the program is in now, and a table is
    read in as many partitions as there are cores now, or a multiple. The session's
    `spark.sql.python.filterPushdown.enabled` is switched on, for reads with `pushFilters`.
    """
    from omnigraph.engines.spark.session import parallelism
    from omnigraph.spark.source import source_at

    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    spark.dataSource.register(source_at(os.getcwd(), parallelism(spark)))


@checked
def create_views(
    spark: SparkSession,
    graph: str,
    *,
    branch: str = "main",
    commit: str | None = None,
    prefix: str = "",
    storage_options: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """A temporary view for each type, named after it; returns type → view. All show one commit.
    `storage_options`: as of `omnigraph.open`."""
    from omnigraph.history.resolve import Target
    from omnigraph.operations.lifecycle import attach
    from omnigraph.operations.requests import PinSnapshot
    from omnigraph.operations.verbs import run
    from omnigraph.storage.location import parse_location

    register(spark)
    context = attach(parse_location(graph, storage_options=storage_options))
    snapshot = run(context, PinSnapshot(Target(branch, commit)))
    found = {}
    for table in snapshot.catalog.tables():
        reader = spark.read.format("omnigraph").option("graph", context.root.uri)
        reader = reader.option("branch", branch).option("commit", snapshot.commit_id)
        reader = reader.option("type", table.name)
        for name, value in (storage_options or {}).items():
            reader = reader.option(f"storage.{name}", value)
        view = f"{prefix}{table.name}"
        reader.load().createOrReplaceTempView(view)
        found[table.name] = view
    return found
