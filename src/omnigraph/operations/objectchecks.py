"""Checks of control objects for `fsck`: names, idempotency keys, merge records, settings and the
text of the schema.

An object that is damaged is found by reading it. One that is missing is found where something else
refers to it: a branch has a manifest, and a commit names its idempotency key and its merge record.

Guarantees: reads only; a problem is a finding, and one finding does not hide the next.
Deliberately absent: tags and settings that are missing, which leave no trace.
"""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.commit import idempotency
from omnigraph.commit.branches import DELETED
from omnigraph.commit.genesis import SCHEMA_SOURCE
from omnigraph.errors import OmniGraphError
from omnigraph.history.catalogs import read_catalog
from omnigraph.history.log import BranchLog
from omnigraph.history.mergelog import RECORD, read_record, record_path
from omnigraph.history.refs import HIDDEN, MAIN, Branch, branch_path, decode_branch, named_ids
from omnigraph.lang.pg import parse
from omnigraph.model.commit import Commit
from omnigraph.operations.verification import Finding
from omnigraph.storage.graphsettings import FILE as SETTINGS
from omnigraph.storage.graphsettings import settings_fault
from omnigraph.storage.reclamation import manifest_ids
from omnigraph.storage.root import GraphRoot

_LOST_NAME = (
    "If the branch is needed, restore the reference from a backup before the next cleanup, which "
    "removes branches without a name. If it was deleted, cleanup removes what is left of it."
)
_LOST_RECORD = (
    "Restore it from a backup. Without it the merged commits cannot be listed once their branch is "
    "reclaimed, and a later merge may compare with an older state."
)
_LOST_KEY = (
    "Run `omnigraph repair --confirm`: it writes the record again. Until then a request that is "
    "repeated with this key would be carried out a second time."
)
_LOST_SOURCE = (
    "The graph does not read this file; the next `omnigraph schema apply` writes it again."
)
_LOST_SETTINGS = (
    "Set the durability again: `omnigraph.open(…).set_durability(…)`. Until then it is `power`."
)


def object_findings(root: GraphRoot) -> Iterator[Finding]:
    """What is wrong with objects that belong to no commit."""
    yield from _schema_source(root)
    fault = settings_fault(root.objects)
    if fault is not None:
        yield Finding("file", SETTINGS, fault, "warning", _LOST_SETTINGS)
    yield from _lost_names(root)


def commit_findings(line: BranchLog, branch: Branch) -> Iterator[Finding]:
    """What is wrong with objects that the commits of one branch refer to."""
    for commit in line.own_commits(line.state.head.sequence):
        yield from _lost_record(line.root, commit)
    for commit, fault in idempotency.faulty_records(line, branch):
        key = str(commit.idempotency_key)
        message = f"the record of the idempotency key {key!r} {fault}"
        yield Finding("file", idempotency.record_path(line.branch_id, key), message, hint=_LOST_KEY)


def _lost_record(root: GraphRoot, merge: Commit) -> Iterator[Finding]:
    record_id = merge.details.get(RECORD)
    if not record_id:
        return
    path = record_path(str(record_id))
    try:
        found = read_record(root, merge)
    except OmniGraphError as error:
        yield Finding("file", path, error.message, hint=_LOST_RECORD)
        return
    if found is None:
        message = f"it is missing; merge {merge.id} recorded there what it merged"
        yield Finding("file", path, message, hint=_LOST_RECORD)


def _schema_source(root: GraphRoot) -> Iterator[Finding]:
    found = root.objects.get_or_none(SCHEMA_SOURCE)
    fault = "it is missing" if found is None else _source_fault(root, found.data)
    if fault is not None:
        yield Finding("file", SCHEMA_SOURCE, fault, "warning", _LOST_SOURCE)


def _source_fault(root: GraphRoot, data: bytes) -> str | None:
    try:
        parse(data.decode())
    except (UnicodeDecodeError, OmniGraphError) as error:
        return f"it is not the text of a schema: {error}"
    try:
        head = BranchLog(root, MAIN).state.head
        lost = not data.strip() and any(read_catalog(root, head.schema_hash).tables())
    except OmniGraphError:
        return None  # reported with the branch
    return "it is empty, and the schema of main is not" if lost else None


def _lost_names(root: GraphRoot) -> Iterator[Finding]:
    """Branches with commits that have neither a name nor a note of their deletion. A branch without
    commits may be left over from a creation that was interrupted."""
    for branch_id in manifest_ids(root):
        note = f"{DELETED}/{branch_id}.json"
        if branch_id == MAIN or root.objects.exists(note):
            continue
        try:
            line = BranchLog(root, branch_id)
        except OmniGraphError:
            continue  # reported with its files
        head = line.state.head
        if head.sequence < line.first_own or head.branch.startswith(HIDDEN):
            continue
        path = branch_path(head.branch)
        if branch_id not in named_ids(root) and not _is_damaged(root, path):
            message = (
                f"no reference names the branch {branch_id}, whose newest commit is {head.id}, and "
                f"there is no {note}"
            )
            yield Finding("reference", path, message, hint=_LOST_NAME)


def _is_damaged(root: GraphRoot, path: str) -> bool:
    """Whether the reference is there and has a finding of its own."""
    found = root.objects.get_or_none(path)
    if found is None:
        return False
    try:
        decode_branch(found.data, path)
    except OmniGraphError:
        return True
    return False
