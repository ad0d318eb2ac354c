"""Records of the commits that a merge contains, written before the merge is published.

The record is durable when its id is returned; a merge that then fails leaves an unreferenced
object, which is harmless. Not included: reading (`history.mergelog`).
"""

from __future__ import annotations

from omnigraph.history.mergelog import MergedRecord, record_path
from omnigraph.model.ulid import new_ulid
from omnigraph.storage.root import GraphRoot


def remember(root: GraphRoot, record: MergedRecord) -> str:
    """Keep a record; returns its id."""
    record_id = new_ulid().lower()
    root.objects.create(record_path(record_id), record.to_bytes())
    return record_id
