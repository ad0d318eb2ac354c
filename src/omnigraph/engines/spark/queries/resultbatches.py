"""From rows of a flow to the batches of a result.

The last projection runs in tasks, which send Arrow batches as bytes; the driver only unpacks them,
partition by partition, as they are asked for.

Batches have the schema of the result, and rows their order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from omnigraph.engines.expressions.evaluate import column
from omnigraph.engines.spark.queries.batches import BatchRows
from omnigraph.engines.spark.queries.flow import Flow
from omnigraph.engines.spark.queries.run import Run
from omnigraph.engines.spark.queries.sortorder import in_order
from omnigraph.ir.query import Projection

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PACKED = "packed binary"


def packed(flow: Flow, columns: tuple[Projection, ...], schema: pa.Schema, run: Run) -> DataFrame:
    """One row per batch of the result: its bytes."""
    layout, given, catalog = flow.layout, run.given, run.catalog

    def project(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            batch = _repeated(batch, layout.weight)
            rows = BatchRows(batch, replace(layout, weight=None), given, catalog)
            arrays = [column(item.expr, rows) for item in columns]
            made = pa.RecordBatch.from_arrays(arrays, schema=schema)
            yield pa.RecordBatch.from_pydict({"packed": [_bytes(made)]})

    return in_order(flow.pruned(run)).frame.mapInArrow(project, _PACKED)


def unpack(frame: DataFrame, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The batches of a result, in order."""
    for row in frame.toLocalIterator(prefetchPartitions=True):
        with pa.ipc.open_stream(bytes(row["packed"])) as reader:
            for batch in reader:
                if batch.num_rows:
                    yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)


def _bytes(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _repeated(batch: pa.RecordBatch, weight: str | None) -> pa.RecordBatch:
    """Weights as repeats of rows."""
    if weight is None:
        return batch
    rows = np.repeat(np.arange(batch.num_rows), batch.column(weight).to_numpy())
    return batch.take(pa.array(rows))
