"""Uncovered drift: the HEAD of a table is newer than the manifest, and no sidecar explains it.

Guarantees: looking changes nothing; only what leaves every row as it is counts as verified; what
is done about drift is one commit, made under the branch's lock.
Deliberately absent: drift that a sidecar explains. That is recovery's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from omnigraph.commit import journal
from omnigraph.commit.door import commit
from omnigraph.errors import RecoveryRequiredError
from omnigraph.history.log import BranchLog
from omnigraph.history.resolve import head_snapshot
from omnigraph.model.commit import Commit, CommitKind, Proposal
from omnigraph.model.snapshot import TableVersion
from omnigraph.storage.drift import MAINTENANCE, head_of, operations_since
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.tableforks import owner_of
from omnigraph.storage.tablehead import restore, version_exists


class Verdict(StrEnum):
    MAINTENANCE = "verified_maintenance"  # compaction and indexes alone: every row is as it was
    SUSPICIOUS = "suspicious"  # rows were changed
    UNVERIFIABLE = "unverifiable"  # the record of what was done is gone


class Remedy(StrEnum):
    ADOPT = "adopt"  # the head becomes what the graph shows
    DISCARD = "discard"  # the head is put back to what the graph shows
    LEAVE = "leave"


@dataclass(frozen=True, slots=True)
class Drift:
    """A table with an unpublished HEAD. `operations` are those above the manifest's version."""

    pinned: TableVersion
    type_name: str
    head: int
    operations: tuple[str, ...]

    @property
    def verdict(self) -> Verdict:
        if all(name in MAINTENANCE for name in self.operations):
            return Verdict.MAINTENANCE
        known = all(name != "unknown" for name in self.operations)
        return Verdict.SUSPICIOUS if known else Verdict.UNVERIFIABLE


def has_uncovered_drift(root: GraphRoot, version: TableVersion) -> bool:
    """Whether the line has a version above the published one that no sidecar explains."""
    if not version_exists(root, version.path, version.fork, version.version + 1):
        return False
    covered = any(
        table.path == version.path and table.fork == version.fork
        for sidecar in journal.pending(root)
        for table in sidecar.tables
    )
    if covered:
        return False
    # A live writer may have published it, and removed its sidecar after we listed it.
    now = BranchLog(root, owner_of(version)).state.tables.get(version.table_id)
    return now == version


def find_drift(line: BranchLog, branch: str) -> Iterator[Drift]:
    """Every table of a branch's own whose head is ahead of the manifest, unexplained."""
    catalog = head_snapshot(line.root, branch, line).catalog
    for table_id, version in sorted(line.state.tables.items()):
        if owner_of(version) != line.branch_id or not has_uncovered_drift(line.root, version):
            continue
        table = catalog.table(table_id)
        name = table.name if table else f"table {table_id}"
        done = operations_since(line.root, version.path, version.fork, version.version)
        if done:  # a writer may have published it since we looked
            yield Drift(version, name, version.version + len(done), done)


def settle_drift(
    root: GraphRoot, branch: str, actor: str, choose: Callable[[Drift], Remedy]
) -> tuple[list[tuple[Drift, Remedy]], Commit | None]:
    """Do about each drift what `choose` says; returns what was found, and the commit if any."""
    settled: list[tuple[Drift, Remedy]] = []

    def prepare(line: BranchLog) -> Proposal | None:
        _refuse_pending(line)
        settled.extend((drift, choose(drift)) for drift in find_drift(line, branch))
        versions = [
            _settled(root, drift, remedy) for drift, remedy in settled if remedy is not Remedy.LEAVE
        ]
        if not versions:
            return None
        details = {"repairs": [_record(drift, remedy) for drift, remedy in settled]}
        return Proposal(
            base=head_snapshot(root, branch, line),
            staged=(),
            actor=actor,
            kind=CommitKind.MAINTENANCE,
            message="repair",
            details=details,
            adopted=tuple(versions),
        )

    commits = commit(root, branch, actor, CommitKind.MAINTENANCE, prepare)
    return settled, commits[0] if commits else None


def _refuse_pending(line: BranchLog) -> None:
    for sidecar in journal.pending(line.root):
        if sidecar.branch_id == line.branch_id:
            raise RecoveryRequiredError(
                f"Operation {sidecar.id} is pending recovery, which must run before repair.",
                operation_id=sidecar.id,
            )


def _settled(root: GraphRoot, drift: Drift, remedy: Remedy) -> TableVersion:
    """The version that the manifest is to name."""
    pinned = drift.pinned
    if remedy is Remedy.DISCARD:
        return replace(pinned, version=restore(root, pinned.path, pinned.fork, pinned.version))
    head, rows = head_of(root, pinned.path, pinned.fork)
    if drift.verdict is Verdict.MAINTENANCE:
        return replace(pinned, version=head)
    # The rows may have changed, so readers must not treat them as unchanged.
    return replace(
        pinned, version=head, rows=rows, logical=pinned.logical + 1, epoch=pinned.epoch + 1
    )


def _record(drift: Drift, remedy: Remedy) -> dict[str, object]:
    return {
        "type": drift.type_name,
        "from": drift.pinned.version,
        "head": drift.head,
        "operations": list(drift.operations),
        "verdict": str(drift.verdict),
        "remedy": str(remedy),
    }
