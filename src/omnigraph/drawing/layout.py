"""Force-directed layout of nodes, with decreasing temperature.

Deterministic; positions are between 0 and 1 in both directions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

_ROUNDS = 120


def place(count: int, lines: Sequence[tuple[int, int]]) -> npt.NDArray[np.float64]:
    """A place for each of `count` dots."""
    if count == 0:
        return np.zeros((0, 2))
    # On a spiral first: no two in one place, and no symmetry that forces could not break.
    turns = np.arange(count) * 2.399963
    spots = np.sqrt(np.arange(count) + 0.5)[:, None] * np.c_[np.cos(turns), np.sin(turns)]
    spots /= np.abs(spots).max()
    ends = np.array(lines, dtype=np.int64).reshape(-1, 2)
    ideal = np.sqrt(4.0 / count)
    for round_ in range(_ROUNDS):
        spots += _step(spots, ends, ideal, 0.2 * (1 - round_ / _ROUNDS))
    return _framed(spots)


def _step(
    spots: npt.NDArray[np.float64], ends: npt.NDArray[np.int64], ideal: float, most: float
) -> npt.NDArray[np.float64]:
    apart = spots[:, None, :] - spots[None, :, :]
    distance = np.maximum(np.linalg.norm(apart, axis=2), 1e-3)
    push = (apart * (ideal**2 / distance**2)[:, :, None]).sum(axis=1)
    if len(ends):
        along = spots[ends[:, 0]] - spots[ends[:, 1]]
        pull = along * (np.linalg.norm(along, axis=1) / ideal)[:, None]
        np.add.at(push, ends[:, 0], -pull)
        np.add.at(push, ends[:, 1], pull)
    push -= spots * 0.3 * ideal  # parts that nothing joins stay in the picture
    length = np.maximum(np.linalg.norm(push, axis=1, keepdims=True), 1e-9)
    return np.asarray(push / length * np.minimum(length, most))


def _framed(spots: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    low, high = spots.min(axis=0), spots.max(axis=0)
    size = np.where(high - low > 1e-9, high - low, 1.0)
    return np.where(high - low > 1e-9, (spots - low) / size, 0.5)
