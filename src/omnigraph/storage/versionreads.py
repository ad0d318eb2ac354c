"""Reads of a version that cleanup may have removed since it was opened.

    with version_read(dataset, "scan", path):
        ...

An open dataset has the version's manifest in memory and fails only when a file is missing. Then the
versions that are still stored decide: if this one is not among them, its history was reclaimed.

A version that is gone raises `HistoryReclaimedError`, whatever is cached; a version that is there
and misses a file raises `StorageNotFoundError`. A read that succeeds costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from omnigraph.errors import HistoryReclaimedError, StorageError, StorageNotFoundError
from omnigraph.storage.failures import translated


@contextmanager
def version_read(dataset: Any, action: str, path: str) -> Iterator[None]:
    """Run a block that reads from a version, and raise its failures as ours."""
    try:
        with translated(action, path):
            yield
    except StorageNotFoundError as error:
        if _is_stored(dataset, path):
            raise
        raise reclaimed(path, int(dataset.version)) from error


def reclaimed(path: str, version: int) -> HistoryReclaimedError:
    return HistoryReclaimedError(
        f"Version {version} of table {path!r} was removed.", table=path, version=version
    )


def _is_stored(dataset: Any, path: str) -> bool:
    """Whether the version is there, as far as can be determined."""
    try:
        with translated("list", path):
            return any(each["version"] == dataset.version for each in dataset.versions())
    except StorageNotFoundError:
        return False
    except StorageError:
        return True
