"""Samples, and what may be said about two of them.

Guarantees: figures are medians with their middle half; two subjects differ only by more than the
noise floor, which is how far two runs of the same thing were apart in the same session.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median, quantiles

OURS = "omnigraph"
AGAIN = "omnigraph again"  # the same once more, for the noise floor
LEAST_FLOOR = 0.05


@dataclass(frozen=True)
class Measure:
    """Samples of one thing by subject. `more`: more is better. `target`: what we promise.

    `same`: whether all subjects gave the same answer; None where there is nothing to compare.
    """

    name: str
    unit: str
    samples: Mapping[str, Sequence[float]]
    target: float | None = None
    more: bool = False
    same: bool | None = None
    note: str = ""
    peers: bool = True  # False: subjects are cases of ours, not rivals

    def value(self, subject: str = OURS) -> float:
        return median(self.samples[subject])

    def best(self, subject: str = OURS) -> float:
        return max(self.samples[subject]) if self.more else min(self.samples[subject])

    def spread(self, subject: str = OURS) -> tuple[float, float]:
        """The middle half of the samples."""
        values = list(self.samples[subject])
        if len(values) < 2:
            return values[0], values[0]
        low, _, high = quantiles(values, n=4, method="inclusive")
        return low, high

    @property
    def rivals(self) -> list[str]:
        return [s for s in self.samples if s not in (OURS, AGAIN)] if self.peers else []

    @property
    def best_rival(self) -> str | None:
        order = sorted(self.rivals, key=self.value, reverse=self.more)
        return order[0] if order and OURS in self.samples else None

    @property
    def ratio(self) -> float | None:
        """Ours over the best rival's; below 1 we are better, whichever way is better."""
        best = self.best_rival
        if best is None:
            return None
        ours, theirs = self.value(), self.value(best)
        return theirs / max(ours, 1e-12) if self.more else ours / max(theirs, 1e-12)

    @property
    def promise(self) -> str:
        """What becomes of the target; empty without one."""
        if self.target is None:
            return ""
        bound = f"{'at least' if self.more else 'at most'} {self.target:g}"
        if self._within(self.value()):
            return f"{bound}: kept"
        # A busy machine spoils the median before it spoils the best.
        if self._within(self.best()):
            return f"{bound}: kept at best ({self.best():.3g})"
        return f"{bound}: MISSED (best {self.best():.3g})"

    def _within(self, value: float) -> bool:
        assert self.target is not None
        return value >= self.target if self.more else value <= self.target


@dataclass(frozen=True)
class Findings:
    """What a suite found, who was left out and why, and in which versions."""

    measures: list[Measure]
    skipped: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)


def noise_floor(measures: Sequence[Measure]) -> float:
    """How far apart the same thing was from itself, at nine in ten of the measures."""
    apart = sorted(
        abs(math.log(m.value(AGAIN) / m.value())) for m in measures if AGAIN in m.samples
    )
    if not apart:
        return LEAST_FLOOR
    return max(LEAST_FLOOR, math.expm1(apart[int(0.9 * (len(apart) - 1))]))


def verdict(measure: Measure, floor: float) -> str:
    """Ours beside the best rival, in words."""
    ratio, best = measure.ratio, measure.best_rival
    if ratio is None or best is None:
        return ""
    if abs(math.log(max(ratio, 1e-12))) <= math.log1p(floor):
        return f"no difference from {best}"
    return f"{ratio:.2f} × {best}"


def times_ms(
    operation: Callable[[], object],
    repeats: int,
    warm: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> list[float]:
    """Milliseconds of each of some calls, after a few that do not count."""
    for _ in range(warm):
        operation()
    found = []
    for _ in range(repeats):
        begun = clock()
        operation()
        found.append(1000 * (clock() - begun))
    return found


def timed_s(action: Callable[[], object]) -> float:
    begun = time.perf_counter()
    action()
    return time.perf_counter() - begun
