"""Search over one table version: nearest vectors, text matches, fused rankings.

    nearest = vector_topk(table, "embedding", query, 10, rows=reached)
    nearest.rows      _rowid, id, distance; best first, ties by id
    nearest.access    how it was found, for `explain`

This is the front of `vectors`, `text` and `scores`.

The filter and the allowed rows apply before the ranking, never after it, so that a selective filter
does not thin out the answer; rows that no index covers yet are found too.
"""

from omnigraph.storage.scores import RRF_K, cosine_distances, rrf
from omnigraph.storage.searchresult import DISTANCE, SCORE, Access, Hits, Path, TieBreak
from omnigraph.storage.text import DEFAULT_MAX_EDITS, MAX_EDITS, text_topk
from omnigraph.storage.vectors import Holder, VectorTuning, query_vector, vector_topk

__all__ = [
    "DEFAULT_MAX_EDITS",
    "DISTANCE",
    "MAX_EDITS",
    "RRF_K",
    "SCORE",
    "Access",
    "Hits",
    "Holder",
    "Path",
    "TieBreak",
    "VectorTuning",
    "cosine_distances",
    "query_vector",
    "rrf",
    "text_topk",
    "vector_topk",
]
