"""Garbage in Spark's Python workers.

A worker collects garbage after every task, and looks through everything that it has imported: with
this package, Arrow and Lance that took 45 ms, most of what a small task costs.

What a task makes is collected as ever.
"""

from __future__ import annotations

import gc
import sys

_modules = 0  # how many were there when we last looked


def spare_collector() -> None:
    """For the beginning of a task: what has been imported is there to stay."""
    global _modules
    if len(sys.modules) != _modules:
        gc.freeze()
        _modules = len(sys.modules)
