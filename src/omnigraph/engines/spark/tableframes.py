"""Tables of a snapshot as DataFrames.

One immutable version; only the columns asked for are read, on executors, file by file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.bulk.stagedkeys import shares
from omnigraph.engines.snapshotreader import visible_ids
from omnigraph.engines.spark.session import parallelism
from omnigraph.engines.spark.sparktypes import (
    column_types,
    physical_names,
    spark_schema,
    to_spark,
)
from omnigraph.engines.spark.workergc import spare_collector
from omnigraph.model.location import Location
from omnigraph.model.snapshot import Snapshot
from omnigraph.rows.checks import TableType
from omnigraph.storage.distributed import list_files, scan_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def table_frame(
    spark: SparkSession,
    location: Location,
    snapshot: Snapshot,
    table: TableType,
    columns: Sequence[str] | None = None,
) -> DataFrame:
    """The rows of a type; columns have the names that people use."""
    names = list(column_types(table)) if columns is None else list(columns)
    schema = spark_schema(table, names)
    version = snapshot.table(table.id)
    if version is None or version.rows == 0:
        return spark.createDataFrame([], schema)
    groups = [
        [number for number, _ in group]
        for group in shares(list_files(location, version), lambda f: f[1], parallelism(spark))
    ]
    ids = visible_ids(snapshot, table)
    blobs = any(item.name in names for item in table.blob_properties)

    def scan(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spare_collector()
        for batch in batches:
            for place in batch.column(0).to_pylist():
                for rows in scan_files(
                    location,
                    version,
                    groups[place],
                    physical_names(table, names),
                    whole_blobs=blobs,
                    ids=ids,
                ):
                    yield to_spark(table, rows, names)

    return spark.range(0, len(groups), 1, len(groups)).mapInArrow(scan, schema)
