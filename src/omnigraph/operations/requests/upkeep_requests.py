"""Requests that maintain, check, repair and recover a graph."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnigraph.history.refs import MAIN
from omnigraph.operations.requests.basis import Request

if TYPE_CHECKING:
    from omnigraph.commit.retention import Policy
    from omnigraph.engines.spark.settings import SparkSettings
    from omnigraph.operations.cleanup import Cleanup
    from omnigraph.operations.inspection import Recoveries
    from omnigraph.operations.maintain import Upkeep
    from omnigraph.operations.reconcile import Bounds, Lag, Reconciler
    from omnigraph.operations.repair import Repair
    from omnigraph.operations.verification import Verification


Report = Callable[[str], None]


@dataclass(frozen=True)
class Optimize(Request["Upkeep"]):
    """Compact files, restore index coverage, build missing indexes, keep neighbour lists."""

    branch: str = MAIN
    types: Collection[str] | None = None
    report: Report | None = None
    engine: str = "embedded"
    spark: SparkSettings | None = None


@dataclass(frozen=True)
class EnsureIndices(Request["Upkeep"]):
    """Build every index that is declared and missing, and extend those that lack rows."""

    branch: str = MAIN
    types: Collection[str] | None = None
    report: Report | None = None
    engine: str = "embedded"
    spark: SparkSettings | None = None


@dataclass(frozen=True)
class PlanOptimize(Request["Upkeep"]):
    """What `Optimize`, or without `compact` `EnsureIndices`, would do now."""

    branch: str = MAIN
    types: Collection[str] | None = None
    compact: bool = True


@dataclass(frozen=True)
class CleanUp(Request["Cleanup"]):
    """Remove the history that a policy gives up; without `confirm`, report it."""

    policy: Policy
    confirm: bool = False


@dataclass(frozen=True)
class MeasureLag(Request["Lag"]):
    branch: str = MAIN
    bounds: Bounds | None = None


@dataclass(frozen=True)
class Reconcile(Request["Reconciler"]):
    """A background worker that keeps a branch optimized."""

    branch: str = MAIN
    bounds: Bounds | None = None
    interval_s: float = 30.0


@dataclass(frozen=True)
class Verify(Request["Verification"]):
    """Check a whole graph. `quick`: neither values nor constraints are read."""

    quick: bool = False


@dataclass(frozen=True)
class RepairDrift(Request["Repair"]):
    """Report tables that are ahead of the manifest; with `confirm`, repair them."""

    branch: str = MAIN
    confirm: bool = False
    force: bool = False
    discard: bool = False


@dataclass(frozen=True)
class ListRecoveries(Request["Recoveries"]):
    """What waits for recovery, and what was recovered."""


@dataclass(frozen=True)
class Refresh(Request[None]):
    """Finish what an interrupted writer left on a branch, if that goes forward."""

    branch: str


@dataclass(frozen=True)
class Recover(Request[None]):
    """Finish or undo what interrupted writers left, on every branch."""


@dataclass(frozen=True)
class SetDurability(Request[None]):
    """Keep the durability in the graph, for everybody who opens it from now on."""

    durability: str
