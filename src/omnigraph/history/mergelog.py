"""The records of merged commits.

    __merged/<record id>.json     the commits that came in, and the tables that they began with

A branch may be deleted after it was merged, and its manifest reclaimed. The merge commit names a
record from which its commits can still be shown, and from which later merges can still tell what
was merged already.

Guarantees: a record never changes; a state rebuilt from it is the one that the branch had.
Deliberately absent: keeping the data of those states; cleanup may have removed it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from omnigraph.history.decoder import decoding, read_fields, text, whole
from omnigraph.history.log import filtered
from omnigraph.history.manifestrows import apply_commit, commit_from_json, commit_to_json
from omnigraph.model.commit import Commit, CommitKind
from omnigraph.model.snapshot import TableVersion
from omnigraph.model.texts import encode_object
from omnigraph.storage.root import GraphRoot

DIRECTORY = "__merged"
RECORD = "merged_record"


@dataclass(frozen=True)
class MergedRecord:
    """Commits of a branch, oldest first, on top of the commit `base_sequence` of a branch."""

    branch_id: str
    base_branch_id: str
    base_sequence: int
    base_tables: Mapping[int, TableVersion]
    commits: tuple[Commit, ...]

    def tables_after(self, place: int) -> dict[int, TableVersion]:
        """Every table's version after the commit at that place of the list."""
        tables = dict(self.base_tables)
        for commit in self.commits[: place + 1]:
            tables = apply_commit(tables, commit)
        return tables

    def to_bytes(self) -> bytes:
        value = {
            "branch_id": self.branch_id,
            "base_branch_id": self.base_branch_id,
            "base_sequence": self.base_sequence,
            "base_tables": [version.to_json() for version in self.base_tables.values()],
            "commits": [commit_to_json(commit) for commit in self.commits],
        }
        return encode_object(value)


def record_path(record_id: str) -> str:
    return f"{DIRECTORY}/{record_id}.json"


def read_record(root: GraphRoot, merge: Commit) -> MergedRecord | None:
    """What a merge commit remembers, or None when it brought no commits along."""
    record_id = merge.details.get(RECORD)
    found = root.objects.get_or_none(record_path(str(record_id))) if record_id else None
    if found is None:
        return None
    with decoding(
        f"The record {record_id} of merge {merge.id}",
        hint="Restore the object from a backup, or delete it to forget the merged commits.",
    ):
        value = read_fields(found.data)
        tables = [TableVersion.from_json(item) for item in value["base_tables"]]
        return MergedRecord(
            text(value["branch_id"]),
            text(value["base_branch_id"]),
            whole(value["base_sequence"]),
            {version.table_id: version for version in tables},
            tuple(commit_from_json(item) for item in value["commits"]),
        )


def merged_commits(root: GraphRoot, branch_id: str) -> Iterator[Commit]:
    """The commits that merges brought into a branch, newest merge first."""
    for merge in filtered(root, branch_id, kind=str(CommitKind.MERGE)):
        record = read_record(root, merge)
        yield from reversed(record.commits if record else ())


def find_merged(root: GraphRoot, branch_id: str, prefix: str) -> list[Commit]:
    """The commits that came in by merges and whose id begins with `prefix`."""
    found = {c.id: c for c in merged_commits(root, branch_id) if c.id.startswith(prefix)}
    return list(found.values())
