"""Cleanup: removes history that the retention policy does not keep.

Without `confirm` it is a preview. With it, it removes, in this order: versions of tables, forks and
tables that no state names any more, detached versions that maintenance left, manifests of deleted
branches, old versions of the others, and garbage.

Guarantees: data that `commit.retention` needs is kept; commits stay in the log, and reading one
whose data was removed raises `HistoryReclaimedError`; a failure at one table does not keep the
others from being cleaned, and a second run finishes what the first began.
Deliberately absent: changing any table or any branch.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from omnigraph import faults, progress
from omnigraph.commit.branches import DELETED, was_deleted
from omnigraph.commit.garbage import drop_litter, find_litter
from omnigraph.commit.idempotency import DIRECTORY as KEYS
from omnigraph.commit.retention import (
    Needs,
    Policy,
    needs_of,
    published_lines,
    superfluous,
)
from omnigraph.errors import ConflictError, StorageError, StorageNotFoundError
from omnigraph.model.ulid import born_ms
from omnigraph.operations.branch import HISTORY_LOCK
from omnigraph.operations.context import Context
from omnigraph.operations.maintain import MAINTENANCE_LOCK
from omnigraph.operations.requests import CleanUp
from omnigraph.storage.detached import DETACHED_LOCK, detached_versions
from omnigraph.storage.locks import drop_lock, writer_lock
from omnigraph.storage.reclamation import (
    Reclaimed,
    drop_fork,
    drop_manifest,
    drop_table,
    drop_versions,
    forks_of,
    line_versions,
    manifest_ids,
    table_paths,
    trim_manifest,
    weigh_files,
    weigh_versions,
)
from omnigraph.storage.root import GraphRoot


@dataclass(frozen=True)
class TableCleanup:
    """One table directory: the data to remove, or removed. `detached`: versions left by interrupted
    maintenance. `error`: why the rest was kept."""

    path: str
    versions: int = 0
    forks: tuple[str, ...] = ()
    whole: bool = False
    bytes: int = 0
    error: str | None = None
    detached: int = 0

    @property
    def is_empty(self) -> bool:
        return not (self.versions or self.forks or self.whole or self.error or self.detached)


@dataclass(frozen=True)
class Cleanup:
    """The data that cleanup would remove, or removed (`executed`)."""

    tables: tuple[TableCleanup, ...]
    manifests: tuple[str, ...]
    executed: bool
    manifest_bytes: int = 0
    litter: tuple[str, ...] = ()

    @property
    def bytes(self) -> int:
        return self.manifest_bytes + sum(table.bytes for table in self.tables)

    @property
    def versions(self) -> int:
        return sum(table.versions for table in self.tables)

    def to_dict(self) -> dict[str, Any]:
        return {
            "executed": self.executed,
            "bytes": self.bytes,
            "versions": self.versions,
            "tables": [asdict(table) for table in self.tables],
            "branches": list(self.manifests),
            "litter": list(self.litter),
        }


def cleanup(context: Context, request: CleanUp) -> Cleanup:
    """Preview the cleanup of a policy, or with `confirm` execute it."""
    request.policy.check()
    if not request.confirm:
        return _Sweep(context.root, request.policy, execute=False).run()
    objects, actor = context.root.objects, context.actor
    with (
        writer_lock(objects, MAINTENANCE_LOCK, owner=actor, operation="cleanup"),
        writer_lock(objects, HISTORY_LOCK, owner=actor, operation="cleanup"),
    ):
        return _Sweep(context.root, request.policy, execute=True).run()


def purge(context: Context, paths: frozenset[str]) -> Cleanup:
    """Remove the versions of these tables that no branch head, tag or merge needs."""
    objects, actor = context.root.objects, context.actor
    with (
        writer_lock(objects, MAINTENANCE_LOCK, owner=actor, operation="cleanup"),
        writer_lock(objects, HISTORY_LOCK, owner=actor, operation="cleanup"),
    ):
        policy = Policy(keep=1, grace_s=0)
        return _Sweep(context.root, policy, execute=True, only=paths).run()


@dataclass
class _Sweep:
    root: GraphRoot
    policy: Policy
    execute: bool
    only: frozenset[str] | None = None
    needs: Needs = field(default_factory=Needs)
    published: set[tuple[str, str | None]] | None = None

    def run(self) -> Cleanup:
        self.needs = needs_of(self.root, self.policy)
        faults.hit("cleanup.before_reclaim")
        paths = {key[0] for key in self.needs.versions} | set(table_paths(self.root))
        chosen = sorted(paths if self.only is None else paths & self.only)
        if self.execute:
            # For any durability: old versions are removed only when newer ones are on the disk.
            self.root.medium.force_all(chosen)
        found = [self._table(path) for path in progress.each("clean", chosen)]
        tables = [each for each in found if not each.is_empty]
        if self.only is not None:
            return Cleanup(tuple(tables), (), self.execute)
        manifests = tuple(self._manifests())
        trimmed = self._trim()
        litter = tuple(self._litter())
        return Cleanup(tuple(tables), manifests, self.execute, trimmed.bytes, litter)

    # Tables

    def _table(self, path: str) -> TableCleanup:
        try:
            found = self._clean_table(path)
        except StorageNotFoundError:
            # A directory without any version: left by an interrupted writer.
            found = self._clean_litter(path)
        except (StorageError, ConflictError) as error:
            return TableCleanup(path, error=error.message)
        faults.hit("cleanup.after_reclaim")
        return found

    def _clean_table(self, path: str) -> TableCleanup:
        if not self.needs.needs_path(path):
            return self._clean_whole(path)
        forks = forks_of(self.root, path)
        doomed = list(self._doomed_forks(path, {name: at.fork for name, at in forks.items()}))
        size = sum(weigh_files(self.root, path, fork) for fork in doomed)
        if self.execute:
            for fork in doomed:
                drop_fork(self.root, path, fork)
        births: dict[str | None, int | None] = {None: None}
        births |= {name: at.version for name, at in forks.items()}
        kept = [fork for fork in births if fork not in doomed]
        # First, because a detached version keeps the files that it references.
        detached = sum(self._clean_detached(path, line) for line in kept)
        total = Reclaimed()
        for line in kept:
            total += self._clean_line(path, line, births[line])
        return TableCleanup(
            path, total.versions, tuple(doomed), bytes=size + total.bytes, detached=detached
        )

    def _clean_detached(self, path: str, fork: str | None) -> int:
        """No process uses the existing ones while we hold both locks of their creators."""
        seen = detached_versions(self.root, path, fork)
        if not (self.execute and seen):
            return len(seen)
        with writer_lock(self.root.objects, DETACHED_LOCK, owner="cleanup", operation="cleanup"):
            found = detached_versions(self.root, path, fork)
            for name in found:
                self.root.objects.delete(name)
        return len(found)

    def _clean_line(self, path: str, fork: str | None, birth: int | None) -> Reclaimed:
        # The version with which a fork was born says what it has in common with others, and costs
        # nothing: its files are those of the version that it grew from.
        if (path, fork) not in self.needs.versions and not self._is_over(path, fork):
            return Reclaimed()
        existing = [v for v in line_versions(self.root, path, fork)[:-1] if v != birth]
        gone = superfluous(existing, (path, fork), self.needs)
        if self.execute:
            return drop_versions(self.root, path, fork, gone)
        return weigh_versions(self.root, path, fork, gone)

    def _doomed_forks(self, path: str, parents: dict[str, str | None]) -> Iterator[str]:
        """Forks that no needed state lies on or grew from, the youngest of a family first."""
        wanted: set[str | None] = set()
        for fork in self.needs.forks(path):
            while fork is not None and fork not in wanted:
                wanted.add(fork)
                fork = parents.get(fork)
        kept = [name for name in parents if name in wanted or not self._is_over(path, name)]
        for name in kept:  # what stays needs the forks that it grew from
            fork = parents[name]
            while fork is not None:
                wanted.add(fork)
                fork = parents.get(fork)
        doomed = [name for name in parents if name not in kept and name not in wanted]
        yield from sorted(doomed, key=lambda name: -_depth(name, parents))

    def _clean_whole(self, path: str) -> TableCleanup:
        lines = [None, *forks_of(self.root, path)]
        if not all(self._is_over(path, fork) for fork in lines):
            return TableCleanup(path)
        size = sum(weigh_files(self.root, path, fork) for fork in lines)
        if self.execute:
            drop_table(self.root, path)
        return TableCleanup(path, whole=True, bytes=size)

    def _clean_litter(self, path: str) -> TableCleanup:
        if self.needs.needs_path(path) or not self._is_old(_ulid_of(path, None)):
            return TableCleanup(path)
        if self.execute:
            drop_table(self.root, path)
        return TableCleanup(path, whole=True)

    def _is_over(self, path: str, fork: str | None) -> bool:
        """Whether a line that no needed state names is out of use: a commit named it before the
        needs were read, its branch is gone, or its writer had time enough."""
        owner, ulid = _owner_of(path, fork), _ulid_of(path, fork)
        if self._is_gone(owner) or self._is_old(ulid):
            return True
        if self.published is None:
            # As they were when the needs were read: a line published since is in use.
            self.published = published_lines(self.needs.seen)
        return (path, fork) in self.published

    def _is_old(self, ulid: str) -> bool:
        return born_ms(ulid) / 1000 + self.policy.litter_s <= time.time()

    def _is_gone(self, branch_id: str) -> bool:
        """Whether a branch was deleted long enough ago. The note of a deletion that was interrupted
        says nothing: the branch still has its name."""
        if any(line.branch_id == branch_id for line in self.needs.seen):
            return False
        deleted_us = was_deleted(self.root, branch_id)
        return (
            deleted_us is not None and deleted_us / 1_000_000 + self.policy.grace_s <= time.time()
        )

    # Manifests

    def _manifests(self) -> Iterator[str]:
        """Manifests of branches that are gone and that no other branch and no tag grew from."""
        for branch_id in manifest_ids(self.root):
            if branch_id in self.needs.branch_ids:
                continue
            if not (self._is_gone(branch_id) or self._is_old(branch_id)):
                continue
            if self.execute:
                drop_manifest(self.root, branch_id)
                self.root.objects.delete_prefix(f"{KEYS}/{branch_id}")
                self.root.objects.delete(f"{DELETED}/{branch_id}.json")
                drop_lock(self.root.objects, branch_id)
            yield branch_id

    def _litter(self) -> Iterator[str]:
        for name in find_litter(self.root, self.policy):
            if self.execute:
                drop_litter(self.root, name)
            yield name

    def _trim(self) -> Reclaimed:
        if not self.execute:
            return Reclaimed()
        self.root.objects.reclaim(max(self.policy.grace_s, 3600.0))
        total = Reclaimed()
        for branch_id in sorted(self.needs.branch_ids):
            total += trim_manifest(self.root, branch_id, self.policy.grace_s)
        return total


def _owner_of(path: str, fork: str | None) -> str:
    return fork.split("-", 1)[0] if fork else path.rsplit("/", 1)[-1].split("-")[1]


def _ulid_of(path: str, fork: str | None) -> str:
    return (fork or path).rsplit("-", 1)[-1]


def _depth(name: str, parents: dict[str, str | None]) -> int:
    depth, parent = 0, parents.get(name)
    while parent is not None:
        depth, parent = depth + 1, parents.get(parent)
    return depth
