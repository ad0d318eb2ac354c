"""Maintenance of one table, prepared without a lock and adapted to the current version.

    plan = plan_upkeep(table_type, table)           what is to be done; nothing is written
    plan = adopt(root, table_type, plan, branch_id) the same on a new fork of the branch
    work = prepare(root, table_type, plan, tell)    slow, concurrent with writers
    fitted = fit(root, current, work)               fast, under the lock

Up to four steps, which land one after the other and become visible together:

    remove the columns of dropped properties        metadata only
    drop the indexes that are to be rebuilt         so that they do not block compaction
    replace old files by new ones
    add index segments, also over the new files

An index can only be built over files that a version of the table names. So the first three steps
are also taken on a *detached* version: one that no line of the table knows, for `prepare` alone.

Guarantees: `fit` opens the table once and writes nothing, so a writer never waits for compaction or
for an index; what a writer changed meanwhile is left as the writer left it. Content never changes.
Deliberately absent: choosing tables (`operations.maintain`), and landing (`commit`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from omnigraph.model.catalog import EdgeType, NodeType
from omnigraph.model.commit import StagedWrite
from omnigraph.model.indexes import IndexKind
from omnigraph.model.snapshot import TableVersion
from omnigraph.storage.columnchange import drop_transaction
from omnigraph.storage.compaction import (
    LayoutPlan,
    Rewritten,
    plan_layout,
    rewrite,
    rewrite_transaction,
    still_valid,
)
from omnigraph.storage.detached import detached
from omnigraph.storage.indexfiles import StagedIndex, segments_of, stage_index, transaction_of
from omnigraph.storage.indexplan import IndexTask, plan_indexes
from omnigraph.storage.maintenancetasks import BuildTask, CompactTask, Spread, TableAt, run_upkeep
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.table import Table, open_table
from omnigraph.storage.tableforks import Prepared, open_line, writable_line
from omnigraph.storage.tableschema import physical_schema

Tell = Callable[[str], None]
TableType = NodeType | EdgeType
_NO_LAYOUT = LayoutPlan(0, 0, ())


@dataclass(frozen=True)
class UpkeepPlan:
    """What a version needs. `tasks` are the indexes as they stand now; compaction may add to
    them. `dropped` are columns that the type no longer has."""

    version: TableVersion
    layout: LayoutPlan
    dropped: frozenset[str]
    rebuilt: frozenset[str]
    tasks: tuple[IndexTask, ...]

    @property
    def is_empty(self) -> bool:
        return self.layout.is_empty and all(task.pending for task in self.tasks)


@dataclass(frozen=True)
class Work:
    """Files for the rows of `version`, written and not yet visible. `removed` are the segments
    that are let go of before files are replaced; `tasks` is every index that was asked for.
    `origin` is the version that `version` was forked from for this work."""

    version: TableVersion
    dropped: frozenset[str]
    removed: tuple[Any, ...]
    rewritten: Rewritten
    indexes: tuple[StagedIndex, ...]
    tasks: tuple[IndexTask, ...]
    origin: TableVersion | None = None


@dataclass(frozen=True)
class Fitted:
    """Work as a staged write. Not whole: something of it did not fit, and waits for next time."""

    staged: StagedWrite | None
    is_whole: bool


def plan_upkeep(table_type: TableType, table: Table, *, compact: bool = True) -> UpkeepPlan:
    """What a version of a table needs."""
    tasks = tuple(plan_indexes(table_type, table))
    if not compact:
        return UpkeepPlan(table.version, _NO_LAYOUT, frozenset(), frozenset(), tasks)
    rebuilt = frozenset(
        segment
        for task in tasks
        if task.pending is None and task.kind is not IndexKind.BTREE
        for segment in task.replaces
    )
    dropped = frozenset(table.schema.names) - frozenset(physical_schema(table_type).names)
    layout = plan_layout(table, leaving=dropped, rebuilt=rebuilt)
    return UpkeepPlan(table.version, layout, dropped, rebuilt, tasks)


def adopt(root: GraphRoot, table_type: TableType, plan: UpkeepPlan, branch_id: str) -> UpkeepPlan:
    """The plan for a line that is forked for a branch: files know the line that they lie on."""
    fork, _ = writable_line(root, plan.version, branch_id)
    table = open_table(root.location, replace(plan.version, fork=fork))
    return plan_upkeep(table_type, table, compact=not plan.layout.is_empty)


def prepare(
    root: GraphRoot,
    table_type: TableType,
    plan: UpkeepPlan,
    tell: Tell,
    spread: Spread | None = None,
) -> Work:
    """Write the files of a plan: in this process, or in the workers of `spread`."""
    version, layout = plan.version, plan.layout
    dataset = open_line(root, version.path, version.fork, version.version)
    if layout.is_empty:
        indexes = _build(TableAt.of(root, version, dataset), dataset, plan.tasks, tell, spread)
        return Work(version, frozenset(), (), Rewritten((), 0), indexes, plan.tasks)
    with detached(root, version, dataset) as scratch:
        removed = tuple(segments_of(dataset, plan.rebuilt))
        scratch.take(drop_transaction(scratch.dataset, scratch.version, plan.dropped))
        scratch.take(transaction_of(scratch.version, (), removed) if removed else None)
        at = TableAt.of(root, version, scratch.dataset)
        rewritten = rewrite(
            scratch.dataset,
            layout,
            lambda rows: tell(f"{rows} of {layout.rows} rows rewritten"),
            None if spread is None else partial(_compact, at, spread),
        )
        scratch.take(rewrite_transaction(scratch.version, rewritten.groups))
        tasks = tuple(plan_indexes(table_type, Table(scratch.dataset, version)))
        at = TableAt.of(root, version, scratch.dataset)
        indexes = _build(at, scratch.dataset, tasks, tell, spread)
    return Work(version, plan.dropped, removed, rewritten, indexes, tasks)


def fit(root: GraphRoot, current: TableVersion, work: Work) -> Fitted:
    """The work as a staged write on `current`, as far as it still fits."""
    if not _still_fits(current, work):
        return Fitted(None, False)  # all rows were replaced, or lie elsewhere
    fork = work.version.fork
    dataset = open_line(root, current.path, fork, current.version)
    groups = still_valid(dataset, work.rewritten)
    landing = {int(new.id) for group in groups for new in group.new}
    there = {int(fragment.fragment_id) for fragment in dataset.get_fragments()}
    there -= {int(old.id) for group in groups for old in group.old}
    lost = {int(new.id) for group in work.rewritten.groups for new in group.new} - landing
    indexes = _still_there(work.indexes, there | landing, lost)
    whole = len(groups) == len(work.rewritten.groups) and len(indexes) == len(work.indexes)
    if work.removed and not whole:
        return Fitted(None, False)  # an index would be let go of, and none take its place
    steps = tuple(_steps(dataset, work, groups, indexes, current.version))
    if not steps:
        return Fitted(None, False)
    staged = StagedWrite(
        current.table_id,
        current.path,
        fork,
        current,
        Prepared(steps[0], dataset, steps[1:]),
        current.rows,
        logical=False,
    )
    return Fitted(staged, whole)


def _still_fits(current: TableVersion, work: Work) -> bool:
    """Whether the positions of the rows of this work are unchanged. No other process writes to the
    line of a branch that is gone: who wrote meanwhile has forked it too."""
    if work.origin is not None:
        return current == work.origin
    base = work.version
    return (base.path, base.fork, base.epoch) == (current.path, current.fork, current.epoch)


def _steps(
    dataset: Any,
    work: Work,
    groups: Sequence[Any],
    indexes: Sequence[StagedIndex],
    version: int,
) -> Iterator[Any]:
    """The transactions, each on the version that the one before leads to."""
    if groups:
        dropping = drop_transaction(dataset, version, work.dropped)
        if dropping is not None:
            yield dropping
            version += 1
        if work.removed:
            yield transaction_of(version, (), work.removed)
            version += 1
        yield rewrite_transaction(version, groups)
        version += 1
    if indexes:
        dated = [
            replace(each, index=replace(each.index, dataset_version=version)) for each in indexes
        ]
        yield transaction_of(version, dated)


def _compact(at: TableAt, spread: Spread, texts: list[str]) -> list[str]:
    return spread(run_upkeep, [CompactTask(at, text) for text in texts], "rewrite files")


def _build(
    at: TableAt, dataset: Any, tasks: Sequence[IndexTask], tell: Tell, spread: Spread | None
) -> tuple[StagedIndex, ...]:
    due = [task for task in tasks if task.pending is None]
    if spread is not None:
        built = spread(run_upkeep, [BuildTask(at, task) for task in due], "build indexes")
    else:
        built = []
        for task in due:
            built.append(stage_index(dataset, task))
            tell(f"{task.kind} index of {task.property} built over {task.rows} rows")
    return tuple(built)


def _still_there(
    indexes: Sequence[StagedIndex], there: set[int], lost: set[int]
) -> list[StagedIndex]:
    """The segments, told which of the files that they cover are there. A file may have lost
    rows since; every reader knows that from the file itself. A segment that knows rows of files
    which do not land is of no use: their numbers go to the next writers' files, where it would
    look for those rows."""
    found = []
    for staged in indexes:
        fragments = there & set(staged.task.fragments)
        if fragments and not lost & set(staged.task.fragments):
            index = replace(staged.index, fragment_ids=fragments)
            found.append(replace(staged, index=index))
    return found
