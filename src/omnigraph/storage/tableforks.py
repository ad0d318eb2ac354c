"""Table forks: the Lance branches of a table, and their owning graph branches.

A table begins on a first line (no fork). When another graph branch first writes to it, the table
is forked there at the version that the branch sees. Names carry the owner, so that ownership is
read off a table version without asking anybody:

    path  nodes/<table id>-<owner>-<ulid>        fork  <owner>-<ulid>

A name is used once; an unpublished fork is invisible and harmless.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import lance

from omnigraph import faults
from omnigraph.model.catalog import EdgeType, NodeType
from omnigraph.model.snapshot import TableVersion
from omnigraph.model.ulid import new_ulid
from omnigraph.storage.failures import translated
from omnigraph.storage.rehome import check_home
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.table import open_table


@dataclass(frozen=True, slots=True)
class Prepared:
    """A Lance transaction and the dataset that it was written against, None for a new table.
    Carried inside a StagedWrite, so that a table is opened once from staging to landing. `then`
    are transactions that land right after it, each on the version of the one before."""

    transaction: Any
    dataset: Any
    then: tuple[Any, ...] = ()


def owner_of(version: TableVersion) -> str:
    """The id of the graph branch that may write to the line of this version."""
    if version.fork is not None:
        return version.fork.split("-", 1)[0]
    return version.path.rsplit("/", 1)[-1].split("-")[1]


def new_path(table: NodeType | EdgeType, branch_id: str) -> str:
    return f"{table.directory}-{branch_id}-{new_ulid().lower()}"


def line_path(path: str, fork: str | None) -> str:
    """Where the dataset of a line lies below the graph root."""
    return path if fork is None else f"{path}/tree/{fork}"


def open_line(root: GraphRoot, path: str, fork: str | None, version: int | None = None) -> Any:
    """The Lance dataset of a line, at a version or at its newest."""
    uri = root.location.lance_uri(line_path(path, fork))
    with translated("open", uri):
        dataset = lance.dataset(
            uri, version=version, storage_options=dict(root.location.storage_options) or None
        )
        dataset.schema  # noqa: B018  # damage is reported here, not at a later use
    check_home(root.location, path, fork, dataset)
    return dataset


def writable_line(root: GraphRoot, base: TableVersion, branch_id: str) -> tuple[str | None, Any]:
    """The line on which `branch_id` may write after `base`, forked if need be, and its dataset."""
    if owner_of(base) == branch_id:
        # The handle that checks have read through, if any did: a table is opened once per write.
        return base.fork, open_table(root.location, base).dataset
    fork = f"{branch_id}-{new_ulid().lower()}"
    faults.hit("commit.before_fork")
    # Forking borrows the dataset exclusively, and other threads read through the shared handle.
    dataset = open_table(root.location, base).dataset
    with translated("fork", dataset.uri):
        forked = dataset.checkout_version(base.version).create_branch(
            fork,
            reference=(base.fork, base.version),
            storage_options=dict(root.location.storage_options) or None,
        )
    faults.hit("commit.after_fork")
    return fork, forked
