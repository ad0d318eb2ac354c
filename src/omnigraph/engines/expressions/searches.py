"""Constants and fusion of search functions.

Guarantees: both engines embed a text, cut a fused ranking and add its parts up in the same way.
A fused ranking takes the best `Options.rank_depth` nodes of each of its parts, however many rows
the query returns, so that its scores and their order do not depend on `limit`.
Deliberately absent: indexes and tokens (`storage.search`), and how a text becomes a vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omnigraph.engines.base import Embedder, Options
from omnigraph.engines.expressions.evaluate import Given, constant
from omnigraph.errors import EmbeddingError, InvalidArgumentError
from omnigraph.ir.expr import Expr, Fuse, VectorScore
from omnigraph.model.catalog import EdgeType, NodeType
from omnigraph.storage.search import DEFAULT_MAX_EDITS

_FUSED_DIGITS = 15


def edits_of(expr: Expr | None, given: Given) -> int:
    """How many edits a fuzzy search allows."""
    value = None if expr is None else constant(expr, given)
    return DEFAULT_MAX_EDITS if value is None else int(value)


def vector_of(
    score: VectorScore, table: NodeType | EdgeType, given: Given, embed: Embedder | None
) -> Any | None:
    """The vector to be near to; a text is embedded with the property's own model."""
    value = constant(score.query, given)
    if not isinstance(value, str):
        return value
    return embedded(value, table, score.property.name, score.property.type.dim or 0, embed)


def embedded(
    text: str, table: NodeType | EdgeType, name: str, dim: int, embed: Embedder | None
) -> Any:
    prop = table.get(name)
    model = prop.embed.model if prop is not None and prop.embed is not None else None
    if embed is None:
        raise EmbeddingError(
            f"The query compares {table.name}.{name} with a text, and no embedding is configured.",
            hint="Configure an embedding provider, or give the query a vector.",
        )
    vector = embed(text, model, dim)
    if len(vector) != dim:
        raise EmbeddingError(
            f"The model gave {len(vector)} numbers; {table.name}.{name} holds {dim}.",
            hint="Embed queries with the model that made the stored vectors.",
        )
    return vector


def fusion_k(score: Fuse, given: Given) -> Any:
    """The k of `rrf`."""
    k = constant(score.k, given)
    if k is None or k < 0:
        raise InvalidArgumentError(f"The k of `rrf` is {k}; it must be 0 or more.")
    return k


def fusion_depth(options: Options) -> int | None:
    """How many nodes of each part have a rank; None for all."""
    depth = options.rank_depth
    if depth is not None and depth < 1:
        raise InvalidArgumentError(
            f"The rank depth is {depth}; it must be 1 or more, or None for no bound.",
            argument="rank_depth",
        )
    return depth


def kept_rows(keep: Expr | None, given: Given) -> int | None:
    """How many of the best rows a search has to find; None for all."""
    value = None if keep is None else constant(keep, given)
    return None if value is None else int(value)


def fused(ranks: Sequence[NDArray[Any]], k: Any) -> NDArray[np.float64]:
    """Fused scores by row from the ranks of each part, 0 for none; NaN where no part has a rank."""
    rows = len(ranks[0])
    total, held = np.zeros(rows), np.zeros(rows, bool)
    for part in ranks:
        here = part > 0
        total[here] += 1.0 / (k + part[here])
        held |= here
    return np.where(held, np.round(total, _FUSED_DIGITS), np.nan)
