"""Maintenance: builds missing indexes and compacts files.

    ensure_indices(context)     builds what is declared and missing
    optimize(context)           compacts too; `plan_optimize` shows what it would do

Indexes and file layout are derived state: reads are correct without them, and no write waits for
them. Files are written concurrently with writers; only adapting them to the newest version requires
the lock of the branch. If writers change a table repeatedly in the meantime, a small table is
processed under the lock; a large one is left for the next run and reported as overtaken.

Guarantees: one commit for the files and indexes of all tables (one more for each conflict with
writers), none when there is nothing to do; a second run finds nothing; content never changes;
nothing is removed (`cleanup` does that). A table that a merge adopted from a deleted branch is not
maintained on any other branch: it is forked for this branch, as a write would do.
Deliberately absent: tables that a branch inherits from an existing branch. They are maintained on
that branch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from omnigraph import logs
from omnigraph.commit import journal
from omnigraph.commit.headrepair import has_uncovered_drift
from omnigraph.engines.runners import spread_by
from omnigraph.errors import OmniGraphError, RecoveryRequiredError, TypeNotFoundError
from omnigraph.history.log import BranchLog
from omnigraph.history.refs import MAIN, list_branches, read_branch
from omnigraph.history.resolve import head_snapshot
from omnigraph.model.catalog import EdgeType, NodeType
from omnigraph.model.commit import Commit, CommitKind, Proposal
from omnigraph.model.snapshot import Snapshot, TableVersion
from omnigraph.model.write import WriteResult
from omnigraph.operations.context import Context
from omnigraph.operations.requests import EnsureIndices, Optimize, PlanOptimize
from omnigraph.storage.derived import drop_damaged
from omnigraph.storage.indexplan import IndexTask
from omnigraph.storage.locks import writer_lock
from omnigraph.storage.maintenancetasks import Spread
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.table import open_table
from omnigraph.storage.tablefacts import unreadable_indexes
from omnigraph.storage.tableforks import owner_of
from omnigraph.storage.upkeep import Fitted, UpkeepPlan, Work, adopt, fit, plan_upkeep, prepare
from omnigraph.writes.groupcommit import write_alone
from omnigraph.writes.request import Attempts, Conditions, LoneRequest

# How often work is prepared again for tables that writers changed in the meantime.
_ROUNDS = 3
# Rows that writers add in the meantime may need another round.
_CYCLES = 3
# Up to this many rows a table is processed under the lock after repeated conflicts.
_ROWS_UNDER_LOCK = 200_000
MAINTENANCE_LOCK = "maintenance"
SHARED = "inherited from another branch; maintain that one"
DRIFTED = "its head is ahead of the manifest; run repair"
OVERTAKEN = "writers changed it faster than it could be compacted; run it again"

Report = Callable[[str], None]
log = logs.logger(__name__)


@dataclass(frozen=True, slots=True)
class IndexWork:
    """One index that is to be built, was built, or cannot be built yet (`pending` is the
    reason)."""

    property: str
    kind: str
    type: str
    rows: int
    reason: str
    pending: str | None = None


@dataclass(frozen=True)
class TableUpkeep:
    """One table: what it needs, or why nothing is done about it. `columns` are those of dropped
    properties, which new files are written without."""

    type_name: str
    kind: str
    files: int = 0
    files_moved: int = 0
    rows_moved: int = 0
    indexes: tuple[IndexWork, ...] = ()
    skipped: str | None = None
    columns: tuple[str, ...] = ()

    @property
    def built(self) -> tuple[IndexWork, ...]:
        return tuple(index for index in self.indexes if index.pending is None)

    @property
    def pending(self) -> tuple[IndexWork, ...]:
        return tuple(index for index in self.indexes if index.pending is not None)

    @property
    def is_idle(self) -> bool:
        return not self.files_moved and not self.built

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Upkeep:
    """The planned or executed maintenance. No commits: there was nothing to do."""

    tables: tuple[TableUpkeep, ...]
    commits: tuple[Commit, ...] = ()

    @property
    def is_empty(self) -> bool:
        return all(table.is_idle for table in self.tables)

    def to_dict(self) -> dict[str, Any]:
        return {
            "graph_commit_ids": [commit.id for commit in self.commits],
            "tables": [table.to_dict() for table in self.tables],
        }


@dataclass(frozen=True)
class Scope:
    """The selected tables, and whether their files are compacted."""

    branch: str = MAIN
    types: frozenset[str] | None = None
    compact: bool = True


def ensure_indices(context: Context, request: EnsureIndices) -> Upkeep:
    """Build every index that is declared and missing, and extend those that lack rows. `spread`
    writes files in other processes."""
    spread = spread_by(context.root, request.engine, request.spark)
    scope = _scope(request.branch, request.types, compact=False)
    return _maintain(context, scope, request.report, spread)


def optimize(context: Context, request: Optimize) -> Upkeep:
    """Compact files, restore index coverage and build missing indexes; then store the adjacency
    lists of large edge types, unless the work ran on other machines."""
    spread = spread_by(context.root, request.engine, request.spark)
    scope = _scope(request.branch, request.types, compact=True)
    done = _maintain(context, scope, request.report, spread)
    if spread is None:
        _keep_adjacency(
            context, request.branch, request.types, request.report or (lambda text: None)
        )
    return done


def _keep_adjacency(
    context: Context, branch: str, types: Collection[str] | None, tell: Report
) -> None:
    """Store adjacency lists, so that queries need not build them. A failure is not an error: the
    first query then builds them. Damaged files are removed first."""
    from omnigraph.engines.embedded.warmup import keep_adjacency

    try:
        for path in drop_damaged(context.root):
            log.warning("damaged file removed", extra=logs.fields(path=path))
        line = BranchLog(context.root, read_branch(context.root, branch).id)
        keep_adjacency(head_snapshot(context.root, branch, line), types, tell)
    except OmniGraphError as error:
        log.warning("adjacency lists were not stored", extra=logs.fields(error=str(error)))


def plan_optimize(context: Context, request: PlanOptimize) -> Upkeep:
    """What `optimize` (or `ensure_indices`) would do now. Writes nothing.

    Indexes of rows that compaction moves are built again; the plan lists what is missing now.
    """
    scope = _scope(request.branch, request.types, compact=request.compact)
    run = _Run(context, scope, lambda text: None)
    return Upkeep(tuple(item.shown for item in run.examine()))


@dataclass(frozen=True)
class _Examined:
    """A table. No plan: there is nothing to do, or `shown` says why not."""

    table: NodeType | EdgeType
    plan: UpkeepPlan | None
    shown: TableUpkeep


class _Run:
    """One run over the tables in scope."""

    def __init__(
        self, context: Context, scope: Scope, tell: Report, spread: Spread | None = None
    ) -> None:
        self.context = context
        self.spread = spread
        self.root = context.root
        self.scope = scope
        self.tell = tell
        self.branch_id = read_branch(context.root, scope.branch).id
        self.shown: dict[int, TableUpkeep] = {}
        self._checked: set[TableVersion] = set()
        self.commits: list[Commit] = []

    def carry_out(self) -> None:
        """Execute the work; tables that writers changed in the meantime are prepared again."""
        left: set[int] = set()
        for number in range(_ROUNDS):
            last = number == _ROUNDS - 1
            examined = [
                item
                for item in self.examine(indexes_of_large_alone=last)
                if not number or item.table.id in left
            ]
            works = {i.table.id: self.prepare(i.table, i.plan) for i in examined if i.plan}
            left = self.publish(works, may_hold=last)
            for item in examined:
                if item.table.id not in left:
                    self._remember(item.table, _done(item.shown, works.get(item.table.id)))
            if not left:
                return
        for item in examined:
            if item.table.id in left:
                busy = replace(_nothing(item.table, item.shown.files), skipped=OVERTAKEN)
                self._remember(item.table, busy)

    def _remember(self, table: NodeType | EdgeType, shown: TableUpkeep) -> None:
        self.shown[table.id] = _together(self.shown.get(table.id), shown)

    def examine(self, *, indexes_of_large_alone: bool = False) -> Iterator[_Examined]:
        """Every table in scope with its work."""
        line = BranchLog(self.root, self.branch_id)
        snapshot = head_snapshot(self.root, self.scope.branch, line)
        for table in _chosen(snapshot, self.scope):
            version = snapshot.table(table.id)
            if version is not None:
                large = indexes_of_large_alone and version.rows > _ROWS_UNDER_LOCK
                compact = self.scope.compact and not large
                item = self._examined(table, version, compact=compact)
                if large and self.scope.compact and item.shown.skipped is None:
                    # Its files could not be put together beside writers; its indexes can.
                    item = replace(item, shown=replace(item.shown, skipped=OVERTAKEN))
                yield item

    def _examined(
        self, table: NodeType | EdgeType, version: TableVersion, *, compact: bool
    ) -> _Examined:
        owner = owner_of(version)
        if not keeps(self.root, self.branch_id, owner):
            return _Examined(table, None, replace(_nothing(table), skipped=SHARED))
        if owner == self.branch_id and has_uncovered_drift(self.root, version):
            return _Examined(table, None, replace(_nothing(table), skipped=DRIFTED))
        opened = open_table(self.root.location, version)
        self._check_indexes(version)
        plan = plan_upkeep(table, opened, compact=compact)
        shown = replace(
            _nothing(table, len(opened.dataset.get_fragments())),
            files_moved=plan.layout.files,
            rows_moved=plan.layout.rows,
            indexes=tuple(_shown_index(task) for task in plan.tasks),
            columns=() if plan.layout.is_empty else tuple(sorted(plan.dropped)),
        )
        return _Examined(table, None if plan.is_empty else plan, shown)

    def _check_indexes(self, version: TableVersion) -> None:
        """Find the indexes whose files are lost or damaged, so that the plan rebuilds them."""
        if version not in self._checked:
            self._checked.add(version)
            for name, reason in unreadable_indexes(self.root.location, version).items():
                log.warning("index is rebuilt", extra=logs.fields(index=name, cause=reason))

    def prepare(self, table: NodeType | EdgeType, plan: UpkeepPlan) -> Work:
        """Write the files that a table needs, concurrently with other writers."""
        tell = _named(table.name, self.tell)
        if owner_of(plan.version) == self.branch_id:
            return prepare(self.root, table, plan, tell, self.spread)
        forked = adopt(self.root, table, plan, self.branch_id)
        work = prepare(self.root, table, forked, tell, self.spread)
        return replace(work, origin=plan.version)

    def publish(self, works: Mapping[int, Work], *, may_hold: bool) -> set[int]:
        """Adapt the work to the current state of the branch and publish it; returns the unfinished
        tables."""
        if not works:
            return set()
        request = _UpkeepRequest(self, works, may_hold, Conditions(self.context.actor))
        done = write_alone(self.root, self.scope.branch, request)
        if done.commit is not None:
            self.commits.append(done.commit)
        return request.left

    def fitted(self, snapshot: Snapshot, table_id: int, work: Work, may_hold: bool) -> Fitted:
        current, table = snapshot.table(table_id), snapshot.catalog.table(table_id)
        if current is None or table is None:
            return Fitted(None, True)  # dropped meanwhile
        fitted = fit(self.root, current, work)
        if fitted.is_whole or not may_hold or current.rows > _ROWS_UNDER_LOCK:
            return fitted
        item = self._examined(table, current, compact=self.scope.compact)
        if item.plan is None:
            return Fitted(None, True)
        return fit(self.root, current, self.prepare(table, item.plan))


@dataclass
class _UpkeepRequest(LoneRequest):
    """Work that was done beside writers, to be fitted to the branch while they wait. `left`: the
    tables that are not done."""

    attempts = Attempts(total=1, unlocked=0)
    kind = CommitKind.MAINTENANCE

    run: _Run
    works: Mapping[int, Work]
    may_hold: bool
    conditions: Conditions
    left: set[int] = field(default_factory=set)

    def prepare(self, line: BranchLog, snapshot: Snapshot) -> Proposal | WriteResult:
        found = {
            key: self.run.fitted(snapshot, key, work, self.may_hold)
            for key, work in self.works.items()
        }
        self.left = {key for key, each in found.items() if not each.is_whole}
        staged = tuple(each.staged for each in found.values() if each.staged is not None)
        if not staged:
            return WriteResult(None, {})
        details = {"maintenance": "optimize" if self.run.scope.compact else "indexes"}
        return Proposal(snapshot, staged, self.conditions.actor, self.kind, details=details)


def keeps(root: GraphRoot, branch_id: str, owner: str) -> bool:
    """Whether a branch maintains the tables of `owner`: its own, and those of deleted branches."""
    return owner == branch_id or all(branch.id != owner for branch in list_branches(root))


def _scope(branch: str, types: Collection[str] | None, *, compact: bool) -> Scope:
    return Scope(branch, frozenset(types) if types is not None else None, compact)


def _maintain(
    context: Context, scope: Scope, report: Report | None, spread: Spread | None = None
) -> Upkeep:
    run = _Run(context, scope, report or (lambda text: None), spread)
    with writer_lock(
        context.root.objects, MAINTENANCE_LOCK, owner=context.actor, operation="optimize"
    ):
        _refuse_pending(run)
        for _ in range(_CYCLES):
            published = len(run.commits)
            run.carry_out()
            if len(run.commits) == published:
                break
    tables = tuple(run.shown[key] for key in sorted(run.shown))
    return Upkeep(tables, tuple(run.commits))


def _refuse_pending(run: _Run) -> None:
    """An interrupted write must be recovered before its tables are changed. Checked under the lock,
    because a running writer also has a sidecar."""
    objects, actor = run.root.objects, run.context.actor
    with writer_lock(objects, run.branch_id, owner=actor, operation="optimize"):
        waiting = [each for each in journal.pending(run.root) if each.branch_id == run.branch_id]
    if waiting:
        raise RecoveryRequiredError(
            f"Operation {waiting[0].id} was interrupted and must be recovered.",
            hint="Open the graph read-write, or run `omnigraph recovery run`; then optimize.",
            operation_id=waiting[0].id,
        )


def _chosen(snapshot: Snapshot, scope: Scope) -> list[NodeType | EdgeType]:
    tables = list(snapshot.catalog.tables())
    if scope.types is None:
        return tables
    unknown = scope.types - {table.name for table in tables}
    if unknown:
        raise TypeNotFoundError(f"The schema has no type {sorted(unknown)[0]!r}.")
    return [table for table in tables if table.name in scope.types]


def _nothing(table: NodeType | EdgeType, files: int = 0) -> TableUpkeep:
    return TableUpkeep(table.name, str(table.kind), files)


def _shown_index(task: IndexTask) -> IndexWork:
    return IndexWork(task.property, str(task.kind), task.type, task.rows, task.reason, task.pending)


def _done(shown: TableUpkeep, work: Work | None) -> TableUpkeep:
    """What was planned for a table, with the indexes that were built in the end."""
    if work is None:
        return shown
    return replace(shown, indexes=tuple(_shown_index(task) for task in work.tasks))


def _together(one: TableUpkeep | None, other: TableUpkeep) -> TableUpkeep:
    """What two rounds did to one table; the later one knows what is left."""
    if one is None:
        return other
    return replace(
        one,
        files_moved=one.files_moved + other.files_moved,
        rows_moved=one.rows_moved + other.rows_moved,
        indexes=(*one.built, *(other.indexes or one.pending)),
        skipped=other.skipped,
        columns=tuple(sorted({*one.columns, *other.columns})),
    )


def _named(name: str, tell: Report) -> Report:
    return lambda what: tell(f"{name}: {what}")
