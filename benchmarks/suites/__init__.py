"""The suites: each has `run(setting)`, which gives its findings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SEED = 20261116
# In the order in which they are run. What loads the social graph comes before what uses it again.
NAMES = (
    "compile",
    "queries",
    "search",
    "memory",
    "cost",
    "write",
    "versioning",
    "start",
    "load",
    "scale",
)


@dataclass(frozen=True)
class Setting:
    """What a suite is run with. `folder` is scratch that suites share; `scale` 1 is the graph of
    the promises; `full` takes the time that the longest histories and largest loads need."""

    folder: Path
    scale: float = 1.0
    seed: int = SEED
    full: bool = False

    def promised(self, target: float) -> float | None:
        """A promise, if this is the scale that it was made for."""
        return target if self.scale == 1 else None
