"""Frames as inputs: a Spark DataFrame or table, or columns in memory, laid down as files.

A DataFrame may come out differently when it is computed again, and a load may need to read its
input twice. So its rows are written to scratch files once, on executors, and loaded from there.

Rows do not pass through the driver; scratch files lie below the graph's own root, in a folder of
their own, which the load removes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa

from omnigraph.engines.spark.driverenv import carried, lent
from omnigraph.engines.spark.sparkerrors import translated
from omnigraph.storage.inputs import InputFile, write_output

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FILE_BYTES = 64 << 20


def spool(frame: DataFrame, folder: str) -> list[InputFile]:
    """Lay a DataFrame down as Arrow files, in the order of its partitions."""
    variables = carried()

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        partition = context.partitionId() if context else 0
        for number, held in enumerate(gathered(batches)):
            address = f"{folder}/{partition:06d}-{number:06d}-{uuid4().hex}.arrow"
            data = to_ipc(held)
            with lent(variables):
                write_output(address, data)
            yield pa.RecordBatch.from_pydict({"address": [address], "size": [len(data)]})

    with translated("lay the rows down"):
        rows = frame.mapInArrow(write, "address string, size long").collect()
    return sorted((InputFile(row[0], row[1]) for row in rows), key=lambda file: file.address)


def gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += batch.nbytes
        if size >= _FILE_BYTES:
            yield pa.Table.from_batches(held)
            held, size = [], 0
    if held:
        yield pa.Table.from_batches(held)


def to_ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=65_536)
    return bytes(sink.getvalue())


def is_spark_frame(value: Any) -> bool:
    return type(value).__module__.startswith("pyspark.sql") and hasattr(value, "mapInArrow")
