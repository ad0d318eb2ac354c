"""Blobs: stat one, or read all or part of it.

Guarantees: one snapshot, pinned at the beginning; ranges follow HTTP: an end beyond the blob is cut
off, a start beyond it is refused; at most a few megabytes are in memory at once.
Deliberately absent: fetching from elsewhere. A blob that lies outside the graph is described, and
whoever may reach it does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from omnigraph.engines.snapshotreader import visible_table
from omnigraph.errors import InvalidArgumentError, NotFoundError, TypeNotFoundError
from omnigraph.model.catalog import EdgeType, NodeType
from omnigraph.model.snapshot import Snapshot
from omnigraph.model.types import Kind
from omnigraph.operations.context import Context
from omnigraph.operations.requests import ReadBlob, StatBlob
from omnigraph.storage.blobs import StoredBlob, find_blob, read_blob
from omnigraph.storage.table import Table


@dataclass(frozen=True, slots=True)
class BlobSelector:
    """Which blob: the type's name, the entity's id and the property's name."""

    type_name: str
    id: str
    property: str


@dataclass(frozen=True, slots=True)
class BlobStat:
    """Metadata of a blob. `uri`: the address of its bytes, if they are not in the graph."""

    selector: BlobSelector
    commit_id: str
    kind: str  # managed or external
    size: int | None
    etag: str | None
    uri: str | None = None

    def to_dict(self) -> dict[str, Any]:
        known = {"size": self.size, "etag": self.etag, "uri": self.uri}
        return {
            "type": self.selector.type_name,
            "id": self.selector.id,
            "property": self.selector.property,
            "graph_commit_id": self.commit_id,
            "kind": self.kind,
            **{name: value for name, value in known.items() if value is not None},
        }


def stat_blob(context: Context, request: StatBlob) -> BlobStat:
    """Size and etag of a blob, or where it lies."""
    snapshot = context.snapshot(request.target)
    _, blob = _find(context, snapshot, request.selector)
    return _stat(snapshot, request.selector, blob)


def read_range(context: Context, request: ReadBlob) -> tuple[BlobStat, Iterator[bytes]]:
    """A blob's bytes, from `offset` and for `length`, as an iterator over pieces."""
    if request.offset < 0 or (request.length is not None and request.length < 1):
        raise InvalidArgumentError("An offset is 0 or more, and a length at least 1.")
    snapshot = context.snapshot(request.target)
    table, blob = _find(context, snapshot, request.selector)
    found = _stat(snapshot, request.selector, blob)
    if found.kind == "external":
        raise InvalidArgumentError(
            f"The blob is stored outside the graph, at {found.uri}.",
            hint="Fetch it from there; `blob stat` shows the address.",
        )
    if request.offset and request.offset >= blob.size:
        raise InvalidArgumentError(
            f"The blob has {blob.size} bytes, so there is nothing from {request.offset} on."
        )
    end = blob.size if request.length is None else min(blob.size, request.offset + request.length)
    return found, read_blob(table, blob, request.offset, end)


def _find(context: Context, snapshot: Snapshot, selector: BlobSelector) -> tuple[Table, StoredBlob]:
    table = _type_of(snapshot, selector.type_name)
    item = table.get(selector.property)
    if item is None or item.type.kind is not Kind.BLOB:
        raise InvalidArgumentError(
            f"{table.name} has no Blob property {selector.property!r}.",
            hint=f"It has: {', '.join(p.name for p in table.blob_properties) or 'none'}.",
        )
    opened = visible_table(snapshot, table)
    exists, blob = (False, None) if opened is None else find_blob(opened, selector.id, item.column)
    if opened is None or not exists:
        raise NotFoundError(f"There is no {table.name} with the id {selector.id!r}.")
    if blob is None:
        raise NotFoundError(f"{table.name} {selector.id!r} has no {selector.property}: it is null.")
    return opened, blob


def _type_of(snapshot: Snapshot, name: str) -> NodeType | EdgeType:
    found = snapshot.catalog.node(name) or snapshot.catalog.edge(name)
    if found is None:
        raise TypeNotFoundError(f"The schema has no type {name!r}.")
    return found


def _stat(snapshot: Snapshot, selector: BlobSelector, blob: StoredBlob) -> BlobStat:
    if blob.uri is not None:
        return BlobStat(selector, snapshot.commit_id, "external", None, None, blob.uri)
    return BlobStat(selector, snapshot.commit_id, "managed", blob.size, blob.etag)
