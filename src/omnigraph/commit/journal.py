"""Sidecars (recovery records): the intent of a write, stored before the first table changes.

    __recovery/<operation id>.json

Guarantees: a sidecar is on the disk before its commit is published, because the publish flushes
everything; one that has an unknown version or cannot be read is rejected and kept; without writers
the directory is empty.
Deliberately absent: deciding about sidecars (`decide`) and recovery (`recovery`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from typing import Any

from omnigraph import faults
from omnigraph.errors import FormatError, StorageError
from omnigraph.history.decoder import decoding, read_fields, text, text_or_none, texts, whole
from omnigraph.history.manifestrows import commit_from_json, commit_to_json
from omnigraph.model.commit import Commit
from omnigraph.model.texts import encode_object
from omnigraph.storage.root import GraphRoot

DIRECTORY = "__recovery"
SIDECAR_VERSION = 1
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TableIntent:
    """The change of one table: from version `expected` to `expected + 1` by this transaction, and
    one further version for each of those in `then`. `expected` is 0 for a new table. `fresh`: the
    table fork was created for this commit and is unreferenced unless the commit is published."""

    table_id: int
    path: str
    fork: str | None
    expected: int
    transaction: str
    fresh: bool
    then: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sidecar:
    """The intent of a write. `commits` will be published; `confirmed` is set by merges after all
    tables are committed."""

    id: str
    branch_id: str
    branch: str
    commits: tuple[Commit, ...]
    tables: tuple[TableIntent, ...]
    needs_confirmation: bool = False
    confirmed: bool = False
    # The disk failed to store the tables: recovery must not publish them.
    condemned: bool = False

    @property
    def kind(self) -> str:
        return str(self.commits[0].kind)

    @property
    def actor(self) -> str:
        return self.commits[0].actor

    def to_bytes(self) -> bytes:
        value = {
            "version": SIDECAR_VERSION,
            "id": self.id,
            "branch_id": self.branch_id,
            "branch": self.branch,
            "commits": [commit_to_json(commit) for commit in self.commits],
            "tables": [asdict(table) for table in self.tables],
            "needs_confirmation": self.needs_confirmation,
            "confirmed": self.confirmed,
            "condemned": self.condemned,
        }
        return encode_object(value)


def sidecar_path(operation_id: str) -> str:
    return f"{DIRECTORY}/{operation_id}.json"


def arm(root: GraphRoot, sidecar: Sidecar) -> str:
    """Write the sidecar. From then on any process can complete the operation. Returns the etag."""
    faults.hit("commit.before_sidecar")
    etag = root.objects.create(sidecar_path(sidecar.id), sidecar.to_bytes(), forced=False)
    faults.hit("commit.after_sidecar")
    return etag


def confirm(root: GraphRoot, sidecar: Sidecar, etag: str) -> None:
    """Record that all tables are committed. Fails if the sidecar was deleted: another process
    considered this writer dead and has recovered its operation."""
    faults.hit("commit.before_confirm")
    confirmed = replace(sidecar, confirmed=True)
    root.objects.replace(sidecar_path(sidecar.id), confirmed.to_bytes(), etag, forced=False)
    faults.hit("commit.after_confirm")


def condemn_quietly(root: GraphRoot, sidecar: Sidecar) -> None:
    """Mark the operation for rollback: its files could not be flushed to the disk."""
    try:
        condemned = replace(sidecar, condemned=True)
        root.objects.put(sidecar_path(sidecar.id), condemned.to_bytes())
    except StorageError as error:
        log.warning("the recovery record %s could not be marked: %s", sidecar.id, error)


def disarm(root: GraphRoot, sidecar: Sidecar) -> None:
    faults.hit("commit.before_disarm")
    # A deleted sidecar that reappears after a power failure is recognised as done, and deleted
    # again.
    root.objects.delete(sidecar_path(sidecar.id), forced=False)
    faults.hit("commit.after_disarm")


def pending(root: GraphRoot) -> Iterator[Sidecar]:
    """All pending sidecars, oldest first."""
    for path in root.objects.list(DIRECTORY):
        sidecar = _read(root, path)
        if sidecar is not None:  # finished by its writer since the listing
            yield sidecar


def waiting(root: GraphRoot) -> Iterator[str]:
    """The operations of all pending sidecars, including unreadable ones."""
    for path in root.objects.list(DIRECTORY):
        yield path.removeprefix(f"{DIRECTORY}/").removesuffix(".json")


def read(root: GraphRoot, operation_id: str) -> Sidecar | None:
    """The current sidecar, or None if it was deleted."""
    return _read(root, sidecar_path(operation_id))


def _read(root: GraphRoot, path: str) -> Sidecar | None:
    found = root.objects.get_or_none(path)
    if found is None:
        return None
    sidecar = decode(found.data, path)
    with _decoding(path):
        if sidecar_path(sidecar.id) != path:
            raise ValueError(f"it is about operation {sidecar.id}")
    return sidecar


def decode(data: bytes, path: str) -> Sidecar:
    with _decoding(path):
        value = read_fields(data)
    version = value.get("version")
    if version != SIDECAR_VERSION:
        raise FormatError(
            f"The recovery record {path} has version {version!r}; this release knows "
            f"version {SIDECAR_VERSION}.",
            hint="Open the graph with the release that wrote it; the record was kept.",
        )
    with _decoding(path):
        sidecar = Sidecar(
            id=text(value["id"]),
            branch_id=text(value["branch_id"]),
            branch=text(value["branch"]),
            commits=tuple(commit_from_json(item) for item in value["commits"]),
            tables=tuple(_intent(item) for item in value["tables"]),
            needs_confirmation=_truth(value["needs_confirmation"]),
            confirmed=_truth(value["confirmed"]),
            condemned=_truth(value.get("condemned", False)),
        )
        if not sidecar.commits:
            raise ValueError("it names no commit")
        return sidecar


def _intent(item: Mapping[str, Any]) -> TableIntent:
    return TableIntent(
        table_id=whole(item["table_id"]),
        path=text(item["path"]),
        fork=text_or_none(item["fork"]),
        expected=whole(item["expected"]),
        transaction=text(item["transaction"]),
        fresh=_truth(item["fresh"]),
        then=texts(item.get("then", [])),
    )


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{value!r} is not a boolean")
    return value


def _decoding(path: str) -> AbstractContextManager[None]:
    return decoding(
        f"The recovery record {path}",
        hint="It was kept. Open the graph read-only to look at the data, and restore the record "
        "from a backup or ask for help before writing.",
        path=path,
    )
