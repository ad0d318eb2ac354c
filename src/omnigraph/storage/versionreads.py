"""Reads of a version that cleanup may have removed since it was opened.

    with version_read(dataset, "scan", path):
        ...

An open dataset has the version's manifest in memory and fails only when a file is missing. Then the
versions that are still stored decide: if this one is not among them, its history was reclaimed.

A version that is gone raises `HistoryReclaimedError`, whatever is cached; a version that is there
and misses a file raises `StorageNotFoundError`; an error of a local disk names the files that
cannot be read, as far as their first and last bytes show it, since Lance does not name them. A read
that succeeds costs nothing.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from omnigraph.errors import (
    HistoryReclaimedError,
    StorageError,
    StorageNotFoundError,
    StoragePermanentError,
)
from omnigraph.storage.failures import translated

_SHOWN = 3


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
    except StoragePermanentError as error:
        files = list(_unreadable_files(dataset))
        if not files or any(name in error.message for name in files):
            raise
        raise StoragePermanentError(
            f"{error.message}; cannot be read: {', '.join(files[:_SHOWN])}",
            path=path,
            action=action,
            files=files,
            hint="Run `omnigraph fsck`, and restore the files from a backup.",
        ) from error


def reclaimed(path: str, version: int) -> HistoryReclaimedError:
    return HistoryReclaimedError(
        f"Version {version} of table {path!r} was removed.", table=path, version=version
    )


def _unreadable_files(dataset: Any) -> Iterator[str]:
    """The data files of a dataset on a local disk whose first or last byte cannot be read."""
    folder = str(dataset.uri).removeprefix("file://")
    if not folder.startswith("/"):
        return
    homes = (folder, folder.partition("/tree/")[0])  # a fork shares files of its table
    for fragment in dataset.get_fragments():
        for file in fragment.metadata.files:
            places = [f"{home}/data/{file.path}" for home in homes]
            if any(_fails(place) for place in places):
                yield f"data/{file.path}"


def _fails(place: str) -> bool:
    try:
        with open(place, "rb") as file:
            file.read(1)
            file.seek(-1, os.SEEK_END)
            file.read(1)
    except FileNotFoundError:
        return False
    except OSError as error:
        return error.errno == errno.EIO
    return False


def _is_stored(dataset: Any, path: str) -> bool:
    """Whether the version is there, as far as can be determined."""
    try:
        with translated("list", path):
            return any(each["version"] == dataset.version for each in dataset.versions())
    except StorageNotFoundError:
        return False
    except StorageError:
        return True
