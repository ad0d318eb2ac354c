"""Search inside a match: text conditions, scores, ranks and their fusion.

A ranking is made over the nodes that the match has found, never over more: their row ids go along
to storage, which ranks those alone. Scores and ranks then are columns like any other.

Guarantees: a node has one score and one rank per ranking, in however many rows it stands; ties are
broken by id.
Deliberately absent: indexes and tokens (`storage.search`), and how a text becomes a vector.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.engines.embedded.catalog_view import Space, TypeView
from omnigraph.engines.embedded.frame import Entities, Frame
from omnigraph.engines.embedded.frameexpr import constant, evaluate, is_constant
from omnigraph.engines.embedded.ranks import codes_of_entities
from omnigraph.engines.embedded.rownumbers import Array, places_of
from omnigraph.engines.embedded.run import Run
from omnigraph.engines.expressions.searches import (
    edits_of,
    fused,
    fusion_depth,
    fusion_k,
    kept_rows,
    vector_of,
)
from omnigraph.ir.expr import (
    Fuse,
    RankOf,
    Score,
    TextMatch,
    TextScore,
    VectorScore,
)
from omnigraph.plan.exprtext import render
from omnigraph.plan.operators import Search
from omnigraph.storage.search import (
    DISTANCE,
    SCORE,
    Hits,
    Holder,
    TieBreak,
    cosine_distances,
    text_topk,
    vector_topk,
)
from omnigraph.storage.table import ROW_ID

_DENSE = 16


@dataclass(frozen=True, slots=True)
class Ranking:
    """By row: score and rank; NaN and 0 for rows that the ranking does not hold."""

    scores: Array
    ranks: Array

    def score_values(self, type_: Any) -> pa.Array:
        return pa.array(self.scores, mask=np.isnan(self.scores)).cast(type_)

    def rank_values(self) -> pa.Array:
        return pa.array(self.ranks, pa.int64(), mask=self.ranks == 0)


def search(operator: Search, frame: Frame, run: Run) -> Frame:
    """The frame with a column for every score."""
    keep = kept_rows(operator.keep, run)
    found = list(frame.scores)
    for score in operator.scores:
        found.append((score, _values(score, frame, keep, run)))
    return Frame(frame.rows, frame.entities, frame.values, tuple(found), frame.weight)


def _values(score: Score, frame: Frame, keep: int | None, run: Run) -> pa.Array:
    if isinstance(score, RankOf):
        return _ranking(score.of, frame, keep, run).rank_values()
    return _ranking(score, frame, keep, run).score_values(score.type.to_arrow())


def _ranking(
    score: VectorScore | TextScore | Fuse, frame: Frame, keep: int | None, run: Run
) -> Ranking:
    if isinstance(score, Fuse):
        return _fused(score, frame, run)
    entities = frame.entities[score.property.var]
    if isinstance(score, VectorScore) and not is_constant(score.query):
        return _row_by_row(score, entities, frame, run)
    return _ranked(score, entities, keep, run)


def _ranked(
    score: VectorScore | TextScore, entities: Entities, keep: int | None, run: Run
) -> Ranking:
    """Rank the distinct nodes and spread the result over the rows."""
    space = entities.space
    distinct = _distinct(entities)
    nodes: list[Array] = []
    values: list[Array] = []
    for view, base in zip(space.views, space.bases, strict=True):
        local = distinct - base if base else distinct
        local = local[(local >= 0) & (local < view.numbering.size)]
        hits = _hits(score, view, local, keep, run)
        if hits is None:
            continue
        run.note(f"{render(score)}: {hits.access}")
        name = DISTANCE if isinstance(score, VectorScore) else SCORE
        row_ids = hits.rows.column(ROW_ID).to_numpy()
        nodes.append(view.numbering.to_numbers(row_ids).astype(np.int64) + base)
        values.append(hits.rows.column(name).to_numpy())
    if not nodes:
        return _empty(len(entities.numbers))
    found, scores = np.concatenate(nodes), np.concatenate(values).astype(np.float64)
    ranks = np.arange(1, len(found) + 1)
    if len(nodes) > 1:
        best = scores if isinstance(score, VectorScore) else -scores
        ranks = _positions(best, Entities(space, found.astype(space.dtype)), run)
    return _spread(entities, found, Ranking(scores, ranks))


def _distinct(entities: Entities) -> Array:
    """The nodes of all rows, each once, ascending."""
    numbers = entities.numbers
    if bool(np.all(numbers[1:] > numbers[:-1])):
        return numbers
    if not _is_dense(entities):
        return np.unique(numbers)
    # By a table of marks, which is much quicker than sorting. The last mark belongs to no entity.
    marks = np.zeros(entities.space.size + 1, bool)
    marks[numbers] = True
    return np.flatnonzero(marks[:-1])


def _spread(entities: Entities, found: Array, ranking: Ranking) -> Ranking:
    """By row, what is known by node."""
    places = entities.numbers
    size = entities.space.size + 1  # the last place belongs to no entity
    if not _is_dense(entities):
        distinct, places = np.unique(places, return_inverse=True)
        found, size = places_of(distinct, found), len(distinct)
    by_node = _empty(size)
    by_node.scores[found], by_node.ranks[found] = ranking.scores, ranking.ranks
    return Ranking(by_node.scores.take(places), by_node.ranks.take(places))


def _is_dense(entities: Entities) -> bool:
    """Whether a table of the whole space costs less than sorting the rows."""
    return len(entities.numbers) * _DENSE >= entities.space.size


def _hits(
    score: VectorScore | TextScore, view: TypeView, numbers: Array, keep: int | None, run: Run
) -> Hits | None:
    """Storage's answer for the nodes of one type."""
    physical, table = view.physical(score.property.name), view.resident.table
    if table is None or not len(numbers) or physical is None:
        return None
    if not view.resident.has(physical[0]):
        return None
    rows = view.numbering.to_row_ids(numbers)
    keep = None if keep is None or keep >= len(numbers) else keep
    run.bounds.scan(len(numbers))
    if isinstance(score, VectorScore):
        query = vector_of(score, view.type, run, run.options.embed)
        if query is None:
            return None
        held = view.arrays.searched(physical[0])
        holder = None if held is None else _holder(held, view)
        ties = _tie_break(view, run)
        return vector_topk(
            table, physical[0], query, keep, rows=rows, tie_break=ties, holder=holder
        )
    text = constant(score.query, run)
    if text is None:
        return None
    edits = edits_of(score.max_edits, run)
    return text_topk(
        table,
        physical[0],
        text,
        keep,
        mode=score.mode,
        max_edits=edits,
        rows=rows,
        tie_break=_tie_break(view, run),
    )


def _holder(held: pa.Array, view: TypeView) -> Holder:
    return lambda row_ids: held.take(pa.array(view.numbering.to_numbers(row_ids)))


def _tie_break(view: TypeView, run: Run) -> TieBreak:
    """The order of ids, from memory where that holds them."""
    space = Space.over([view])

    def order(row_ids: Array) -> Array:
        return codes_of_entities(Entities(space, view.numbering.to_numbers(row_ids)), run).codes

    return order


def _row_by_row(score: VectorScore, entities: Entities, frame: Frame, run: Run) -> Ranking:
    """Distances between two vectors of the same row."""
    ours = evaluate(score.property, frame, run)
    theirs = evaluate(score.query, frame, run)
    known = np.flatnonzero(
        (ours.is_valid().to_numpy(zero_copy_only=False))
        & (theirs.is_valid().to_numpy(zero_copy_only=False))
    )
    found = _empty(frame.rows)
    left, right = _matrix(ours, known), _matrix(theirs, known)
    for place, row in enumerate(known.tolist()):
        found.scores[row] = cosine_distances(left[place : place + 1], right[place])[0]
    held = np.flatnonzero(~np.isnan(found.scores))
    found.ranks[held] = _positions(found.scores[held], entities.take(held), run)
    return found


def _matrix(vectors: pa.Array, rows: Array) -> Array:
    chosen = vectors.take(pa.array(rows))
    width = chosen.type.list_size
    flat: Array = chosen.flatten().to_numpy(zero_copy_only=False)
    return flat.reshape(-1, width)


def _fused(score: Fuse, frame: Frame, run: Run) -> Ranking:
    k, depth = fusion_k(score, run), fusion_depth(run.options)
    found = _empty(frame.rows)
    ranks = [_ranking(part, frame, depth, run).ranks for part in score.rankings]
    found.scores[:] = fused(ranks, k)
    rows = np.flatnonzero(~np.isnan(found.scores))
    first = frame.entities[score.rankings[0].property.var]
    found.ranks[rows] = _positions(-found.scores[rows], first.take(rows), run)
    return found


def _positions(keys: Array, nodes: Entities, run: Run) -> Array:
    """From 1: the place of each node by ascending key, ties by id; equal nodes share a place."""
    ids = codes_of_entities(nodes, run).codes
    order = np.lexsort([ids, keys])
    fresh = np.ones(len(order), bool)
    fresh[1:] = (np.diff(keys[order]) != 0) | (np.diff(ids[order]) != 0)
    places = np.empty(len(order), np.int64)
    places[order] = np.cumsum(fresh)
    return places


def _empty(rows: int) -> Ranking:
    return Ranking(np.full(rows, np.nan), np.zeros(rows, np.int64))


# Conditions


def text_matches(expr: TextMatch, entities: Entities, run: Run) -> pa.Array:
    """Whether the property of each row's node matches."""
    as_score = TextScore(expr.mode, expr.property, expr.query, expr.max_edits)
    ranked = _ranked(as_score, entities, None, run)
    return pa.array(ranked.ranks > 0)
