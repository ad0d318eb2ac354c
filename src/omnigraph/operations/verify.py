"""Verify (fsck): checks the consistency of the stored graph.

    manifest ↔ tables ↔ indexes ↔ constraints, on every branch and every tag

Guarantees: reads only, takes no lock and recovers nothing; each problem is a finding, and a finding
does not hide others; with concurrent writers it checks the snapshot at its start. Nothing is
repaired; a finding names the command for it.
"""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph import progress
from omnigraph.commit import journal
from omnigraph.commit.damage import survey
from omnigraph.commit.headrepair import find_drift
from omnigraph.engines.embedded.datachecks import run_checks
from omnigraph.engines.embedded.soundness import constraint_checks, row_problems
from omnigraph.errors import OmniGraphError
from omnigraph.history.catalogs import read_catalog, schema_path
from omnigraph.history.log import BranchLog
from omnigraph.history.refs import BRANCHES, TAGS, Branch, readable_branches, readable_tags
from omnigraph.history.resolve import Target, head_snapshot, resolve
from omnigraph.model.catalog import EdgeType, NodeType
from omnigraph.model.snapshot import Snapshot, TableVersion
from omnigraph.operations.context import Context
from omnigraph.operations.filechecks import file_findings
from omnigraph.operations.objectchecks import commit_findings, object_findings
from omnigraph.operations.requests import Verify
from omnigraph.operations.verification import Verification
from omnigraph.storage.derived import damaged_arrays
from omnigraph.storage.table import check_readable, open_table
from omnigraph.storage.tablefacts import (
    content_problems,
    index_problems,
    shape_problems,
    unreadable_indexes,
)
from omnigraph.storage.wholeness import dataset_versions, torn_parts

_INDEX_HINT = (
    "Run `omnigraph optimize`: it builds an index again whose files are lost or damaged. Until "
    "then reads and writes do without it. If the index stays wrong, rewrite the table."
)


def verify(context: Context, request: Verify) -> Verification:
    """Check a whole graph. `quick`: neither values nor constraints are read."""
    found = Verification()
    _check_files(context, found)
    _check_recoveries(context, found)
    checked: set[TableVersion] = set()
    branches, damaged = readable_branches(context.root)
    for problem in damaged:
        found.add("reference", "", problem.message, hint=problem.hint)
    for branch in branches:
        found.branches += 1
        try:
            _check_branch(context, branch, found, checked, request.quick)
        except OmniGraphError as error:
            found.add("manifest", branch.name, f"it cannot be read: {error.message}")
    _check_tags(context, found)
    found.findings += object_findings(context.root)
    if not request.quick:
        found.findings += file_findings(context.root, found.paths)
        _check_derived(context, found)
    return found


def _check_files(context: Context, found: Verification) -> None:
    """Every file that is missing, empty, truncated or filled with zeros, and its consequence."""
    seen = survey(context.root, far=True)
    for loss in seen.losses:
        hint = "Run `omnigraph repair --confirm`: it goes back to the newest whole commit."
        if loss.kept is None:
            hint = "No state of the branch is whole: restore it from a backup."
        elif not loss.versions:
            hint = "No kept state is without this damage: restore the file from a backup."
        for path in loss.files:
            message = f"it is missing or damaged; the newest whole commit is {loss.commit_id}"
            found.add("file", f"{loss.branch}: {path}", message, hint=hint)
    # Names and recovery records have checks of their own, which say what each is needed for.
    named = (f"{BRANCHES}/", f"{TAGS}/", f"{journal.DIRECTORY}/")
    unneeded = [path for path in seen.objects if not path.startswith(named)]
    for folder in seen.lines:
        torn = (torn_parts(context.root, folder, v) for v in dataset_versions(context.root, folder))
        unneeded += dict.fromkeys(path for paths in torn for path in paths)
    for path in unneeded:
        message = "it is damaged, and no published state needs it"
        hint = "Run `omnigraph repair --confirm`: it moves it to __damaged."
        found.add("file", path, message, hint=hint)


def _check_branch(
    context: Context, branch: Branch, found: Verification, checked: set[TableVersion], quick: bool
) -> None:
    line = BranchLog(context.root, branch.id)
    _check_log(line, branch, found)
    found.findings += commit_findings(line, branch)
    snapshot = head_snapshot(context.root, branch.name, line)
    for table_id in sorted(set(snapshot.tables) - {t.id for t in snapshot.catalog.tables()}):
        found.add("manifest", branch.name, f"it holds table {table_id}, which its schema lacks")
    for table in snapshot.catalog.tables():
        version = snapshot.table(table.id)
        if version is not None and version not in checked:
            checked.add(version)
            progress.report("check", rows=found.rows)
            _check_table(snapshot, table, version, found, quick)
    if not quick:
        progress.report("check constraints")
        _check_constraints(snapshot, found)
    for drift in find_drift(line, branch.name):
        found.add(
            "table",
            f"{branch.name}: {drift.type_name}",
            f"its head is version {drift.head}, and the manifest names {drift.pinned.version} "
            f"({', '.join(drift.operations)})",
            hint="Run `omnigraph repair`.",
        )


def _check_log(line: BranchLog, branch: Branch, found: Verification) -> None:
    """Commits are numbered without gaps, each on top of the one before, under a known schema."""
    newer = None
    oldest = line.state.head.sequence + 1
    schemas = set()
    for commit in line.own_commits(line.state.head.sequence):
        found.commits += 1
        if commit.damage is not None:
            where, message = f"{branch.name}: commit {commit.id}", commit.damage.reason
            found.add("manifest", where, f"its record is damaged: {message}")
        if commit.damage is not None and commit.damage.is_total:
            newer = None
            oldest = commit.sequence
            continue
        schemas.add(commit.schema_hash)
        oldest = commit.sequence
        if newer is not None:
            if newer.sequence != commit.sequence + 1 or newer.parents[:1] != (commit.id,):
                message = f"commit {newer.id} does not follow {commit.id}"
                found.add("manifest", branch.name, message)
            if newer.created_at_us <= commit.created_at_us:
                found.add("manifest", branch.name, f"{newer.id} is not younger than its parent")
        newer = commit
    if oldest != line.first_own:
        found.add("manifest", branch.name, f"the commits before number {oldest} are missing")
    for schema_hash in sorted(schemas):
        try:
            read_catalog(line.root, schema_hash)
        except OmniGraphError as error:
            found.add("manifest", branch.name, f"{schema_path(schema_hash)}: {error.message}")


def _check_table(
    snapshot: Snapshot,
    table: NodeType | EdgeType,
    version: TableVersion,
    found: Verification,
    quick: bool,
) -> None:
    where = f"{snapshot.branch}: {table.name}"
    try:
        opened = open_table(snapshot.location, version)
        for message in shape_problems(table, opened):
            found.add("table", where, message)
        if not quick:
            for message in content_problems(opened):
                found.add("table", where, message)
            unreadable = unreadable_indexes(snapshot.location, version)
            for message in index_problems(opened, unreadable):
                found.add("index", where, message, hint=_INDEX_HINT)
    except OmniGraphError as error:
        found.add("table", where, f"it cannot be opened: {error.message}")
        return
    found.tables += 1
    found.rows += version.rows


def _check_constraints(snapshot: Snapshot, found: Verification) -> None:
    try:
        for type_name, message in _constraint_problems(snapshot):
            found.add("constraint", f"{snapshot.branch}: {type_name}", message)
    except OmniGraphError as error:
        found.add("constraint", snapshot.branch, f"they cannot be checked: {error.message}")


def _constraint_problems(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    yield from row_problems(snapshot)
    tally = run_checks(snapshot, constraint_checks(snapshot.catalog))
    for violation in tally.violations:
        where = f".{violation.property}" if violation.property else ""
        yield violation.type_name or "", f"{violation.rule}{where}: {violation.value!r}"
    unlisted = tally.total - len(tally.violations)
    if unlisted > 0:
        yield "", f"and {unlisted} rows more"


def _check_tags(context: Context, found: Verification) -> None:
    tags, damaged = readable_tags(context.root)
    for problem in damaged:
        found.add("tag", "", problem.message, hint=problem.hint)
    for tag in tags:
        try:
            snapshot = resolve(context.root, Target(tag=tag.name))
            for version in snapshot.tables.values():
                check_readable(context.root.location, version)
        except OmniGraphError as error:
            found.add("tag", tag.name, error.message)


def _check_derived(context: Context, found: Verification) -> None:
    """Derived files, which can be rebuilt from tables."""
    for path, fault in damaged_arrays(context.root).items():
        hint = "Run `omnigraph optimize`, or delete the file: it is made again when it is needed."
        found.add("derived", path, fault, hint=hint)


def _check_recoveries(context: Context, found: Verification) -> None:
    for operation_id in journal.waiting(context.root):
        try:
            sidecar = journal.read(context.root, operation_id)
        except OmniGraphError as error:
            found.add("recovery", operation_id, error.message, hint=error.hint)
            continue
        if sidecar is not None:
            found.add(
                "recovery",
                sidecar.branch,
                f"operation {sidecar.id} ({sidecar.kind}) is at work or was interrupted",
                severity="warning",
                hint="If no process is writing, run `omnigraph recovery run`.",
            )
