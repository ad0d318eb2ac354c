"""Garbage in Spark's Python workers.

A worker collects garbage after every task, and looks through everything that it has imported: with
this package, Arrow and Lance that took 45 ms, most of what a small task costs.

Guarantees: what a task makes after the first call is collected as ever.
Deliberately absent: the driver's garbage, which is the program's.
"""

from __future__ import annotations

import gc
from functools import cache


@cache
def spare_collector() -> None:
    """For the beginning of a task: what is there the first time is there to stay."""
    gc.freeze()
