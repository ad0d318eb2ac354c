"""Encoding and decoding of manifest rows.

    head          one row: which commit the branch stands at, where the branch began, the fence
    table         one row per live table: its current version
    commit        the newest commits; older ones lie in sealed segments
    checkpoint    all table versions after one commit, so that an old state can be rebuilt

Guarantees: pure functions; decoding what was encoded gives the same value; the record of a commit
that cannot be read hides nothing but that commit, and is kept as it is. A tail is mostly what
the tail before it was, so what both hold is not encoded or decoded again.
Deliberately absent: I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

from omnigraph.errors import InvariantViolationError
from omnigraph.history.decoder import (
    WRONG,
    decoding,
    read_fields,
    shown,
    shown_values,
    text,
    text_or_none,
    texts,
    whole,
)
from omnigraph.model.commit import Commit, CommitKind, Damage
from omnigraph.model.snapshot import TableVersion
from omnigraph.model.texts import encode_payload
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
            recent.append(_total(row))
        elif row.object_type == CHECKPOINT:
            checkpoints.append(row)
        elif row.object_type == HEAD:
            head = read_fields(row.payload)
    if head is None or not recent or recent[-1].id != head["commit_id"]:
        raise InvariantViolationError("The manifest's tail does not hold the commit it names.")
    if not is_whole(recent[-1]):
        recent[-1] = replace(recent[-1], schema_hash=text(head["schema_hash"]))
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
    damage = commit.damage  # what could not be read is kept as it was
    return ManifestRow(
        object_id=commit.id,
        object_type=COMMIT,
        payload=_dump(commit_to_json(commit)) if damage is None else damage.stored,
        sequence=commit.sequence,
        created_at_us=commit.created_at_us,
        actor=commit.actor,
        kind=str(commit.kind),
    )


def decode_commit(row: ManifestRow) -> Commit:
    """The commit of a row. One that cannot be read is not an error: `damage` says so."""
    with _decoding():
        return _total(row)


def whole_commit(commit: Commit) -> Commit:
    """The commit, unless it is not known what it changed."""
    if commit.damage is not None and not is_whole(commit):
        raise InvariantViolationError(
            f"The record of commit {commit.id} cannot be read: {commit.damage.reason}.",
            hint="States that are rebuilt from it cannot be shown. Newer ones can; or restore the "
            "graph from a backup.",
            commit=commit.id,
        )
    return commit


def is_whole(commit: Commit) -> bool:
    """Whether it is known what the commit changed."""
    return commit.damage is None or not commit.damage.is_total


def _total(row: ManifestRow) -> Commit:
    try:
        return _commit_of(row.payload)
    except WRONG as error:
        return _from_columns(row, str(error))


def _from_columns(row: ManifestRow, reason: str) -> Commit:
    """What the columns beside a record that cannot be read say of its commit."""
    kind = row.kind if row.kind in {str(kind) for kind in CommitKind} else CommitKind.MAINTENANCE
    return Commit(
        id=text(row.object_id),
        sequence=whole(row.sequence),
        parents=(),
        branch="",
        actor=row.actor or "",
        kind=CommitKind(kind),
        message="(this record is damaged)",
        created_at_us=row.created_at_us or 0,
        schema_hash="",
        damage=Damage(reason, row.payload, is_total=True),
    )


@lru_cache(_REMEMBERED)
def _commit_of(payload: str) -> Commit:
    fields = read_fields(payload)
    commit = commit_from_json(fields)
    if all(fields[name] == getattr(commit, name) for name in ("message", "actor", "branch")):
        return commit
    reason = "a text in it is not valid Unicode"
    return replace(commit, damage=Damage(reason, payload, is_total=False))


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
    """The commit of such a value. Raises what `decoder` knows when a field is wrong."""
    if not isinstance(value["details"], dict):
        raise TypeError("the details of a commit are no object")
    return Commit(
        id=text(value["id"]),
        sequence=whole(value["sequence"]),
        parents=texts(value["parents"]),
        branch=shown(value["branch"]),
        actor=shown(value["actor"]),
        kind=CommitKind(value["kind"]),
        message=shown(value["message"]),
        created_at_us=whole(value["created_at_us"]),
        schema_hash=text(value["schema_hash"]),
        changes=tuple(TableVersion.from_json(item) for item in value["changes"]),
        dropped=tuple(whole(table_id) for table_id in value["dropped"]),
        idempotency_key=text_or_none(value["idempotency_key"]),
        details=shown_values(value["details"]),
    )


@lru_cache(_REMEMBERED)
def _table_of(payload: str) -> TableVersion:
    return TableVersion.from_json(read_fields(payload))


@lru_cache(_REMEMBERED)
def _encode_table(version: TableVersion) -> ManifestRow:
    return ManifestRow(f"table:{version.table_id}", TABLE, _dump(version.to_json()))


def _dump(value: Any) -> str:
    return encode_payload(value)
