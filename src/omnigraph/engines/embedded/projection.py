"""From rows of numbers to columns of values: between stages, and at the end as Arrow batches.

Properties are fetched batch by batch, for returned rows only.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from omnigraph import progress
from omnigraph.engines.embedded.frame import Entities, Frame
from omnigraph.engines.embedded.frameexpr import column
from omnigraph.engines.embedded.run import Run
from omnigraph.ir.expr import Entity
from omnigraph.ir.query import Projection

BATCH_ROWS = 65_536


def project(columns: tuple[Projection, ...], frame: Frame, run: Run) -> Frame:
    """New names for a next stage. Bound nodes stay numbers."""
    frame = repeated(frame)
    entities: dict[str, Entities] = {}
    values: dict[str, pa.Array] = {}
    for item in columns:
        if isinstance(item.expr, Entity):
            entities[item.name] = frame.entities[item.expr.var]
        else:
            values[item.name] = column(item.expr, frame, run)
    return Frame(frame.rows, entities, values)


def repeated(frame: Frame) -> Frame:
    """Weights as repeats of rows."""
    if frame.weight is None:
        return frame
    rows = np.repeat(np.arange(frame.rows), frame.weight)
    whole = frame.take(rows)
    return Frame(whole.rows, whole.entities, whole.values, whole.scores)


def batches(
    columns: tuple[Projection, ...],
    frames: Iterator[Frame],
    schema: pa.Schema,
    run: Run,
    *,
    is_whole: bool,
) -> Iterator[pa.RecordBatch]:
    """The rows of a result, a batch at a time. `is_whole`: there is one frame with all of them.

    The time that the reader spends between two batches is not time of the query.
    """
    done = 0
    for frame in map(repeated, frames):
        run.bounds.returned(done + frame.rows)
        for first in range(0, frame.rows, BATCH_ROWS):
            run.bounds.check()
            total = frame.rows if is_whole else None
            progress.report("fetch", done + first, total, rows=done + first)
            part = frame.cut(first, BATCH_ROWS)
            arrays = [column(item.expr, part, run) for item in columns]
            batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
            since = time.monotonic()
            yield batch
            run.bounds.exclude(since)
        done += frame.rows
