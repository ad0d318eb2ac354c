"""Detached versions of a table: created as a base for index builds, not visible to others, and
removed afterwards.

Lance's own cleanup never removes them, and keeps every file that they name. So their makers do, and
`cleanup` removes those of makers that died. It must not interfere with running processes: an
operation that creates detached versions holds the maintenance lock, or the one named here.

A detached version belongs to no line and moves no head; what cannot be removed now is found by
`cleanup`.
Not included: what is built upon them (`upkeep`, `stagedwrites`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import lance

from omnigraph import faults
from omnigraph.errors import StorageError, StorageNotFoundError
from omnigraph.model.snapshot import TableVersion
from omnigraph.storage.failures import translated
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.tableforks import line_path

# For those who need detached versions for a moment only, and not the maintenance lock.
DETACHED_LOCK = "detached"
# Lance looks for a random number that is free.
_ATTEMPTS = 5
log = logging.getLogger(__name__)


class Detached:
    """A chain of detached versions, of which each grew out of the one before."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset
        self.made: list[int] = []

    @property
    def version(self) -> int:
        return int(self.dataset.version)

    def take(self, transaction: Any) -> None:
        """Go one version further, if there is anything to do."""
        if transaction is None:
            return
        with translated("stage", self.dataset.uri):
            self.dataset = lance.LanceDataset.commit(
                self.dataset, transaction, detached=True, max_retries=_ATTEMPTS
            )
        self.made.append(self.version)
        faults.hit("stage.after_detached")


@contextmanager
def detached(root: GraphRoot, version: TableVersion, dataset: Any) -> Iterator[Detached]:
    """Versions that are gone again at the end of the block; the files that they name stay."""
    chain = Detached(dataset)
    try:
        yield chain
    finally:
        folder = _folder(version.path, version.fork)
        for number in chain.made:
            try:
                root.objects.delete(f"{folder}/d{number}.manifest")
            except StorageError as error:
                log.warning("the detached version %d of %s is left: %s", number, folder, error)


def detached_versions(root: GraphRoot, path: str, fork: str | None) -> list[str]:
    """The objects of the detached versions that a line was left with."""
    folder = _folder(path, fork)
    try:
        names = list(root.objects.list(folder))
    except StorageNotFoundError:
        return []
    return [name for name in names if name.removeprefix(f"{folder}/").startswith("d")]


def _folder(path: str, fork: str | None) -> str:
    return f"{line_path(path, fork)}/_versions"
