"""The suites: each has `run(setting)`, which gives its findings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SEED = 20261116
# In the order in which they are run: from what disturbs others least to what takes longest.
NAMES = ("compile", "queries", "search", "memory", "cost", "write", "versioning", "load", "scale")


@dataclass(frozen=True)
class Setting:
    """What a suite is run with. `folder` is scratch; `scale` 1 is the graph of the promises."""

    folder: Path
    scale: float = 1.0
    seed: int = SEED
