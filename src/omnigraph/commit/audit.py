"""The audit of recoveries: exactly one row each, also after failures.

A recovery that is repeated after a crash leaves no second row; a row names the transaction that
each table was to receive, so that a transaction that appears later can be identified.
"""

from __future__ import annotations

import json
import time
from typing import Any

from omnigraph import faults
from omnigraph.commit.decide import Decision
from omnigraph.commit.journal import Sidecar
from omnigraph.errors import StorageTransientError, StorageUnknownError
from omnigraph.model.commit import RECOVERY_ACTOR
from omnigraph.storage import auditlog
from omnigraph.storage.locks import writer_lock
from omnigraph.storage.root import GraphRoot

_ATTEMPTS = 3
_LOCK = "recovery audit"


def record(root: GraphRoot, sidecar: Sidecar, decision: Decision, commit_id: str | None) -> None:
    """Write the audit row unless it is there already."""
    faults.hit("recovery.before_audit")
    append_row(root, _row(sidecar, decision, commit_id))
    faults.hit("recovery.after_audit")


def append_row(root: GraphRoot, row: dict[str, Any]) -> None:
    """Append a row unless its operation has one; on the medium when it returns."""
    # Branches are recovered side by side, and the first row of all makes the table.
    with writer_lock(root.objects, _LOCK, owner=RECOVERY_ACTOR, operation="audit"):
        _append_once(root, row)
        root.force(auditlog.DIRECTORY)


def _append_once(root: GraphRoot, row: dict[str, Any]) -> None:
    for attempt in range(1, _ATTEMPTS + 1):
        if auditlog.rows(root, row["operation_id"]):
            return  # by a recovery that died later on, or by an append whose answer was lost
        try:
            auditlog.append(root, row)
        except (StorageTransientError, StorageUnknownError):
            if attempt == _ATTEMPTS:
                raise
        else:
            return


def _row(sidecar: Sidecar, decision: Decision, commit_id: str | None) -> dict[str, Any]:
    return {
        "operation_id": sidecar.id,
        "kind": sidecar.kind,
        "branch": sidecar.branch,
        "actor": sidecar.actor,
        "outcome": str(decision.outcome),
        "commit_id": commit_id,
        "created_at_us": time.time_ns() // 1000,
        "tables": json.dumps(
            [
                {
                    "path": table.path,
                    "fork": table.fork,
                    "expected": table.expected,
                    "transaction": table.transaction,
                    "status": str(status),
                }
                for table, status in zip(sidecar.tables, decision.statuses, strict=True)
            ]
        ),
    }
