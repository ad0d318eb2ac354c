"""How much the reliability tests do: a part of it in `make test`, all of it in `make crash`.

    OMNIGRAPH_CRASH=full       every window twice, every fault, all that `make crash` promises
    POWER_CUTS=1000            how many power cuts at random, instead of the usual number
    UNIVERSES=5000             how many model universes, instead of the usual number
    LINEAGES=20000             how many histories of the model, instead of 200 or all
    OMNIGRAPH_FIGURES=folder   where figures are kept for the report

Figures are one small JSON file per test, so that processes side by side do not meet.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from uuid import uuid4

FULL = os.environ.get("OMNIGRAPH_CRASH") == "full"
USUAL_UNIVERSES, USUAL_CYCLES = 300, 200
UNIVERSES = int(os.environ.get("UNIVERSES") or USUAL_UNIVERSES)
USUAL_CUTS = 500
RANDOM_CUTS = int(os.environ.get("POWER_CUTS") or (USUAL_CUTS if FULL else 50))
# Histories of the model: cheap, and many of them are needed to meet rare shapes of the graph.
USUAL_LINEAGES = 5000
LINEAGES = int(os.environ.get("LINEAGES") or (USUAL_LINEAGES if FULL else 200))
KILL_CYCLES = int(os.environ.get("KILL_CYCLES") or USUAL_CYCLES)


def note(campaign: str, **figures: Any) -> None:
    """Keep figures of a campaign, if somebody wants a report."""
    folder = os.environ.get("OMNIGRAPH_FIGURES")
    if not folder:
        return
    entry = {"campaign": campaign, **figures}
    Path(folder, f"{uuid4().hex}.json").write_text(json.dumps(entry, sort_keys=True))
