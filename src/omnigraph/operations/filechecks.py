"""Checks of Lance's files for `fsck`, beyond those that the newest state of a branch needs: files
of older commits, records of transactions and forks, and notes of newest versions.

Guarantees: reads only; a file that has a finding already gets no second one.
Deliberately absent: object stores, which return an object as it was written or not at all, and
versions that are gone as a whole, which looks like the work of cleanup.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from omnigraph.errors import OmniGraphError
from omnigraph.history.log import lines
from omnigraph.history.refs import readable_branches
from omnigraph.history.tornheads import branch_ids
from omnigraph.model.snapshot import TableVersion
from omnigraph.operations.verification import Finding
from omnigraph.storage.auditlog import DIRECTORY as AUDIT
from omnigraph.storage.manifest import manifest_path
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.tableforks import line_path
from omnigraph.storage.versionfiles import (
    fork_fault,
    hint_fault,
    torn_forks,
    torn_indexes,
    transaction_faults,
)
from omnigraph.storage.wholeness import (
    dataset_versions,
    is_whole,
    missing_head,
    torn_parts,
    version_file,
)

_OLD_TABLE = (
    "Restore the file from a backup. Branches and tags do not need it, and `omnigraph cleanup` can "
    "give up the older commits that do."
)
_HEAD = "Restore the file from a backup; what it recorded is lost."
_OLD_MANIFEST = (
    "Nothing needs to be done: it is read only to go back after damage of newer ones, and "
    "`omnigraph cleanup` removes it in time."
)
_TRANSACTION = (
    "Nothing needs to be done: the version that it made has a copy. "
    "`omnigraph optimize` and then `omnigraph cleanup` remove the version."
)
_FORK = (
    "Restore the file from a backup before the next `omnigraph cleanup`: Lance finds in it which "
    "files of the table a branch shares."
)
_UNUSED_FORK = (
    "No branch needs the fork. Run `omnigraph repair --confirm`: it moves what is left of the fork "
    "to __damaged. Until then `omnigraph cleanup` may not be able to clean the table up."
)
_INDEX = "Run `omnigraph optimize`: it builds the index again. Until then reads do without it."
_HINT = "Nothing needs to be done: the next write makes it again."

Named = dict[str, dict[int, TableVersion]]


def file_findings(root: GraphRoot, known: frozenset[str]) -> list[Finding]:
    """What is wrong with the files on a disk; `known` are paths that are reported already."""
    if root.location.scheme != "file":
        return []
    found: dict[str, Finding] = {}
    for finding in _findings(root):
        if finding.where not in known:
            found.setdefault(finding.where, finding)
    return list(found.values())


def _findings(root: GraphRoot) -> Iterator[Finding]:
    for folder, versions in _named_versions(root).items():
        yield from _table_findings(root, folder, versions)
    yield from _unused_forks(root)
    manifests = [manifest_path(branch_id) for branch_id in branch_ids(root)]
    for folder in (*manifests, AUDIT):
        kept = dataset_versions(root, folder)
        gone = missing_head(root, folder, kept[0] if kept else 0)
        if gone is not None:
            yield Finding("file", version_file(folder, gone), "it is missing", hint=_HEAD)
        for version in kept[1:]:
            path = version_file(folder, version)
            if not is_whole(root, path):
                yield Finding("file", path, "it is damaged", "warning", _OLD_MANIFEST)
        yield from _side_findings(root, folder, kept[:1])


def _table_findings(
    root: GraphRoot, folder: str, versions: dict[int, TableVersion]
) -> Iterator[Finding]:
    kept = [version for version in dataset_versions(root, folder) if version in versions]
    for version in kept:
        for path in torn_parts(root, folder, version):
            message = f"it is missing or damaged; version {version} of {folder} needs it"
            yield Finding("file", path, message, "warning", _OLD_TABLE)
    yield from _side_findings(root, folder, kept)
    for path in torn_indexes(root, folder, kept[0]) if kept else ():
        yield Finding("index", path, "it is empty or cut", hint=_INDEX)
    newest = versions[max(versions)]
    if kept and newest.fork is not None:
        fault = fork_fault(root, newest.path, newest.fork)
        if fault is not None:
            yield Finding("file", *fault, hint=_FORK)


def _unused_forks(root: GraphRoot) -> Iterator[Finding]:
    """Forks that no commit of a branch names, for example those of a deleted branch."""
    for path, fork in torn_forks(root):
        fault = fork_fault(root, path, fork)
        if fault is not None:
            yield Finding("file", *fault, "warning", _UNUSED_FORK)


def _side_findings(root: GraphRoot, folder: str, versions: list[int]) -> Iterator[Finding]:
    """What is wrong with files that reading the versions does not need."""
    for version in versions:
        for path, fault in transaction_faults(root, folder, version):
            yield Finding("file", path, fault, "warning", _TRANSACTION)
    note = hint_fault(root, folder)
    if note is not None:
        yield Finding("file", *note, "warning", _HINT)


def _named_versions(root: GraphRoot) -> Named:
    """The versions that commits of any branch name, by the folders of their lines."""
    named: Named = defaultdict(dict)
    seen: set[tuple[str, int]] = set()
    for branch in readable_branches(root)[0]:
        try:
            for line, newest in lines(root, branch.id):
                if (line.branch_id, newest) in seen:
                    break  # and so is what it grew from
                seen.add((line.branch_id, newest))
                tables = [*line.state.tables.values()]
                tables += (one for c in line.own_commits(newest) for one in c.changes)
                for one in tables:
                    named[line_path(one.path, one.fork)][one.version] = one
        except OmniGraphError:
            continue  # reported with the branch
    return named
