"""Idempotency keys: the second request with a key gets the outcome of the first.

    __keys/<branch id>/<hash of the key>.json     which commit the key stands for

The record is written before the commit, under the branch's lock, and names the commit by the id
and sequence that it will have. Whether that commit came to be, the history says: a record whose
commit is not there belongs to a writer that died too early, and is simply overwritten.

Guarantees: one read to ask, one write to remember, however long the history; a key never expires
while its branch lives.
Deliberately absent: comparing requests. A key means the request that used it first.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

from omnigraph.errors import InvalidArgumentError, InvariantViolationError, ReadSetChangedError
from omnigraph.history.decoder import decoding, read_fields, text, whole
from omnigraph.history.log import BranchLog
from omnigraph.history.manifestrows import TAIL_COMMITS
from omnigraph.history.refs import Branch
from omnigraph.model.commit import Commit, Proposal
from omnigraph.model.texts import check_text, encode_object
from omnigraph.storage.root import GraphRoot

DIRECTORY = "__keys"
MAX_KEY_BYTES = 1024


def earlier_outcome(line: BranchLog, key: str | None) -> Commit | None:
    """The commit on this branch that used the key, if there is one."""
    if key is None:
        return None
    if not check_text(key, "idempotency key", most=MAX_KEY_BYTES):
        raise InvalidArgumentError(f"An idempotency key has 1 to {MAX_KEY_BYTES} bytes.")
    found = line.root.objects.get_or_none(record_path(line.branch_id, key))
    if found is None:
        return None
    commit_id, planned = _decode(found.data, key)
    # A commit may land a little later than planned when others were published in between.
    newest = min(line.state.head.sequence, planned + TAIL_COMMITS)
    for commit in line.own_commits(newest, planned):
        if commit.id == commit_id:
            return commit
    return None


class UsedKeyError(ReadSetChangedError):
    """A request was committed before under its idempotency key, as `commit`. The caller that
    prepared the proposal looks it up and returns that outcome."""

    def __init__(self, commit: Commit) -> None:
        super().__init__("The request was executed before.", commit_id=commit.id)
        self.commit = commit


def refuse_used_keys(line: BranchLog, proposal: Proposal) -> None:
    """Raise if a request of the proposal was committed before. The caller holds the lock."""
    for key in (proposal.idempotency_key, *(one.idempotency_key for one in proposal.also)):
        earlier = earlier_outcome(line, key)
        if earlier is not None:
            raise UsedKeyError(earlier)


def remember(root: GraphRoot, line: BranchLog, planned: Commit) -> None:
    """Note which commit the key will stand for. The caller holds the branch's lock."""
    if planned.idempotency_key is None:
        return
    record = {
        "key": planned.idempotency_key,
        "commit_id": planned.id,
        "sequence": planned.sequence,
    }
    data = encode_object(record)
    # The publish forces it to the medium.
    root.objects.put(record_path(line.branch_id, planned.idempotency_key), data, forced=False)


def faulty_records(line: BranchLog, branch: Branch) -> Iterator[tuple[Commit, str]]:
    """Records of keys that are missing or damaged: the newest commit that used the key, and what is
    wrong."""
    used: dict[str, list[Commit]] = {}
    for commit in line.own_commits(line.state.head.sequence):
        # A fast-forward takes commits over without their keys, which stay with the other branch.
        own = commit.branch in (branch.name, branch.renamed_from)
        if own and commit.idempotency_key is not None:
            used.setdefault(commit.idempotency_key, []).append(commit)
    for key, commits in used.items():
        fault = _fault(line, key, commits)
        if fault is not None:
            yield commits[0], fault


def _fault(line: BranchLog, key: str, commits: list[Commit]) -> str | None:
    found = line.root.objects.get_or_none(record_path(line.branch_id, key))
    if found is None:
        return "is missing"
    try:
        commit_id, _ = _decode(found.data, key)
    except InvariantViolationError as error:
        return f"is damaged: {error.message}"
    known = any(commit.id == commit_id for commit in commits)
    return None if known else f"names {commit_id}, which is no commit of this key"


def record_path(branch_id: str, key: str) -> str:
    return f"{DIRECTORY}/{branch_id}/{sha256(key.encode()).hexdigest()}.json"


def _decode(data: bytes, key: str) -> tuple[str, int]:
    with decoding(
        f"The record of the idempotency key {key!r}",
        hint="Check whether the request was executed, then delete the record or use another key.",
    ):
        record = read_fields(data)
        if record["key"] != key:
            raise ValueError("it is the record of another key")
        return text(record["commit_id"]), whole(record["sequence"])
