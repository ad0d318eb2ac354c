"""Manifest rows and what they mean, in both directions.

    head          one row: which commit the branch stands at, where the branch began, the fence
    table         one row per live table: its current version
    commit        the newest commits; older ones lie in sealed segments
    checkpoint    all table versions after one commit, so that an old state can be rebuilt

Guarantees: pure functions; decoding what was encoded gives the same value. A tail is mostly what
the tail before it was, so what both hold is not encoded or decoded again.
Deliberately absent: I/O.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

from omnigraph.errors import InvariantViolationError
from omnigraph.history.decoding import decoding, read_fields, text, text_or_none, texts, whole
from omnigraph.model.commit import Commit, CommitKind
from omnigraph.model.snapshot import TableVersion
from omnigraph.storage.segments import ManifestRow

HEAD = "head"
TABLE = "table"
COMMIT = "commit"
CHECKPOINT = "checkpoint"

# How many commits the tail may hold before they are sealed into a segment of history.
TAIL_COMMITS = 64
# How many rows of tails are remembered: the tails of some branches, or many tables.
_REMEMBERED = 4096


@dataclass(frozen=True, slots=True)
class Fork:
    """Where a branch began: its parent branch and the last commit that it shares with it.
    `elders` are the branches that the parent itself grew from, nearest first."""

    branch_id: str
    sequence: int
    elders: tuple[str, ...] = ()


@dataclass(frozen=True)
class BranchState:
    """What the tail of a manifest says. `recent` is never empty and ends with the head."""

    tables: Mapping[int, TableVersion]
    recent: tuple[Commit, ...]
    checkpoints: tuple[ManifestRow, ...]
    fork: Fork | None
    fence: int

    @property
    def head(self) -> Commit:
        return self.recent[-1]


def decode_state(rows: Iterable[ManifestRow]) -> BranchState:
    with _decoding():
        return _decode_state(rows)


def _decode_state(rows: Iterable[ManifestRow]) -> BranchState:
    tables: dict[int, TableVersion] = {}
    recent: list[Commit] = []
    checkpoints: list[ManifestRow] = []
    head: dict[str, Any] | None = None
    for row in rows:
        if row.object_type == TABLE:
            version = _table_of(row.payload)
            tables[version.table_id] = version
        elif row.object_type == COMMIT:
            recent.append(_commit_of(row.payload))
        elif row.object_type == CHECKPOINT:
            checkpoints.append(row)
        elif row.object_type == HEAD:
            head = read_fields(row.payload)
    if head is None or not recent or recent[-1].id != head["commit_id"]:
        raise InvariantViolationError("The manifest's tail does not hold the commit it names.")
    fork = head["fork"]
    return BranchState(
        tables=tables,
        recent=tuple(recent),
        checkpoints=tuple(checkpoints),
        fork=_decode_fork(fork) if fork else None,
        fence=whole(head["fence"]),
    )


def _decode_fork(value: Mapping[str, Any]) -> Fork:
    return Fork(text(value["branch_id"]), whole(value["sequence"]), texts(value["elders"]))


def _decoding() -> AbstractContextManager[None]:
    return decoding("The manifest", hint="Restore the branch's manifest from a backup.")


def encode_state(state: BranchState) -> list[ManifestRow]:
    """The rows of a tail, in a fixed order."""
    fork = state.fork
    head = {
        "commit_id": state.head.id,
        "sequence": state.head.sequence,
        "schema_hash": state.head.schema_hash,
        "fork": asdict(fork) if fork else None,
        "fence": state.fence,
    }
    return [
        ManifestRow(HEAD, HEAD, _dump(head), sequence=state.head.sequence),
        *(_encode_table(state.tables[table_id]) for table_id in sorted(state.tables)),
        *state.checkpoints,
        *(_row_of(commit) for commit in state.recent),
    ]


def advance(
    state: BranchState, commits: Sequence[Commit], fence: int
) -> tuple[BranchState, list[ManifestRow]]:
    """The state after more commits, and the rows that leave the tail for a segment."""
    sealed: list[ManifestRow] = []
    # Step by step, so that a checkpoint is never far from any commit.
    for start in range(0, len(commits), TAIL_COMMITS):
        state, left = _advance_some(state, commits[start : start + TAIL_COMMITS], fence)
        sealed += left
    return state, sealed


def _advance_some(
    state: BranchState, commits: Sequence[Commit], fence: int
) -> tuple[BranchState, list[ManifestRow]]:
    tables = state.tables
    for commit in commits:
        tables = apply_commit(tables, commit)
    if len(state.recent) < TAIL_COMMITS:
        recent = (*state.recent, *commits)
        return BranchState(tables, recent, state.checkpoints, state.fork, fence), []
    sealed = [
        *state.checkpoints,
        *(_row_of(old) for old in state.recent),
        encode_checkpoint(state.head.sequence, state.head.schema_hash, state.tables),
    ]
    return BranchState(tables, tuple(commits), (), state.fork, fence), sealed


def apply_commit(tables: Mapping[int, TableVersion], commit: Commit) -> dict[int, TableVersion]:
    after = {key: version for key, version in tables.items() if key not in commit.dropped}
    after.update({version.table_id: version for version in commit.changes})
    return after


def encode_checkpoint(
    sequence: int, schema_hash: str, tables: Mapping[int, TableVersion]
) -> ManifestRow:
    payload = {
        "schema_hash": schema_hash,
        "tables": [tables[table_id].to_json() for table_id in sorted(tables)],
    }
    return ManifestRow(f"checkpoint:{sequence}", CHECKPOINT, _dump(payload), sequence=sequence)


def decode_checkpoint(row: ManifestRow) -> dict[int, TableVersion]:
    with _decoding():
        versions = [TableVersion.from_json(item) for item in read_fields(row.payload)["tables"]]
        return {version.table_id: version for version in versions}


def encode_commit(commit: Commit) -> ManifestRow:
    return ManifestRow(
        object_id=commit.id,
        object_type=COMMIT,
        payload=_dump(commit_to_json(commit)),
        sequence=commit.sequence,
        created_at_us=commit.created_at_us,
        actor=commit.actor,
        kind=str(commit.kind),
    )


def decode_commit(row: ManifestRow) -> Commit:
    with _decoding():
        return commit_from_json(read_fields(row.payload))


@lru_cache(_REMEMBERED)
def _commit_of(payload: str) -> Commit:
    return commit_from_json(read_fields(payload))


# By id: the very commit that was encoded, since another may have its id, and its row.
_rows: dict[str, tuple[Commit, ManifestRow]] = {}


def _row_of(commit: Commit) -> ManifestRow:
    known = _rows.get(commit.id)
    if known is not None and known[0] is commit:
        return known[1]
    row = encode_commit(commit)
    if len(_rows) >= _REMEMBERED:
        _rows.clear()
    _rows[commit.id] = (commit, row)
    return row


def commit_to_json(commit: Commit) -> dict[str, Any]:
    return {
        "id": commit.id,
        "sequence": commit.sequence,
        "parents": list(commit.parents),
        "branch": commit.branch,
        "actor": commit.actor,
        "kind": str(commit.kind),
        "message": commit.message,
        "created_at_us": commit.created_at_us,
        "schema_hash": commit.schema_hash,
        "changes": [version.to_json() for version in commit.changes],
        "dropped": list(commit.dropped),
        "idempotency_key": commit.idempotency_key,
        "details": dict(commit.details),
    }


def commit_from_json(value: Mapping[str, Any]) -> Commit:
    """The commit of such a value. Raises what `decoding` knows when a field is wrong."""
    if not isinstance(value["details"], dict):
        raise TypeError("the details of a commit are no object")
    return Commit(
        id=text(value["id"]),
        sequence=whole(value["sequence"]),
        parents=texts(value["parents"]),
        branch=text(value["branch"]),
        actor=text(value["actor"]),
        kind=CommitKind(value["kind"]),
        message=text(value["message"]),
        created_at_us=whole(value["created_at_us"]),
        schema_hash=text(value["schema_hash"]),
        changes=tuple(TableVersion.from_json(item) for item in value["changes"]),
        dropped=tuple(whole(table_id) for table_id in value["dropped"]),
        idempotency_key=text_or_none(value["idempotency_key"]),
        details=value["details"],
    )


@lru_cache(_REMEMBERED)
def _table_of(payload: str) -> TableVersion:
    return TableVersion.from_json(read_fields(payload))


@lru_cache(_REMEMBERED)
def _encode_table(version: TableVersion) -> ManifestRow:
    return ManifestRow(f"table:{version.table_id}", TABLE, _dump(version.to_json()))


def _dump(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True)
