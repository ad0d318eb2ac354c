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
KEPT, MISSED, NO_DIFFERENCE = "kept", "MISSED", "no difference"


@dataclass(frozen=True)
class Measure:
    """Samples of one thing by subject. `more`: more is better.

    `target` is what we promise in the measure's unit, `bound` what we promise as a multiple of the
    best rival's time. `same`: whether all subjects gave the same answer; None where there is
    nothing to compare.
    """

    name: str
    unit: str
    samples: Mapping[str, Sequence[float]]
    target: float | None = None
    more: bool = False
    same: bool | None = None
    note: str = ""
    peers: bool = True  # False: subjects are cases of ours, not rivals
    bound: float | None = None

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
        return None if best is None else self._over(self.value(), self.value(best))

    @property
    def ratio_at_best(self) -> float | None:
        """The same of the best samples, which a busy machine spoils last."""
        best = self.best_rival
        return None if best is None else self._over(self.best(), self.best(best))

    def _over(self, ours: float, theirs: float) -> float:
        return theirs / max(ours, 1e-12) if self.more else ours / max(theirs, 1e-12)


@dataclass(frozen=True)
class Promise:
    """A bound, what was measured, and what the median makes of it; the best is told beside it."""

    of: str
    bound: str
    measured: str
    verdict: str
    best: str = ""

    def __str__(self) -> str:
        best = f" (best {self.best})" if self.best and self.verdict != KEPT else ""
        return f"{self.bound}: {self.verdict}{best}"


def promises(measure: Measure, floor: float) -> list[Promise]:
    """What becomes of everything that is promised about a measure."""
    return [p for p in (_of_target(measure), _of_bound(measure, floor)) if p is not None]


def _of_target(measure: Measure) -> Promise | None:
    if measure.target is None or OURS not in measure.samples:
        return None
    value = measure.value()
    kept = value >= measure.target if measure.more else value <= measure.target
    return Promise(
        measure.name,
        f"{'at least' if measure.more else 'at most'} {measure.target:,g} {measure.unit}",
        f"{number(value)} {measure.unit}",
        KEPT if kept else MISSED,
        number(measure.best()),
    )


def _of_bound(measure: Measure, floor: float) -> Promise | None:
    """Where the bound is to be no slower, the noise decides what slower means."""
    ratio, at_best = measure.ratio, measure.ratio_at_best
    if measure.bound is None or ratio is None or at_best is None:
        return None
    if ratio <= measure.bound:
        verdict = KEPT
    elif measure.bound == 1 and ratio <= 1 + floor:
        verdict = NO_DIFFERENCE
    else:
        verdict = MISSED
    return Promise(
        measure.name,
        f"at most {measure.bound:.3g} × the best other",
        f"{ratio:.2f} × {measure.best_rival}",
        verdict,
        f"{at_best:.2f}",
    )


def number(value: float) -> str:
    """A figure with about three digits."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


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
