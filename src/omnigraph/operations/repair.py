"""Repair: tables whose HEAD is newer than the manifest without a recovery record; forks of a graph
that was copied or moved; and branches with damaged files, which are reset to their newest intact
commit.

    repair(context)                          shows the findings
    repair(context, confirm=True)            publishes verified maintenance
    … force=True                             also publishes other changes
    … discard=True                           discards other changes

Guarantees: without `confirm` nothing changes; other changes are reported and not published unless
forced; one commit, which records the findings and actions. A moved graph is repaired first, and
then searched for drift.
Deliberately absent: drift that a sidecar explains; opening the graph read-write recovers that.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from omnigraph.commit.damage import Loss, survey
from omnigraph.commit.headrepair import Drift, Remedy, Verdict, find_drift, settle_drift
from omnigraph.commit.recovery import sweep
from omnigraph.commit.salvage import restore_keys, salvage
from omnigraph.errors import InvalidArgumentError
from omnigraph.history.log import BranchLog
from omnigraph.history.refs import read_branch
from omnigraph.model.commit import Commit
from omnigraph.operations.context import Context
from omnigraph.operations.relocate import bring_home, strays
from omnigraph.operations.requests import RepairDrift


@dataclass(frozen=True)
class Repair:
    """The findings, the planned or executed actions, and the commit, if any. `strays` counts
    manifests that reference another address than that of the graph; `losses` are branches that are
    reset to their newest intact state."""

    items: tuple[tuple[Drift, Remedy], ...]
    commit: Commit | None
    executed: bool
    strays: int = 0
    losses: tuple[Loss, ...] = ()

    @property
    def refused(self) -> tuple[Drift, ...]:
        return tuple(drift for drift, remedy in self.items if remedy is Remedy.LEAVE)

    def to_dict(self) -> dict[str, Any]:
        return {
            "executed": self.executed,
            "graph_commit_id": self.commit.id if self.commit else None,
            "strays": self.strays,
            "losses": [asdict(loss) for loss in self.losses],
            "tables": [
                {
                    "type_name": drift.type_name,
                    "published": drift.pinned.version,
                    "head": drift.head,
                    "operations": list(drift.operations),
                    "verdict": str(drift.verdict),
                    "remedy": str(remedy),
                }
                for drift, remedy in self.items
            ],
        }


def repair(context: Context, request: RepairDrift) -> Repair:
    """Classify uncovered drift, and with `confirm` repair it."""
    if request.force and request.discard:
        raise InvalidArgumentError("Drift is either published (force) or discarded (discard).")

    def choose(drift: Drift) -> Remedy:
        if drift.verdict is Verdict.MAINTENANCE or request.force:
            return Remedy.ADOPT
        return Remedy.DISCARD if request.discard else Remedy.LEAVE

    if not request.confirm:
        damaged = survey(context.root, far=True).losses
        if damaged:
            return Repair((), None, executed=False, losses=tuple(damaged))
        away = len(strays(context))
        line = BranchLog(context.root, read_branch(context.root, request.branch).id)
        found = (
            [] if away else [(drift, choose(drift)) for drift in find_drift(line, request.branch)]
        )
        return Repair(tuple(found), None, executed=False, strays=away)
    root = context.root
    lost = salvage(root, far=True)
    if lost:
        sweep(root)
    restore_keys(root)
    moved = bring_home(context)
    if moved:
        sweep(root)  # what opening could not recover while the files were not to be found
    settled, commit = settle_drift(root, request.branch, context.actor, choose)
    return Repair(tuple(settled), commit, executed=True, strays=moved, losses=tuple(lost))
