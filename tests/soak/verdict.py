"""What a long run must not show: growth without reason, lost rows, rows that nobody wrote.

The graph keeps its size, so every gauge must level off. The first third of the samples is warm-up;
the medians of the second and the last third are compared.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from tests.soak.gauges import Sample


@dataclass(frozen=True)
class Bound:
    """A gauge may grow by a share of itself and by an amount."""

    share: float
    amount: float


# By the words that a gauge's name contains. Memory includes caches that fill slowly.
BOUNDS: Mapping[str, Bound] = {
    "memory of": Bound(0.10, 48),
    "threads of": Bound(0.0, 3),
    "open files of": Bound(0.0, 12),
    "disk": Bound(0.25, 16),
    "files in": Bound(0.0, 12),
}


# A run of less than ten minutes: pools and caches are still filling, and cleanup, which spares what
# is younger than a minute, has reclaimed next to nothing. Only fast leaks can be seen.
SHORT_S = 600.0
SHORT_BOUNDS: Mapping[str, Bound] = {
    "memory of": Bound(1.0, 200),
    "threads of": Bound(0.0, 12),
    "open files of": Bound(0.0, 60),
}


def growth(samples: Sequence[Sample]) -> list[str]:
    """Gauges that grew without reason, in words."""
    bounds = BOUNDS if samples and samples[-1].at >= SHORT_S else SHORT_BOUNDS
    third = len(samples) // 3
    if third < 3:
        raise ValueError(f"{len(samples)} samples are too few for a verdict")
    middle, last = samples[third : 2 * third], samples[2 * third :]
    found = []
    for name in sorted({name for each in last for name in each.values}):
        before = [each.values[name] for each in middle if name in each.values]
        after = [each.values[name] for each in last if name in each.values]
        if len(before) < 3 or len(after) < 3:
            continue  # a process that was started or ended on the way
        bound = next((bound for words, bound in bounds.items() if words in name), None)
        if bound is None:
            continue
        allowed = median(before) * (1 + bound.share) + bound.amount
        if median(after) > allowed:
            found.append(f"{name}: {median(before):.0f} to {median(after):.0f}")
    return found


@dataclass
class Expected:
    """What the graph must hold and may hold, by the logs of all threads."""

    must: set[str] = field(default_factory=set)
    may: set[str] = field(default_factory=set)

    def differences(self, found: set[str]) -> list[str]:
        lost = sorted(self.must - found)
        extra = sorted(found - self.must - self.may)
        return [f"lost: {key}" for key in lost] + [f"not written by anyone: {key}" for key in extra]


def expected(logs: Sequence[Path]) -> Expected:
    result = Expected()
    for log in logs:
        _replay(log, result)
    return result


def _replay(log: Path, result: Expected) -> None:
    pending: tuple[str, str] | None = None
    for line in log.read_text().splitlines():
        try:
            what, key = json.loads(line)
        except ValueError:
            break  # the process was killed while it wrote this line
        if what in "+-":
            pending = what, key
        elif pending:
            _settle(what, pending, result)
            pending = None
    if pending:
        _settle("unclear", pending, result)


def _settle(what: str, pending: tuple[str, str], result: Expected) -> None:
    sign, key = pending
    if what == "done" and sign == "+":
        result.must.add(key)
    elif what == "done":
        result.must.discard(key)
    elif what == "unclear":
        result.must.discard(key)
        result.may.add(key)
