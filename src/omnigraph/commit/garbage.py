"""Garbage: unreferenced files next to the tables.

    __staging/<ulid>/     rows of a load on Spark that was killed
    __merged/<ulid>.json  record of a merge that was not published
    __derived/…           arrays derived from removed tables

Files younger than `litter_s` of the policy are kept, because a process may still be working on it;
what a commit of any branch names stays.
Not included: versions, forks, tables and manifests (`cleanup`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from omnigraph.commit.retention import Policy
from omnigraph.history.log import BranchLog
from omnigraph.history.mergelog import DIRECTORY as MERGED
from omnigraph.history.mergelog import RECORD, read_record
from omnigraph.model.ulid import born_ms
from omnigraph.storage.derived import FOLDER as DERIVED
from omnigraph.storage.distributed import SCRATCH
from omnigraph.storage.reclamation import manifest_ids, table_paths
from omnigraph.storage.root import GraphRoot


def find_litter(root: GraphRoot, policy: Policy) -> Iterator[str]:
    """The objects and folders that may go. A folder ends with a slash."""
    oldest_ms = (time.time() - policy.litter_s) * 1000
    for name in _below(root, SCRATCH):
        if born_ms(name) <= oldest_ms:
            yield f"{SCRATCH}/{name}/"
    named = None
    for name in _below(root, MERGED):
        record = name.removesuffix(".json")
        if born_ms(record) > oldest_ms:
            continue
        named = _named_records(root) if named is None else named
        if record not in named:
            yield f"{MERGED}/{name}"
    known = {path.replace("/", "-") for path in table_paths(root)}
    for kind in _below(root, DERIVED):
        for name in _below(root, f"{DERIVED}/{kind}"):
            if name not in known:
                yield f"{DERIVED}/{kind}/{name}/"


def drop_litter(root: GraphRoot, name: str) -> None:
    if name.endswith("/"):
        root.objects.delete_prefix(name)
    else:
        root.objects.delete(name)


def _named_records(root: GraphRoot) -> set[str]:
    """Every record that a commit names: on a branch, also one that is gone while its manifest is
    there, or in another record, where a branch that was merged had itself merged others."""
    named: set[str] = set()
    for branch_id in manifest_ids(root):
        line = BranchLog(root, branch_id)
        waiting = list(line.own_commits(line.state.head.sequence))
        while waiting:
            commit = waiting.pop()
            if RECORD in commit.details and str(commit.details[RECORD]) not in named:
                named.add(str(commit.details[RECORD]))
                record = read_record(root, commit)
                waiting.extend(record.commits if record else ())
    return named


def _below(root: GraphRoot, folder: str) -> list[str]:
    """The names directly below a folder."""
    found = {path[len(folder) + 1 :].split("/")[0] for path in root.objects.list(folder)}
    return sorted(found)
