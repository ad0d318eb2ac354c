"""Commits of tables: the only code that changes the HEAD of a table. Only `commit` may import it.

Guarantees: each step of a staged write (there is one, save in maintenance) lands exactly one
version above the one before, the first above that which the write was staged on, or the caller is
notified by a conflict; an unexpected rebase by Lance counts as a conflict.
Deliberately absent: deciding whether to land (`commit`), and Lance's calls that stage and commit
in one go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import lance

from omnigraph import faults
from omnigraph.errors import StorageNotFoundError, VersionConflictError
from omnigraph.model.commit import StagedWrite
from omnigraph.model.snapshot import TableVersion
from omnigraph.storage.failures import translated
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.tableforks import Prepared, line_path, open_line

_NEWEST_FIRST = 2**64 - 1


@dataclass(frozen=True, slots=True)
class LineHead:
    """The current HEAD of a table fork. `transaction` is the id of what made the version after
    `expected`, None when there is no such version or it cannot be read; `restored` says that it put
    back `expected` itself. `then` are the ids of what made the versions after that one, as many as
    were asked for and exist. A line that does not exist at all has version 0."""

    version: int
    transaction: str | None
    restored: bool = False
    then: tuple[str | None, ...] = ()


def transaction_id(staged: StagedWrite) -> str:
    return str(_prepared(staged).transaction.uuid)


def later_ids(staged: StagedWrite) -> tuple[str, ...]:
    """The ids of the transactions after the first."""
    return tuple(str(step.uuid) for step in _prepared(staged).then)


def land(root: GraphRoot, staged: StagedWrite) -> TableVersion:
    """Commit a staged write, one transaction after the other."""
    version = staged.base.version if staged.base else 0
    landed = _commit(root, staged, version)
    _check_next(staged, landed, version)
    for step in _prepared(staged).then:
        faults.hit("commit.between_steps")
        version += 1
        with translated("commit", landed.uri):
            landed = lance.LanceDataset.commit(landed, step, read_version=version, max_retries=0)
        _check_next(staged, landed, version)
    return landed_version(staged)


def _check_next(staged: StagedWrite, landed: Any, version: int) -> None:
    if landed.version != version + 1:
        raise VersionConflictError(
            f"The table {staged.path} was changed by another program while it was written.",
            table=staged.path,
            expected=version + 1,
            actual=int(landed.version),
        )


def landed_version(staged: StagedWrite) -> TableVersion:
    """The manifest entry of a committed staged write."""
    base = staged.base
    logical = base.logical if base else 0
    return TableVersion(
        table_id=staged.table_id,
        path=staged.path,
        fork=staged.fork,
        version=(base.version if base else 0) + 1 + len(_prepared(staged).then),
        logical=logical + 1 if staged.logical else logical,
        rows=staged.rows_after,
        epoch=(base.epoch if base else 0) + (1 if staged.replaces else 0),
    )


def is_fresh(staged: StagedWrite) -> bool:
    """Whether the line was made for this write: a new table or a new fork."""
    return staged.base is None or staged.fork != staged.base.fork


def has_drifted(root: GraphRoot, staged: StagedWrite) -> bool:
    """Whether the line has a version beyond the one that the write was staged on."""
    expected = staged.base.version if staged.base else 0
    return version_exists(root, staged.path, staged.fork, expected + 1)


def version_exists(root: GraphRoot, path: str, fork: str | None, version: int) -> bool:
    """Looks for the version's manifest by name: one request, however many versions there are."""
    if root.location.scheme == "memory":
        # Lance keeps its own memory, which the object store does not see.
        return observe(root, path, fork, version).version >= version
    name = f"{_NEWEST_FIRST - version:020d}.manifest"
    return root.objects.exists(f"{line_path(path, fork)}/_versions/{name}")


def observe(
    root: GraphRoot, path: str, fork: str | None, expected: int, *, steps: int = 1
) -> LineHead:
    """The head of a line, and what made the `steps` versions after `expected`."""
    try:
        dataset = open_line(root, path, fork)
    except StorageNotFoundError:
        return LineHead(0, None)
    if dataset.version <= expected:
        return LineHead(dataset.version, None)
    transaction = _transaction(dataset, expected + 1)
    if transaction is None:
        return LineHead(dataset.version, None)
    operation = transaction.operation
    restored = isinstance(operation, lance.LanceOperation.Restore) and operation.version == expected
    last = min(dataset.version, expected + steps)
    later = [_transaction(dataset, version) for version in range(expected + 2, last + 1)]
    then = tuple(None if each is None else str(each.uuid) for each in later)
    return LineHead(dataset.version, str(transaction.uuid), restored, then)


def _transaction(dataset: Any, version: int) -> Any:
    """What made a version, or None when its record is gone."""
    try:
        with translated("read", dataset.uri):
            return dataset.read_transaction(version)
    except StorageNotFoundError:
        return None


def restore(root: GraphRoot, path: str, fork: str | None, version: int) -> int:
    """Make the content of an older version the newest again; returns the new head."""
    dataset = open_line(root, path, fork, version)
    with translated("restore", dataset.uri):
        dataset.restore()
        dataset.checkout_latest()
    return int(dataset.version)


def _commit(root: GraphRoot, staged: StagedWrite, base_version: int) -> Any:
    prepared = _prepared(staged)
    if prepared.dataset is None:
        uri = root.location.lance_uri(staged.path)
        with translated("commit", uri):
            return lance.LanceDataset.commit(
                uri,
                prepared.transaction,
                storage_options=dict(root.location.storage_options) or None,
                enable_stable_row_ids=True,
            )
    with translated("commit", prepared.dataset.uri):
        return lance.LanceDataset.commit(
            prepared.dataset, prepared.transaction, read_version=base_version, max_retries=0
        )


def _prepared(staged: StagedWrite) -> Prepared:
    assert isinstance(staged.transaction, Prepared)
    return staged.transaction
