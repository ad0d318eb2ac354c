"""One query on its way through Spark: its session, snapshot, constants and column names.

Column names are unique within a query.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING, Any

from omnigraph.engines.base import Options
from omnigraph.engines.spark.queries.batches import Constants
from omnigraph.engines.spark.queries.columnnames import Field
from omnigraph.engines.spark.queries.wanted import Wanted
from omnigraph.errors import TypeNotFoundError
from omnigraph.model.catalog import EdgeType, NodeType
from omnigraph.model.snapshot import Snapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Up to here a graph is read as one partition, and nothing has to be moved between tasks.
TINY_ROWS = 100_000
# Up to here a table is sent to every task; Spark's own guess knows nothing of what tasks make.
BROADCAST_ROWS = 200_000


def is_tiny(snapshot: Snapshot) -> bool:
    return sum(version.rows for version in snapshot.tables.values()) <= TINY_ROWS


class Run:
    """What operators ask for while a plan runs."""

    def __init__(
        self,
        spark: SparkSession,
        snapshot: Snapshot,
        params: Mapping[str, Any],
        options: Options,
        wanted: Wanted,
    ) -> None:
        self.spark = spark
        self.snapshot = snapshot
        self.catalog = snapshot.catalog
        self.location = snapshot.location
        now = datetime.now(UTC)
        self.given = Constants(params, now.replace(microsecond=now.microsecond // 1000 * 1000))
        self.options = options
        self._wanted = wanted
        self._numbers = count()
        self.is_tiny = is_tiny(snapshot)

    def fresh(self) -> str:
        """A column name that is not in use."""
        return f"c{next(self._numbers)}"

    def wanted(self, var: str) -> Sequence[Field]:
        return self._wanted.get(var, ())

    def node(self, name: str) -> NodeType:
        found = self.catalog.node(name)
        if found is None:
            raise TypeNotFoundError(f"The graph has no type {name!r} at this commit.")
        return found

    def edge(self, name: str) -> EdgeType:
        found = self.catalog.edge(name)
        if found is None:
            raise TypeNotFoundError(f"The graph has no type {name!r} at this commit.")
        return found

    def rows_of(self, tables: Iterable[NodeType | EdgeType]) -> int:
        """How many rows some tables have."""
        versions = [self.snapshot.table(table.id) for table in tables]
        return sum(version.rows for version in versions if version is not None)

    def hinted(self, frame: DataFrame, rows: int | None = None) -> DataFrame:
        """The right side of a join, with word of how to join it. `rows`: there are no more."""
        if self.is_tiny:
            return frame.hint("shuffle_hash")
        if rows is not None and rows <= BROADCAST_ROWS:
            return frame.hint("broadcast")
        return frame.hint("merge")
