"""The same as `embed`, on executors: they read the rows, ask the provider, and write.

As `embed`; rows do not pass through the driver.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.bulk.rowvectors import Renewal, provider, renew_vectors
from omnigraph.bulk.sourcefiles import SourceFiles
from omnigraph.embedding import EmbeddingConfig
from omnigraph.engines.spark.session import get_session
from omnigraph.engines.spark.sparktypes import column_types, spark_schema
from omnigraph.engines.spark.tableframes import table_frame
from omnigraph.history.log import BranchLog
from omnigraph.intake.loadsources import to_sources
from omnigraph.model.commit import CommitKind, Proposal
from omnigraph.model.snapshot import Snapshot
from omnigraph.model.write import WriteResult
from omnigraph.operations.context import Context
from omnigraph.operations.embed import EmbedOptions, details, renewals
from omnigraph.operations.load import BulkLoad, LoadOptions, LoadResult
from omnigraph.rows.checks import TableType
from omnigraph.writes.groupcommit import write_alone
from omnigraph.writes.request import Conditions, LoneRequest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def embed_on_spark(
    context: Context, options: EmbedOptions, config: EmbeddingConfig | None
) -> LoadResult:
    """Choose, embed and load; again if the branch moved meanwhile."""
    with ExitStack() as loads:
        request = _SparkEmbed(context, options, config, loads)
        return request.result(write_alone(context.root, options.branch, request))


class _SparkEmbed(LoneRequest):
    """A run. Each attempt chooses the rows again and loads them in merge mode."""

    attempts = BulkLoad.attempts
    kind = CommitKind.LOAD

    def __init__(
        self,
        context: Context,
        options: EmbedOptions,
        config: EmbeddingConfig | None,
        loads: ExitStack,
    ) -> None:
        self.conditions = Conditions(context.actor, options.message)
        self._context = context
        self._options = options
        self._config = config
        self._loads = loads
        self._spark = get_session(options.spark)
        self._load: BulkLoad | None = None

    def prepare(self, line: BranchLog, snapshot: Snapshot) -> Proposal | WriteResult:
        options = self._options
        due = renewals(self._context.root, snapshot, options, self._config)
        frames = {}
        for table, renewal in due:
            frame = table_frame(self._spark, self._context.root.location, snapshot, table)
            frames[table.name] = _renewed(frame, table, renewal, self._config)
        how = LoadOptions(
            mode="merge",
            branch=options.branch,
            message=options.message,
            # Which rows are due depends on the history, so nothing may come between.
            if_commit=snapshot.commit_id,
            progress=options.progress,
            details=details([table for table, _ in due], self._config, options),
        )
        files = SourceFiles(to_sources(frames, None, None, None))
        load = BulkLoad(self._context, files, how, self._spark)
        self._load = self._loads.enter_context(load)
        return load.prepare(line, snapshot)

    def result(self, done: WriteResult) -> LoadResult:
        assert self._load is not None
        return self._load.result(done)


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
