"""Sidecars: what a writer is about to do, written down before the first table moves.

    __recovery/<operation id>.json

Guarantees: a sidecar is on the medium before its commit is published, since the publish forces
everything; one of an unknown version or that cannot be
read is refused and kept; the steady state is an empty directory.
Deliberately absent: judging sidecars (`decide`) and acting on them (`recovery`).
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
    """One table's move: from `expected` to `expected + 1` on its line, by this transaction, and
    one further by each of those in `then`. `expected` is 0 for a table that is born with this
    commit. `fresh` says that the line was made for this commit: nothing points to it unless the
    commit is published."""

    table_id: int
    path: str
    fork: str | None
    expected: int
    transaction: str
    fresh: bool
    then: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sidecar:
    """A writer's intent. `commits` are what it will publish; `confirmed` is set by writers that
    must know that every table arrived (merges) once it has."""

    id: str
    branch_id: str
    branch: str
    commits: tuple[Commit, ...]
    tables: tuple[TableIntent, ...]
    needs_confirmation: bool = False
    confirmed: bool = False
    # The medium refused what the tables consist of: recovery must not publish them.
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
    """Write the sidecar down. From here on the operation can be finished by anybody. Returns the
    etag of what was written."""
    faults.hit("commit.before_sidecar")
    etag = root.objects.create(sidecar_path(sidecar.id), sidecar.to_bytes(), forced=False)
    faults.hit("commit.after_sidecar")
    return etag


def confirm(root: GraphRoot, sidecar: Sidecar, etag: str) -> None:
    """Record that every table arrived where it was meant to. Fails when the sidecar is gone:
    another process considered this writer dead and has recovered its operation."""
    faults.hit("commit.before_confirm")
    confirmed = replace(sidecar, confirmed=True)
    root.objects.replace(sidecar_path(sidecar.id), confirmed.to_bytes(), etag, forced=False)
    faults.hit("commit.after_confirm")


def condemn_quietly(root: GraphRoot, sidecar: Sidecar) -> None:
    """Have recovery undo the operation: its files could not be forced to the medium."""
    try:
        condemned = replace(sidecar, condemned=True)
        root.objects.put(sidecar_path(sidecar.id), condemned.to_bytes())
    except StorageError as error:
        log.warning("the recovery record %s could not be marked: %s", sidecar.id, error)


def disarm(root: GraphRoot, sidecar: Sidecar) -> None:
    faults.hit("commit.before_disarm")
    # One that comes back after a power cut is found to be settled, and goes again.
    root.objects.delete(sidecar_path(sidecar.id), forced=False)
    faults.hit("commit.after_disarm")


def pending(root: GraphRoot) -> Iterator[Sidecar]:
    """Every sidecar that waits, oldest first."""
    for path in root.objects.list(DIRECTORY):
        sidecar = _read(root, path)
        if sidecar is not None:  # finished by its writer since the listing
            yield sidecar


def waiting(root: GraphRoot) -> Iterator[str]:
    """The operations of the same, also of those that cannot be read."""
    for path in root.objects.list(DIRECTORY):
        yield path.removeprefix(f"{DIRECTORY}/").removesuffix(".json")


def read(root: GraphRoot, operation_id: str) -> Sidecar | None:
    """The sidecar as it is now, or None when it is gone."""
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
