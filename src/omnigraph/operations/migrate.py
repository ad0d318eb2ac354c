"""Schema changes of a branch: plan, then apply as one commit.

Renames, soft drops, constraints, annotations and optional properties rewrite no data; a new
required property is filled from its default; a widened type rewrites its table. A hard drop
rewrites the table without the property and removes its older versions immediately, except those
that the head of another branch or a tag references. Each branch has its own schema, so other
branches are not affected until they are merged.

Guarantees: the data is validated against the snapshot that the commit is based on; applying the
current schema does nothing; concurrent applies are serialized; after repeated conflicts with
writers the change runs under the lock. An unsupported change is rejected with its code.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from omnigraph.commit.genesis import SCHEMA_SOURCE, store_schema
from omnigraph.commit.schemaids import reserve_ids
from omnigraph.engines.embedded.datachecks import run_checks
from omnigraph.engines.runners import spread_for
from omnigraph.errors import ConflictError, Diagnostic, InvalidDataError, SchemaError, StorageError
from omnigraph.history.log import BranchLog
from omnigraph.history.refs import MAIN, read_branch
from omnigraph.history.resolve import Target, resolve
from omnigraph.lang import pg
from omnigraph.lang.pg.steps import MigrationPlan, Tier
from omnigraph.model.catalog import Catalog
from omnigraph.model.commit import Commit, CommitKind, Proposal, TableUnchanged
from omnigraph.model.snapshot import Snapshot
from omnigraph.model.write import WriteResult
from omnigraph.operations.cleanup import purge
from omnigraph.operations.context import Context
from omnigraph.operations.requests import ApplySchema, PlanSchema
from omnigraph.storage.root import GraphRoot
from omnigraph.writes.groupcommit import write_alone
from omnigraph.writes.request import Attempts, Conditions, LoneRequest
from omnigraph.writes.tablechanges import Choose, erased_types, reshapings, stage_reshaping

# In a commit's details: the tables of which older versions are removed at once.
_ERASES = "erases"
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SchemaPlan:
    """The plan of a schema change. `rows` counts the stored rows of each affected type, and
    `written` the rows that must be written, completely or partly."""

    plan: MigrationPlan
    catalog: Catalog
    rows: dict[str, int]
    written: dict[str, int]

    def to_dict(self) -> dict[str, Any]:
        counts = {"rows": self.rows, "written": self.written}
        return {**self.plan.to_dict(), **counts, "schema_hash": self.catalog.hash}


@dataclass(frozen=True)
class SchemaChange:
    """The result of a schema change. No commit: the schema was already current."""

    plan: MigrationPlan
    commit: Commit | None


def plan_schema(context: Context, request: PlanSchema) -> SchemaPlan:
    """The steps from a branch's schema to this one. Changes nothing."""
    source, branch, allow_data_loss, file = (
        request.source,
        request.branch,
        request.allow_data_loss,
        request.file,
    )
    snapshot = resolve(context.root, Target(branch))
    return _plan(snapshot, source, allow_data_loss, file)


def apply_schema(context: Context, request: ApplySchema) -> SchemaChange:
    """Apply a schema to a branch and its data, in one commit. `engine` selects where rows are
    written; by default on Spark if there are many."""
    source, branch, allow_data_loss, message, file, engine, spark = (
        request.source,
        request.branch,
        request.allow_data_loss,
        request.message,
        request.file,
        request.engine,
        request.spark,
    )
    root = context.root
    choose = partial(spread_for, root, engine, spark)
    choose(0)  # rejects unknown engines before any work
    conditions = Conditions(context.actor, message)
    write = _SchemaRequest(root, source, allow_data_loss, file, choose, conditions)
    commit = write_alone(root, branch, write).commit
    assert write.plan is not None
    if commit is not None:
        _finish(context, commit, source if branch == MAIN else None)
    elif allow_data_loss:
        _erase_again(context, branch)
    return SchemaChange(write.plan, commit)


@dataclass
class _SchemaRequest(LoneRequest):
    """A requested schema of a branch. `plan`: the steps when it was last prepared."""

    # Where writers are always faster, they wait in the end.
    attempts = Attempts(unlocked=4)
    kind = CommitKind.SCHEMA

    root: GraphRoot
    source: str
    allow_data_loss: bool
    file: str | None
    choose: Choose
    conditions: Conditions
    plan: MigrationPlan | None = None

    def prepare(self, line: BranchLog, snapshot: Snapshot) -> Proposal | WriteResult:
        """Plan, check the data, write the files; nothing of it is visible."""
        planned = self._plan(snapshot)
        self.plan = planned.plan
        if planned.plan.is_empty:
            return WriteResult(None, {})
        _refuse_unsupported(planned.plan)
        _refuse_bad_data(snapshot, planned.plan)
        actor = self.conditions.actor
        counted = reserve_ids(self.root, snapshot.catalog, planned.catalog, actor)
        if counted.next_id != snapshot.catalog.next_id:  # other branches reserved ids
            planned = self._plan(replace(snapshot, catalog=counted))
            self.plan = planned.plan
        return self._proposal(line.branch_id, snapshot, planned)

    def _plan(self, snapshot: Snapshot) -> SchemaPlan:
        return _plan(snapshot, self.source, self.allow_data_loss, self.file)

    def _proposal(self, branch_id: str, snapshot: Snapshot, planned: SchemaPlan) -> Proposal:
        root = self.root
        staged = tuple(
            stage_reshaping(root, branch_id, change, self.choose)
            for change in reshapings(snapshot, planned.catalog, planned.plan)
        )
        store_schema(root, planned.catalog)
        checked = {check.type_id for check in planned.plan.checks}
        return Proposal(
            base=snapshot,
            staged=staged,
            actor=self.conditions.actor,
            kind=self.kind,
            message=self.conditions.message,
            requires=tuple(_unchanged(snapshot, table_id) for table_id in sorted(checked)),
            schema_hash=planned.catalog.hash,
            dropped=_dropped(snapshot, planned.catalog),
            details=_details(snapshot, planned.plan),
        )


def _finish(context: Context, commit: Commit, source: str | None) -> None:
    """What comes after the commit. None of it can fail the change. `source`: the text to show, if
    the branch is the one that it is shown for."""
    if source is not None:
        _show_source(context, source)
    _erase(context, commit)


def _show_source(context: Context, source: str) -> None:
    """Write a copy for users. The authoritative schema is published already, under its hash."""
    try:
        context.root.objects.put(SCHEMA_SOURCE, source.encode())
    except StorageError as error:
        log.warning("%s still shows the schema before this one: %s", SCHEMA_SOURCE, error)


def _erase(context: Context, commit: Commit) -> None:
    """Delete the data of hard drops. A failure does not affect the commit: applying the schema
    again, or `cleanup`, removes the rest."""
    paths = commit.details.get(_ERASES)
    if not paths:
        return
    try:
        purge(context, frozenset(paths))
    except (ConflictError, StorageError) as error:
        log.warning("data that commit %s dropped is still on disk: %s", commit.id, error)


def _erase_again(context: Context, branch: str) -> None:
    """Delete the data that an interrupted apply left on disk."""
    for commit in BranchLog(context.root, read_branch(context.root, branch).id).state.recent:
        _erase(context, commit)


def _plan(snapshot: Snapshot, source: str, allow_data_loss: bool, file: str | None) -> SchemaPlan:
    desired = pg.compile_schema(source, file=file, accepted=snapshot.catalog)
    plan = pg.plan_migration(snapshot.catalog, desired, allow_data_loss)
    touched = {step.type_id for step in plan.steps}
    rows = {
        table.name: version.rows
        for table in snapshot.catalog.tables()
        if table.id in touched and (version := snapshot.table(table.id)) is not None
    }
    written = {
        change.table.name: change.rows
        for change in reshapings(snapshot, desired, plan)
        if change.rows
    }
    return SchemaPlan(plan, desired, rows, written)


def _refuse_unsupported(plan: MigrationPlan) -> None:
    refused = [step for step in plan.steps if step.tier is Tier.UNSUPPORTED]
    if refused:
        raise SchemaError(
            "The schema cannot be changed like this.",
            diagnostics=[
                Diagnostic(step.code, f"{step.entity}: {step.message}") for step in refused
            ],
            hint="Take the listed changes back, or load the data into a graph of the new schema.",
        )


def _refuse_bad_data(snapshot: Snapshot, plan: MigrationPlan) -> None:
    tally = run_checks(snapshot, plan.checks)
    if tally.total:
        raise InvalidDataError(
            f"The stored data does not allow the new schema ({tally.total} rows).",
            violations=tally.violations,
            total=tally.total,
            hint="Correct these rows first; the schema was not changed.",
        )


def _details(snapshot: Snapshot, plan: MigrationPlan) -> dict[str, Any]:
    details: dict[str, Any] = {"steps": [step.code for step in plan.steps]}
    gone = sorted(key for key in erased_types(plan) if key in snapshot.tables)
    erased = [snapshot.tables[key].path for key in gone]
    return {**details, _ERASES: erased} if erased else details


def _unchanged(snapshot: Snapshot, table_id: int) -> TableUnchanged:
    version = snapshot.table(table_id)
    return TableUnchanged(table_id, version.logical if version else None)


def _dropped(snapshot: Snapshot, desired: Catalog) -> tuple[int, ...]:
    return tuple(sorted(key for key in snapshot.tables if desired.table(key) is None))
