"""The matches of a search: ids and scores of nodes, as DataFrames.

Guarantees: scores come from the same functions as in the embedded engine, over the whole table; the
caller keeps those of the nodes that a match has found.
Deliberately absent: ranks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from omnigraph.engines.expressions.evaluate import constant
from omnigraph.engines.expressions.searches import edits_of, vector_of
from omnigraph.engines.spark.queries.columnnames import Bound
from omnigraph.engines.spark.queries.run import Run
from omnigraph.engines.spark.queries.scans import by_files
from omnigraph.ir.expr import TextScore, VectorScore
from omnigraph.model.catalog import ID_COLUMN, NodeType
from omnigraph.model.snapshot import TableVersion
from omnigraph.storage.distributed import scan_files
from omnigraph.storage.search import SCORE, cosine_distances, query_vector, text_topk
from omnigraph.storage.table import open_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Hits = tuple["DataFrame", Bound, str]


def hits_of(score: VectorScore | TextScore, types: tuple[str, ...], run: Run) -> Hits:
    """The nodes of some types that have a score, and the column that holds it."""
    from pyspark.sql import functions as f

    bound = Bound(types, run.fresh(), run.fresh() if len(types) != 1 else None)
    column = run.fresh()
    schema = f"{bound.id_column} string, {column} float"
    frames: list[DataFrame] = []
    for name in types:
        frame = _frame(score, run.node(name), schema, run)
        if frame is not None:
            kind = bound.type_column
            frames.append(frame if kind is None else frame.withColumn(kind, f.lit(name)))
    if not frames:
        frame = run.spark.createDataFrame([], schema).coalesce(1)
        kind = bound.type_column
        frames = [frame if kind is None else frame.withColumn(kind, f.lit(""))]
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.unionByName(frame)
    if run.is_tiny and len(frames) > 1:
        whole = whole.coalesce(1)
    return whole, bound, column


def _frame(
    score: VectorScore | TextScore, table: NodeType, schema: str, run: Run
) -> DataFrame | None:
    version, item = run.snapshot.table(table.id), table.get(score.property.name)
    if version is None or version.rows == 0 or item is None:
        return None
    if item.column not in open_table(run.location, version).schema.names:
        return None
    if isinstance(score, TextScore):
        return _by_text(score, item.column, version, schema, run)
    given = vector_of(score, table, run.given, run.options.embed)
    if given is None:
        return None
    target = query_vector(item.type.to_arrow(), item.column, given)
    return _by_vector(target, item.column, version, schema, run)


def _by_text(
    score: TextScore, column: str, version: TableVersion, schema: str, run: Run
) -> DataFrame | None:
    text = constant(score.query, run.given)
    if text is None:
        return None
    root, mode, edits = run.location, score.mode, edits_of(score.max_edits, run.given)
    names = _names(schema)

    def look_up(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for _ in range(batch.num_rows):
                table = open_table(root, version)
                hits = text_topk(table, column, text, None, mode=mode, max_edits=edits)
                yield from _shaped(hits.rows.column(ID_COLUMN), hits.rows.column(SCORE), names)

    return run.spark.range(0, 1, 1, 1).mapInArrow(look_up, schema)


def _by_vector(target: Any, column: str, version: TableVersion, schema: str, run: Run) -> DataFrame:
    location, names = run.location, _names(schema)

    def compare(files: Sequence[int]) -> Iterator[pa.RecordBatch]:
        for rows in scan_files(location, version, files, [ID_COLUMN, column]):
            known = rows.filter(rows.column(column).is_valid())
            distances = cosine_distances(_matrix(known.column(column)), target)
            held = pa.array(distances, mask=np.isnan(distances))
            yield from _shaped(known.column(ID_COLUMN), held, names)

    return by_files(compare, version, schema, run)


def _matrix(vectors: pa.Array) -> Any:
    flat = vectors.flatten().to_numpy(zero_copy_only=False)
    return flat.reshape(-1, vectors.type.list_size)


def _names(schema: str) -> list[str]:
    return [part.split()[0] for part in schema.split(", ")]


def _shaped(ids: Any, scores: Any, names: list[str]) -> Iterator[pa.RecordBatch]:
    """Rows that have a score, in the columns of the flow."""
    table = pa.table([ids, scores], names=names)
    yield from table.filter(table.column(1).is_valid()).to_batches()
