"""Validation of the response of an embedding provider.

Vectors are finite, have the requested dimension and length one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from omnigraph.errors import EmbeddingError

Vectors = NDArray[np.float32]


def unit_vectors(raw: Any, count: int, dim: int) -> Vectors:
    """`count` vectors of length one, from what a provider answered."""
    try:
        rows = np.asarray(raw, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise EmbeddingError(
            "The embedding provider sent vectors that are not lists of numbers."
        ) from error
    if rows.ndim != 2 or len(rows) != count:
        found = len(rows) if rows.ndim else 0
        raise EmbeddingError(f"The embedding provider sent {found} vectors for {count} texts.")
    if rows.shape[1] != dim:
        raise EmbeddingError(
            f"The embedding model makes vectors of {rows.shape[1]} dimensions; {dim} are needed.",
            hint="Choose a model of that dimension, or change the dimension of the property.",
        )
    lengths = np.linalg.norm(rows, axis=1)
    if not np.isfinite(lengths).all() or not (lengths > 1e-7).all():
        raise EmbeddingError(
            "The embedding provider sent a vector without direction: zeros, or values that are "
            "not finite."
        )
    return np.asarray(rows / lengths[:, None], dtype=np.float32)
