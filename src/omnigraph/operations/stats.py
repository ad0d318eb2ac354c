"""Statistics: what a graph holds, how it lies on disk, how far its indexes reach.

Guarantees: reads only, and no rows at all: what it tells comes from manifests and metadata.
Deliberately absent: judging. `maintain` and `reconcile` decide what to do about it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from omnigraph.commit import journal
from omnigraph.engines.snapshotreader import SnapshotReader
from omnigraph.history.log import BranchLog
from omnigraph.history.refs import list_branches, list_tags, read_branch
from omnigraph.history.resolve import head_snapshot
from omnigraph.model.indexes import indexes_of
from omnigraph.operations.context import Context
from omnigraph.operations.requests import ReadStats
from omnigraph.storage.reclamation import line_versions, weigh_files
from omnigraph.storage.table import open_table
from omnigraph.storage.tablefacts import facts_of
from omnigraph.storage.tableschema import ROWS_PER_FILE


@dataclass(frozen=True, slots=True)
class IndexStats:
    column: str
    kind: str
    segments: int
    indexed_rows: int
    unindexed_rows: int


@dataclass(frozen=True)
class TypeStats:
    """One type. `bytes` are those of its current files, `disk_bytes` of its older ones too (None
    when they were not counted); `missing` are declared indexes that do not exist."""

    type_name: str
    kind: str
    rows: int = 0
    files: int = 0
    small_files: int = 0
    deleted_rows: int = 0
    bytes: int = 0
    disk_bytes: int | None = None
    versions: int | None = None
    indexes: tuple[IndexStats, ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Stats:
    branch: str
    commit_id: str
    commits: int
    branches: int
    tags: int
    pending_recoveries: int
    manifest_segments: int
    types: tuple[TypeStats, ...]

    @property
    def rows(self) -> int:
        return sum(each.rows for each in self.types)

    @property
    def bytes(self) -> int:
        return sum(each.bytes for each in self.types)

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "rows": self.rows, "bytes": self.bytes}


def stats(context: Context, request: ReadStats) -> Stats:
    """Statistics of a branch. `disk`: also count what older versions take, which lists files."""
    root = context.root
    line = BranchLog(root, read_branch(root, request.branch).id)
    snapshot = head_snapshot(root, request.branch, line).seen_through(context.visibility)
    reader = SnapshotReader(snapshot)
    types = []
    for table in snapshot.catalog.tables():
        version = snapshot.table(table.id)
        if version is None:
            types.append(TypeStats(table.name, str(table.kind)))
            continue
        if not reader.sees_all(table):
            # Files and indexes also contain hidden rows, so only the visible rows are counted.
            types.append(TypeStats(table.name, str(table.kind), reader.count(table)))
            continue
        facts = facts_of(open_table(root.location, version), ROWS_PER_FILE)
        known = {(each.column, _kind(each.type)) for each in facts.indexes}
        types.append(
            TypeStats(
                table.name,
                str(table.kind),
                facts.rows,
                facts.files,
                facts.small_files,
                facts.deleted_rows,
                facts.bytes,
                weigh_files(root, version.path, version.fork) if request.disk else None,
                len(line_versions(root, version.path, version.fork)) if request.disk else None,
                tuple(
                    IndexStats(i.column, i.type, i.segments, i.indexed_rows, i.unindexed_rows)
                    for i in facts.indexes
                ),
                tuple(
                    f"{spec.column} ({spec.kind})"
                    for spec in indexes_of(table)
                    if (spec.column, str(spec.kind)) not in known
                ),
            )
        )
    return Stats(
        request.branch,
        snapshot.commit_id,
        snapshot.sequence,
        len(list_branches(root)),
        len(list_tags(root)),
        sum(1 for _ in journal.pending(root)),
        len(line.image.segments),
        tuple(types),
    )


def _kind(lance_type: str) -> str:
    name = lance_type.upper()
    if name.startswith("IVF"):
        return "vector"
    return "fts" if name == "INVERTED" else name.lower()
