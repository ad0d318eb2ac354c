"""The engine interface, query limits and cancellation.

An engine reads one snapshot and returns values; every bound that is reached raises
`LimitExceededError` with its resource, and every cancellation `CancelledError`, both of which leave
nothing behind.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from omnigraph.arguments import checked
from omnigraph.errors import CancelledError
from omnigraph.model.result import Result
from omnigraph.model.snapshot import Snapshot
from omnigraph.plan.planner import Plan
from omnigraph.plan.statistics import Statistics


@checked
@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one query. None disables a limit."""

    memory_bytes: int | None = 2 << 30
    seconds: float | None = 300.0
    rows_scanned: int | None = 2_000_000_000
    rows_returned: int | None = 50_000_000


DEFAULT_LIMITS = Limits()


class Cancellation:
    """Cancels a query from another thread; the query stops at its next step."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def cancel(self) -> None:
        self._event.set()

    def check(self) -> None:
        if self._event.is_set():
            raise CancelledError("The query was cancelled.")


# Turns a text into a vector with the model that a property's `@embed` names, None for the default.
Embedder = Callable[[str, str | None, int], Sequence[float]]


@checked
@dataclass(frozen=True)
class Options:
    """Options of one query. `rank_depth`: number of nodes of each ranking that `rrf` uses; None for
    all."""

    limits: Limits = DEFAULT_LIMITS
    cancellation: Cancellation | None = None
    embed: Embedder | None = None
    profile: bool = False
    rank_depth: int | None = 1000


DEFAULT_OPTIONS = Options()


class Engine(Protocol):
    """Runs plans. Safe to share between threads."""

    @property
    def name(self) -> str: ...

    def statistics(self, snapshot: Snapshot) -> Statistics:
        """What the planner may know of a snapshot."""
        ...

    def run(
        self,
        plan: Plan,
        snapshot: Snapshot,
        params: Mapping[str, Any],
        options: Options = DEFAULT_OPTIONS,
    ) -> Result:
        """The rows of a plan. `params` are bound already (`plan.parameters.bind`)."""
        ...
