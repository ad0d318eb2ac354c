"""The number of partitions of a vector index that a search reads.

Too few probes lose neighbours, and how many are enough depends on the data: clustered embeddings
need a handful, structureless ones nearly all. So it is measured when an index is built (see
`calibrate`), and the result travels in the index's name, where it survives forks, compaction and
incremental builds without a second record that could disagree:

    <column>_vector_p4_9_31      probes for the 10, 100 and 1000 nearest neighbours

A filter that keeps one row in a hundred makes the tenth best hit about the thousandth nearest row,
so a filtered search reads the same curve further out.

Guarantees: without a measurement, or beyond it, every partition is probed.
Deliberately absent: Lance.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

ALL_PARTITIONS = 1 << 20  # Lance takes any number above the real one for "all"

_DEPTHS = (10, 100, 1000)
_TARGET = 0.995  # of true neighbours within the probed partitions; the product promises 0.98
_SAFETY = 1.5  # queries are not drawn from the stored rows
_NAME = re.compile(r"_p(\d+)_(\d+)_(\d+)$")


@dataclass(frozen=True, slots=True)
class ProbeCurve:
    """Measured numbers of probes for 10, 100 and 1000 neighbours."""

    probes: tuple[int, int, int]

    @property
    def suffix(self) -> str:
        return "_p" + "_".join(str(count) for count in self.probes)

    @staticmethod
    def from_name(index_name: str) -> ProbeCurve | None:
        found = _NAME.search(index_name)
        return ProbeCurve((int(found[1]), int(found[2]), int(found[3]))) if found else None

    def at(self, depth: float) -> int:
        """Probes for the `depth` nearest rows, interpolated on a logarithmic scale."""
        if depth > _DEPTHS[-1]:
            return ALL_PARTITIONS
        points = [math.log(value) for value in _DEPTHS]
        return math.ceil(float(np.interp(math.log(max(depth, 1.0)), points, self.probes)))


def sample_queries(rows: NDArray[np.float32], seed: int = 0) -> NDArray[np.float32]:
    """Query vectors like those that users will ask with: near a row, or between two rows."""
    unit = np.random.default_rng(seed).permutation(_unit(rows))
    half = len(unit) // 2
    one, other = unit[:half], unit[half : 2 * half]
    return _unit(np.concatenate([one + 0.25 * other, one + other]))


def calibrate(
    batches: Iterable[NDArray[np.float32]],
    queries: NDArray[np.float32],
    centroids: NDArray[np.float32],
) -> ProbeCurve | None:
    """Measure the curve against the true neighbours of the queries in all rows.

    Returns None when there are too few rows to measure.
    """
    home = _homes_of_neighbours(batches, queries, centroids)
    if home.shape[1] < _DEPTHS[-1]:
        return None
    order = np.argsort(-_closeness(queries, centroids), axis=1)
    place = np.argsort(order, axis=1)  # place[q, p]: when query q would probe partition p
    needed = np.take_along_axis(place, home, axis=1) + 1
    counts = [_enough(needed[:, :depth], len(centroids)) for depth in _DEPTHS]
    return ProbeCurve((counts[0], counts[1], counts[2]))


def _homes_of_neighbours(
    batches: Iterable[NDArray[np.float32]],
    queries: NDArray[np.float32],
    centroids: NDArray[np.float32],
) -> NDArray[np.intp]:
    """The partitions in which each query's nearest rows live, nearest row first."""
    depth = _DEPTHS[-1]
    scores = np.empty((len(queries), 0), dtype=np.float32)
    homes = np.empty((len(queries), 0), dtype=np.intp)
    for batch in batches:
        unit = _unit(batch)
        found = queries @ unit.T
        bar = scores[:, -1:] if scores.shape[1] == depth else -np.inf
        fresh = np.flatnonzero((found > bar).any(axis=0))
        if len(fresh) == 0:
            continue
        home = np.argmax(_closeness(unit[fresh], centroids), axis=1)
        scores = np.concatenate([scores, found[:, fresh]], axis=1)
        homes = np.concatenate([homes, np.broadcast_to(home, (len(queries), len(home)))], axis=1)
        keep = np.argsort(-scores, axis=1)[:, :depth]
        scores = np.take_along_axis(scores, keep, axis=1)
        homes = np.take_along_axis(homes, keep, axis=1)
    return homes


def _closeness(unit: NDArray[np.float32], centroids: NDArray[np.float32]) -> NDArray[np.float32]:
    """Larger is nearer. Lance compares unit vectors with centroids, which are shorter than one."""
    lengths = np.einsum("ij,ij->i", centroids, centroids)
    return np.asarray(unit @ centroids.T - 0.5 * lengths, dtype=np.float32)


def _enough(needed: NDArray[Any], partitions: int) -> int:
    """The fewest probes that hold the target share of neighbours, with room to spare."""
    probes = int(np.quantile(needed, _TARGET, method="higher"))
    return min(partitions, math.ceil(probes * _SAFETY))


def _unit(vectors: NDArray[Any]) -> NDArray[np.float32]:
    """Rows of length one; rows without a direction are left out."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    sound = np.isfinite(lengths[:, 0]) & (lengths[:, 0] > 0)
    unit: NDArray[np.float32] = (vectors[sound] / lengths[sound]).astype(np.float32)
    return unit
