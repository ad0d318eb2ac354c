"""Search inside a match: text conditions, scores, ranks and their fusion.

Vectors are compared where they are read, file by file; texts are looked up by one task per table,
through its index. What they find is joined to the rows of the match by id, so that a ranking holds
the nodes of the match and no others.

Guarantees: a node has one score and one rank per ranking, in however many rows it stands; ties are
broken by id; a fused ranking looks as deep into its parts as in the embedded engine. How many rows
are returned changes no score, so `Search.keep` is not needed here.
Deliberately absent: vector indexes. Every vector is compared, so that neighbours are exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from omnigraph.engines.expressions.evaluate import evaluate, is_constant
from omnigraph.engines.expressions.searches import fused, fusion_depth, fusion_k
from omnigraph.engines.spark.queries.batches import BatchRows
from omnigraph.engines.spark.queries.expansion import same
from omnigraph.engines.spark.queries.flow import Flow, Key, settled, through_tasks
from omnigraph.engines.spark.queries.run import Run
from omnigraph.engines.spark.queries.searchmatches import hits_of
from omnigraph.engines.spark.queries.sortorder import by_entity
from omnigraph.ir.expr import Expr, Fuse, RankOf, Score, TextMatch, TextScore, VectorScore
from omnigraph.ir.fold import parts
from omnigraph.plan.operators import Search
from omnigraph.plan.trees import without_repeats
from omnigraph.storage.search import cosine_distances

if TYPE_CHECKING:
    from pyspark.sql import Column

Ranked = VectorScore | TextScore | Fuse


def looked_up(flow: Flow, predicates: Sequence[Expr], run: Run) -> Flow:
    """The flow with a mark for every text condition of some predicates."""
    from pyspark.sql import functions as f

    every = (part for p in predicates for part in parts(p) if isinstance(part, TextMatch))
    for match in without_repeats(every):
        if flow.layout.match(match) is not None:
            continue
        score = TextScore(match.mode, match.property, match.query, match.max_edits)
        flow, column = _found(flow, score, run)
        mark = run.fresh()
        flow = flow.on(flow.frame.withColumn(mark, f.col(column).isNotNull()))
        flow = flow.on(
            flow.frame,
            replace(flow.layout, matches=(*flow.layout.matches, (match, mark))),
        ).pruned(run)
    return flow


def search(operator: Search, flow: Flow, run: Run) -> Flow:
    """The flow with a column for every score."""
    for score in operator.scores:
        flow, column = _column(flow, score, run)
        layout = replace(flow.layout, scores=(*flow.layout.scores, (score, column)))
        flow = flow.on(flow.frame, layout)
    return flow.pruned(run)


def _column(flow: Flow, score: Score, run: Run) -> tuple[Flow, str]:
    if not isinstance(score, RankOf):
        return _scored(flow, score, run)
    flow, column = _scored(flow, score.of, run)
    return _ranked(flow, score.of, column, None, run)


def _scored(flow: Flow, score: Ranked, run: Run) -> tuple[Flow, str]:
    if isinstance(score, Fuse):
        return _fused(flow, score, run)
    if isinstance(score, VectorScore) and not is_constant(score.query):
        return _row_by_row(flow, score, run)
    return _found(flow, score, run)


def _found(flow: Flow, score: VectorScore | TextScore, run: Run) -> tuple[Flow, str]:
    """Scores that are looked up by node."""
    bound = flow.layout.entities[score.property.var]
    hits, node, column = hits_of(score, bound.types, run)
    on = reduce(lambda a, b: a & b, same(bound, node))
    return flow.on(flow.frame.join(run.hinted(hits), on, "left")), column


def _row_by_row(flow: Flow, score: VectorScore, run: Run) -> tuple[Flow, str]:
    """Distances between two vectors of the same row."""
    layout, given, name = flow.layout, run.given, run.fresh()

    def compare(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = BatchRows(batch, layout, given)
            found = _distances(evaluate(score.property, rows), evaluate(score.query, rows))
            yield batch.append_column(name, found)

    flow = flow.pruned(run)
    return flow.on(through_tasks(flow.frame, compare, [(name, "float")])), name


def _distances(ours: pa.Array, theirs: pa.Array) -> pa.Array:
    found = np.full(len(ours), np.nan, np.float32)
    for row, (left, right) in enumerate(zip(ours, theirs, strict=True)):
        if left.is_valid and right.is_valid:
            pair = [np.asarray(side.as_py(), np.float32) for side in (left, right)]
            found[row] = cosine_distances(pair[0].reshape(1, -1), pair[1])[0]
    return pa.array(found, mask=np.isnan(found))


# Ranks


def _ranked(
    flow: Flow, score: Ranked, column: str, depth: int | None, run: Run
) -> tuple[Flow, str]:
    """From 1: the place of each row's node by its score, ties by id. With a depth, no further."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    var = score.rankings[0].property.var if isinstance(score, Fuse) else score.property.var
    # The rows are looked at twice: to rank their nodes, and to be given the ranks.
    layout = replace(flow.layout, scores=(*flow.layout.scores, (score, column)))
    flow = settled(flow.on(flow.frame, layout), run)
    bound = flow.layout.entities[var]
    names = {c: run.fresh() for c in (*bound.identity, column)}
    nodes = flow.frame.where(f.col(column).isNotNull())
    nodes = nodes.select(*(f.col(old).alias(new) for old, new in names.items())).distinct()
    there = Flow(nodes, flow.layout)
    there, ties = by_entity(there, replace(bound, properties={}).renamed(names), False, run)
    best = Key(names[column], not isinstance(score, VectorScore))
    order = [key.spark() for key in (best, *ties)]
    place, ranked = run.fresh(), there.frame
    if depth is not None:
        kinds = [] if bound.type_column is None else [names[bound.type_column]]
        inside = Window.partitionBy(*kinds) if kinds else Window.partitionBy(f.lit(0))
        ranked = ranked.withColumn(place, f.row_number().over(inside.orderBy(*order)))
        ranked = ranked.where(f.col(place) <= depth)
    whole = Window.partitionBy(f.lit(0)).orderBy(*order)
    ranked = ranked.withColumn(place, f.row_number().over(whole).cast("bigint"))
    ranked = ranked.select(*names.values(), place)
    on = reduce(lambda a, b: a & b, _alike(names))
    return flow.on(flow.frame.join(run.hinted(ranked), on, "left")), place


def _alike(names: dict[str, str]) -> list[Column]:
    from pyspark.sql import functions as f

    return [f.col(old).eqNullSafe(f.col(new)) for old, new in names.items()]


def _fused(flow: Flow, score: Fuse, run: Run) -> tuple[Flow, str]:
    k, depth, name = fusion_k(score, run.given), fusion_depth(run.options), run.fresh()
    places: list[str] = []
    for part in score.rankings:
        flow, column = _scored(flow, part, run)
        flow, place = _ranked(flow, part, column, depth, run)
        places.append(place)
        # Kept as a score, so that the next part does not prune it away.
        layout = replace(flow.layout, scores=(*flow.layout.scores, (RankOf(part), place)))
        flow = flow.on(flow.frame, layout)

    def fuse(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            found = fused([_numbers(batch.column(place)) for place in places], k)
            yield batch.append_column(name, pa.array(found, mask=np.isnan(found)))

    flow = flow.pruned(run)
    return flow.on(through_tasks(flow.frame, fuse, [(name, "double")])), name


def _numbers(ranks: pa.Array) -> Any:
    return ranks.fill_null(0).to_numpy(zero_copy_only=False)
