"""The operations on a table between two of its versions.

Read-only; a version whose transaction file is missing is reported as unknown. Not included: what to
do about it (`commit.headrepair`).
"""

from __future__ import annotations

import json
from typing import Any

from omnigraph.errors import StorageNotFoundError
from omnigraph.storage.failures import translated
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.tableforks import open_line

UNKNOWN = "unknown"
RESERVED = "ReserveFragments"
# Lance's operations that leave every row as it is.
MAINTENANCE = frozenset({"Rewrite", "CreateIndex", RESERVED})


def operations_since(root: GraphRoot, path: str, fork: str | None, version: int) -> tuple[str, ...]:
    """The names of Lance's operations after `version`, up to the head of the line."""
    dataset = open_line(root, path, fork)
    return tuple(_operation(dataset, n) for n in range(version + 1, int(dataset.version) + 1))


def _operation(dataset: Any, version: int) -> str:
    """What made a version. Some of Lance's operations have no name in Python; one that left the
    files as they were can only have reserved numbers for new ones."""
    try:
        with translated("read", dataset.uri):
            transaction = dataset.read_transaction(version)
            if transaction is None:
                return UNKNOWN
            name = type(transaction.operation).__name__
            if name != "BaseOperation":
                return name
            same = _state(dataset, version - 1) == _state(dataset, version)
            return RESERVED if same else UNKNOWN
    except StorageNotFoundError:
        return UNKNOWN


def _state(dataset: Any, version: int) -> tuple[str, ...]:
    """The columns and files of a version."""
    then = dataset.checkout_version(version)
    files = (json.dumps(f.metadata.to_json(), sort_keys=True) for f in then.get_fragments())
    return (str(then.schema), *files)


def head_of(root: GraphRoot, path: str, fork: str | None) -> tuple[int, int]:
    """The newest version of a line, and how many rows it holds."""
    dataset = open_line(root, path, fork)
    with translated("read", dataset.uri):
        return int(dataset.version), int(dataset.count_rows())
