"""The reconciler: keeps index coverage and fragmentation within bounds, off the write path.

    with Reconciler(context, bounds=Bounds(unindexed_rows=10_000)) as reconciler:
        ...
        reconciler.lag()

It looks at the branch now and then; when a table is out of bounds it optimizes that table alone.
Looking costs a read of metadata, and nothing at all while the branch stands still.

Guarantees: at most one thread; stopping waits for the work at hand; an error of one round is kept
and reported, and the next round tries again; writers do not wait for it.
Deliberately absent: cleanup. Giving up history is a person's decision.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import asdict, dataclass, replace
from types import TracebackType
from typing import Any

from omnigraph.arguments import checked
from omnigraph.errors import OmniGraphError, RecoveryRequiredError
from omnigraph.history.log import BranchLog
from omnigraph.history.refs import MAIN, read_branch
from omnigraph.history.resolve import head_snapshot
from omnigraph.model.indexes import indexes_of
from omnigraph.model.snapshot import TableVersion
from omnigraph.operations.context import Context
from omnigraph.operations.maintain import Upkeep, keeps
from omnigraph.operations.requests import MeasureLag, Optimize, Reconcile, Refresh
from omnigraph.operations.verbs import run
from omnigraph.storage.indexplan import plan_indexes
from omnigraph.storage.table import open_table
from omnigraph.storage.tablefacts import facts_of
from omnigraph.storage.tableforks import owner_of
from omnigraph.storage.tableschema import ROWS_PER_FILE

log = logging.getLogger(__name__)


@checked
@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits beyond which the reconciler optimizes a table."""

    unindexed_rows: int = 10_000
    unindexed_share: float = 0.1
    small_files: int = 16
    deleted_share: float = 0.2


@dataclass(frozen=True, slots=True)
class TableLag:
    """How far one table is behind: rows that some declared index lacks (the most of any), files
    that are too small, rows that are gone but still on disk."""

    type_name: str
    rows: int
    unindexed_rows: int
    missing_indexes: int
    small_files: int
    deleted_rows: int
    is_due: bool


@dataclass(frozen=True)
class Lag:
    """The lag of a branch at the last check."""

    branch: str
    commit_id: str
    seen_at_us: int
    tables: tuple[TableLag, ...]
    rounds: int = 0
    last_error: str | None = None

    @property
    def unindexed_rows(self) -> int:
        return sum(table.unindexed_rows for table in self.tables)

    @property
    def due(self) -> tuple[str, ...]:
        return tuple(table.type_name for table in self.tables if table.is_due)

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "unindexed_rows": self.unindexed_rows, "due": list(self.due)}


def lag_of(context: Context, request: MeasureLag) -> Lag:
    """How far the tables that a branch looks after are behind now."""
    root = context.root
    branch_id = read_branch(root, request.branch).id
    snapshot = head_snapshot(root, request.branch, BranchLog(root, branch_id))
    tables = []
    for table in snapshot.catalog.tables():
        version = snapshot.table(table.id)
        if version is not None and keeps(root, branch_id, owner_of(version)):
            tables.append(_table_lag(context, table, version, request.bounds or Bounds()))
    return Lag(request.branch, snapshot.commit_id, time.time_ns() // 1000, tuple(tables))


def _table_lag(context: Context, table: Any, version: TableVersion, bounds: Bounds) -> TableLag:
    opened = open_table(context.root.location, version)
    facts = facts_of(opened, ROWS_PER_FILE)
    due = [task for task in plan_indexes(table, opened) if task.pending is None]
    lacking = max((task.rows for task in due), default=0)
    missing = sum(1 for task in due if not task.extends)
    allowed = max(bounds.unindexed_rows, int(bounds.unindexed_share * facts.rows))
    physical = facts.rows + facts.deleted_rows
    is_due = (
        lacking > allowed
        or (missing > 0 and facts.rows > bounds.unindexed_rows)
        or facts.small_files > bounds.small_files + len(indexes_of(table))
        or facts.deleted_rows > bounds.deleted_share * max(physical, 1)
    )
    return TableLag(
        table.name, facts.rows, lacking, missing, facts.small_files, facts.deleted_rows, is_due
    )


def reconciler(context: Context, request: Reconcile) -> Reconciler:
    """A worker for a branch; it starts when it is entered as a context manager."""
    return Reconciler(context, request.branch, bounds=request.bounds, interval_s=request.interval_s)


class Reconciler:
    """Maintains one branch in the background of a long-lived process."""

    def __init__(
        self,
        context: Context,
        branch: str = MAIN,
        *,
        bounds: Bounds | None = None,
        interval_s: float = 30.0,
    ) -> None:
        self._context = context
        self._branch = branch
        self._bounds = bounds or Bounds()
        self._interval_s = interval_s
        self._stop = threading.Event()
        self._guard = threading.Lock()
        self._lag: Lag | None = None
        self._thread: threading.Thread | None = None
        self._rounds = 0

    def __enter__(self) -> Reconciler:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        if self._thread is None:
            self._stop.clear()
            self._thread = threading.Thread(target=self._run, name="reconciler", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Stop it, and wait for the current round."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def lag(self) -> Lag:
        """The lag at the last check; checks itself before the first round."""
        with self._guard:
            known = self._lag
        return known or self._look()

    def reconcile(self) -> Upkeep | None:
        """One round: check, and optimize tables beyond the limits. Returns the work."""
        done = None
        seen = self._look()
        if seen.due:
            done = run(self._context, Optimize(self._branch, types=seen.due))
            seen = self._look()
        self._rounds += 1
        self._remember(replace(seen, rounds=self._rounds))
        return done

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                if self._has_moved():
                    self.reconcile()
            except RecoveryRequiredError as error:
                self._note(error)
                self._recover()
            except OmniGraphError as error:
                self._note(error)
            self._stop.wait(min(self._interval_s, threading.TIMEOUT_MAX))

    def _has_moved(self) -> bool:
        with self._guard:
            known = self._lag
        if known is None or known.last_error is not None or known.due:
            return True
        branch_id = read_branch(self._context.root, self._branch).id
        return BranchLog(self._context.root, branch_id).state.head.id != known.commit_id

    def _look(self) -> Lag:
        return run(self._context, MeasureLag(self._branch, self._bounds))

    def _remember(self, lag: Lag) -> None:
        with self._guard:
            self._lag = lag

    def _recover(self) -> None:
        """Finish what was interrupted, as a writer that came by would."""
        try:
            run(self._context, Refresh(self._branch))
        except OmniGraphError as error:
            self._note(error)

    def _note(self, error: OmniGraphError) -> None:
        log.warning("maintenance of %s failed: %s", self._branch, error)
        with self._guard:
            if self._lag is not None:
                self._lag = replace(self._lag, last_error=str(error))
