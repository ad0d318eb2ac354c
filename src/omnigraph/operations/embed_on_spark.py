"""The same as `embed`, on executors: they read the rows, ask the provider, and write.

As `embed`; rows do not pass through the driver.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.bulk.rowvectors import Renewal, provider, renew_vectors
from omnigraph.embedding import EmbeddingConfig
from omnigraph.engines.spark.session import get_session
from omnigraph.engines.spark.sparktypes import column_types, spark_schema
from omnigraph.engines.spark.tableframes import table_frame
from omnigraph.errors import PreconditionFailedError
from omnigraph.history.resolve import Target, resolve
from omnigraph.operations.context import Context
from omnigraph.operations.embed import EmbedOptions, details, renewals
from omnigraph.operations.load import LoadOptions, LoadResult
from omnigraph.operations.requests import Load
from omnigraph.operations.verbs import run
from omnigraph.rows.checks import TableType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ATTEMPTS = 3


def embed_on_spark(
    context: Context, options: EmbedOptions, config: EmbeddingConfig | None
) -> LoadResult:
    """Choose, embed and load; again if the branch moved meanwhile."""
    spark = get_session(options.spark)
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return _attempt(spark, context, options, config)
        except PreconditionFailedError:
            if attempt == _ATTEMPTS:
                raise
    raise AssertionError("unreachable")


def _attempt(
    spark: Any, context: Context, options: EmbedOptions, config: EmbeddingConfig | None
) -> LoadResult:
    snapshot = resolve(context.root, Target(options.branch))
    due = renewals(context.root, snapshot, options, config)
    frames = {}
    for table, renewal in due:
        frame = table_frame(spark, context.root.location, snapshot, table)
        frames[table.name] = _renewed(frame, table, renewal, config)
    return run(
        context,
        Load(
            frames,
            options=LoadOptions(
                mode="merge",
                branch=options.branch,
                message=options.message,
                if_commit=snapshot.commit_id,
                spark=options.spark,
                progress=options.progress,
                details=details([table for table, _ in due], config, options),
            ),
        ),
    )


def _renewed(
    frame: DataFrame, table: TableType, renewal: Renewal, config: EmbeddingConfig | None
) -> DataFrame:
    schema = spark_schema(table, list(column_types(table)))

    def renew(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = pa.Table.from_batches([batch])
            made = renew_vectors(table, rows, renewal, _embedder(table, config))
            yield from made.cast(batch.schema).to_batches()

    return frame.mapInArrow(renew, schema)


def _embedder(table: TableType, config: EmbeddingConfig | None) -> Any:
    return None if config is None else provider(table, config)
