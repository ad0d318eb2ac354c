"""The recovery audit: one Lance row per recovery, beside the manifests.

Append-only. The caller ensures that there is no concurrent append.
Not included: what the rows mean, and keeping them single (`commit.audit`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import StorageNotFoundError
from omnigraph.storage.failures import translated
from omnigraph.storage.root import GraphRoot

DIRECTORY = "_graph_commit_recoveries.lance"
SCHEMA = pa.schema(
    [
        pa.field("operation_id", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("branch", pa.string(), nullable=False),
        pa.field("actor", pa.string(), nullable=False),
        pa.field("outcome", pa.string(), nullable=False),
        pa.field("commit_id", pa.string()),
        pa.field("created_at_us", pa.int64(), nullable=False),
        pa.field("tables", pa.string(), nullable=False),
    ]
)


def append(root: GraphRoot, row: Mapping[str, Any]) -> None:
    uri = root.location.lance_uri(DIRECTORY)
    with translated("write", uri):
        lance.write_dataset(
            pa.Table.from_pylist([dict(row)], schema=SCHEMA),
            uri,
            mode="append" if _open(root) is not None else "create",
            storage_options=dict(root.location.storage_options) or None,
            enable_stable_row_ids=True,
        )


def rows(root: GraphRoot, operation_id: str | None = None) -> list[dict[str, Any]]:
    """All rows, or those of one operation, oldest first."""
    dataset = _open(root)
    if dataset is None:
        return []
    chosen = None if operation_id is None else pc.field("operation_id") == operation_id
    with translated("read", dataset.uri):
        found: list[dict[str, Any]] = dataset.to_table(filter=chosen).to_pylist()
    return sorted(found, key=lambda row: (row["created_at_us"], row["operation_id"]))


def _open(root: GraphRoot) -> Any:
    uri = root.location.lance_uri(DIRECTORY)
    try:
        with translated("open", uri):
            return lance.dataset(uri, storage_options=dict(root.location.storage_options) or None)
    except StorageNotFoundError:
        return None
