"""A quick look for branches whose newest manifest is torn: the reason for a survey of the graph.

Reads file names and the ends of a few files, so that every opening can afford it. What was lost is
found by `commit.damage`.
"""

from __future__ import annotations

import os

from omnigraph.errors import FormatError
from omnigraph.history.refs import MAIN
from omnigraph.storage.auditlog import DIRECTORY as AUDIT
from omnigraph.storage.manifest import DIRECTORY as MANIFESTS
from omnigraph.storage.manifest import manifest_path
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.wholeness import DAMAGE, dataset_versions, has_good_head


def has_torn_head(root: GraphRoot) -> bool:
    """Whether the newest manifest of a branch, or the audit, is damaged."""
    if root.location.scheme != "file":
        return False
    folders = [manifest_path(branch_id) for branch_id in branch_ids(root)]
    if not all(has_good_head(root, folder) for folder in [*folders, AUDIT]):
        return True
    if not dataset_versions(root, manifest_path(MAIN)):
        return bool(folders)
    try:
        root.manifest(MAIN).read()
    except DAMAGE:
        return True
    except FormatError:
        return False  # opening reports it
    return False


def branch_ids(root: GraphRoot) -> list[str]:
    """Every branch that has a folder for its manifest."""
    try:
        return sorted(os.listdir(f"{root.location.path}/{MANIFESTS}"))
    except (FileNotFoundError, NotADirectoryError):
        return []
