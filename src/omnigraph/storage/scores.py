"""Scores that do not depend on how a row was found, and the fusion of rankings.

A vector index, a scan and a fetch of single rows each compute cosine distance with other
roundings. Whatever finds the candidates, their distances are computed here, once, so that equal
vectors tie, ties break by id, and an answer is the same before and after an index is built.

Pure functions of their arguments; results in a total order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from omnigraph.errors import InvalidArgumentError

RRF_K = 60.0

# Stored vectors are 32-bit, so that distances carry about seven digits; what lies below is noise.
_DISTANCE_DIGITS = 7
# Sums of reciprocals in another order differ in the last bits of a double.
_FUSED_DIGITS = 15


def cosine_distances(vectors: NDArray[Any], query: NDArray[Any]) -> NDArray[np.float32]:
    """1 − cos of the angle between the query and each row; NaN where a row has no direction."""
    rows = np.asarray(vectors, dtype=np.float64)
    target = np.asarray(query, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(target)
        distances = 1.0 - np.einsum("ij,j->i", rows, target) / lengths
    # The sum turns a negative zero into a zero.
    return np.asarray(np.round(distances, _DISTANCE_DIGITS) + 0.0, dtype=np.float32)


def rrf(rankings: Sequence[Any], *, k: float = RRF_K) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Reciprocal rank fusion: ids, best first, with their scores; ties by ascending id.

    A ranking is an array of ids (numpy or Arrow, numbers or strings), best first. An id scores
    1 / (k + rank) in each ranking that holds it, rank counting from 1. If an id comes twice in one
    ranking, its first place counts.
    """
    if not k >= 0:
        raise InvalidArgumentError(f"rrf needs a k of at least 0, not {k}.")
    places = [_first_places(ranking) for ranking in rankings]
    if not places:
        return np.empty(0, dtype=object), np.empty(0)
    ids = np.concatenate([names for names, _ in places])
    ranks = np.concatenate([rank for _, rank in places])
    distinct, back = np.unique(ids, return_inverse=True)
    sums = np.bincount(back, weights=1.0 / (k + ranks), minlength=len(distinct))
    scores = np.asarray(np.round(sums, _FUSED_DIGITS), dtype=np.float64)
    order = np.argsort(-scores, kind="stable")  # `distinct` is sorted: stable means ties by id
    return distinct[order], scores[order]


def _first_places(ranking: Any) -> tuple[NDArray[Any], NDArray[np.int64]]:
    if isinstance(ranking, pa.Array | pa.ChunkedArray):
        ranking = ranking.to_numpy() if _numeric(ranking) else ranking.to_pylist()
    ids = np.asarray(ranking)
    # Python's own strings: numpy's fixed width would cut an id that ends in zero characters.
    ids = np.array(ranking, dtype=object) if ids.dtype.kind == "U" else ids
    names, first = np.unique(ids, return_index=True)
    return names, first.astype(np.int64) + 1


def _numeric(values: pa.Array | pa.ChunkedArray) -> bool:
    return bool(pa.types.is_integer(values.type))
