"""Reclaiming space: unneeded versions, forks, tables and manifests.

Guarantees: only what the caller names is removed, and never a line's newest version or a version
that another line grew from; files that no version ever named are left for a week, since a writer
may be about to name them; repeating an interrupted removal finishes it.
Deliberately absent: knowing what is needed (`commit.retention`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import lance

from omnigraph.errors import StorageNotFoundError
from omnigraph.storage import manifest
from omnigraph.storage.failures import translated
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.table import forget_line
from omnigraph.storage.tableancestry import Point
from omnigraph.storage.tableforks import open_line

_KEPT_MANIFESTS = 64


@dataclass(frozen=True, slots=True)
class Reclaimed:
    """How many versions and bytes a removal takes, or took."""

    versions: int = 0
    bytes: int = 0

    def __add__(self, other: Reclaimed) -> Reclaimed:
        return Reclaimed(self.versions + other.versions, self.bytes + other.bytes)


def table_paths(root: GraphRoot) -> list[str]:
    """Every directory that holds, or held, the dataset of a table."""
    found = {
        "/".join(name.split("/")[:2]) for kind in ("nodes", "edges") for name in _list(root, kind)
    }
    return sorted(found)


def fork_manifests(root: GraphRoot) -> Iterator[tuple[str, str]]:
    """The manifest of every version of every fork: the path of its table, and its own."""
    for kind in ("nodes", "edges"):
        for name in _list(root, kind):
            parts = name.split("/")
            if name.endswith(".manifest") and parts[2:3] == ["tree"] and parts[-2] == "_versions":
                yield "/".join(parts[:2]), name


def manifest_ids(root: GraphRoot) -> list[str]:
    """The ids of all branches that have a manifest, live or not."""
    return sorted({name.split("/")[1] for name in _list(root, manifest.DIRECTORY)})


def forks_of(root: GraphRoot, path: str) -> dict[str, Point]:
    """The forks of a table, and where each began."""
    dataset = open_line(root, path, None)
    with translated("list", dataset.uri):
        found = dataset.branches.list()
    return {
        name: Point(fork.get("parent_branch"), int(fork["parent_version"]))
        for name, fork in found.items()
    }


def line_versions(root: GraphRoot, path: str, fork: str | None) -> list[int]:
    """The versions of a line that are still there."""
    dataset = open_line(root, path, fork)
    with translated("list", dataset.uri):
        return [int(reference["version"]) for reference in dataset.version_refs()]


def weigh_versions(
    root: GraphRoot, path: str, fork: str | None, versions: Collection[int]
) -> Reclaimed:
    """What dropping these versions would give back. Removes nothing."""
    if not versions:
        return Reclaimed()
    dataset = open_line(root, path, fork)
    with translated("read", dataset.uri):
        explained = dataset.explain_cleanup_old_versions(
            versions=sorted(versions), error_if_tagged_old_versions=False
        )
    return _reclaimed(explained.stats)


def drop_versions(
    root: GraphRoot, path: str, fork: str | None, versions: Collection[int]
) -> Reclaimed:
    """Remove versions and the files that only they name."""
    if not versions:
        return Reclaimed()
    dataset = open_line(root, path, fork)
    with translated("delete", dataset.uri):
        stats = dataset.cleanup_old_versions(
            versions=sorted(versions), error_if_tagged_old_versions=False
        )
    forget_line(root.location, path, fork)
    return _reclaimed(stats)


def weigh_files(root: GraphRoot, path: str, fork: str | None) -> int:
    """The bytes that lie below a line, those of forks not counted."""
    dataset = open_line(root, path, fork)
    with translated("list", dataset.uri):
        files = dataset.all_files().read_all()
    sizes = zip(
        files.column("path").to_pylist(), files.column("size_bytes").to_pylist(), strict=True
    )
    return sum(int(size) for name, size in sizes if not name.lstrip("/").startswith("tree/"))


def drop_fork(root: GraphRoot, path: str, fork: str) -> None:
    """Remove a fork with all of its versions. Lance refuses while another fork grew from it."""
    dataset = open_line(root, path, None)
    with translated("delete", dataset.uri):
        dataset.branches.delete(fork)
    forget_line(root.location, path, fork)


def drop_table(root: GraphRoot, path: str) -> None:
    """Remove a table's directory, with all of its lines."""
    root.objects.delete_prefix(path)
    forget_line(root.location, path, None)


def drop_manifest(root: GraphRoot, branch_id: str) -> None:
    root.objects.delete_prefix(f"{manifest.DIRECTORY}/{branch_id}")
    root.forget(branch_id)


def trim_manifest(root: GraphRoot, branch_id: str, older_than_s: float) -> Reclaimed:
    """Remove old versions of a branch's manifest. What they said is in the newest one too."""
    uri = root.location.lance_uri(f"{manifest.DIRECTORY}/{branch_id}")
    with translated("trim", uri):
        dataset: Any = lance.dataset(
            uri, storage_options=dict(root.location.storage_options) or None
        )
        stats = dataset.cleanup_old_versions(
            older_than=timedelta(seconds=older_than_s), retain_versions=_KEPT_MANIFESTS
        )
    return _reclaimed(stats)


def _reclaimed(stats: Any) -> Reclaimed:
    return Reclaimed(int(stats.old_versions), int(stats.bytes_removed))


def _list(root: GraphRoot, prefix: str) -> Iterator[str]:
    try:
        yield from root.objects.list(prefix)
    except StorageNotFoundError:  # no table was ever written
        return
