"""A load on Spark: parts of an input into staged writes, one for each table.

    read → shape → row checks → write files → repeated ids → set checks → replace → staged writes

Guarantees: rows are read, checked and written on executors and never come to the driver; nothing
that is staged is visible; if a record is refused nothing comes out but `InvalidDataError`, with the
first violations by record and their number by rule. Refused records may be set aside instead: then
they come out as rejects, and the rest is staged.
Deliberately absent: commits, and choosing what to load.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate
from operator import attrgetter

import numpy as np

from omnigraph.bulk.integrity import Batch, Breach, Breaches, Inspector
from omnigraph.bulk.partwriter import (
    PartReport,
    PartTask,
    StageJob,
    locate_rows,
    stage_part,
    write_rejects,
)
from omnigraph.bulk.runner import LocalRunner, Measure, Runner
from omnigraph.bulk.splits import Split
from omnigraph.bulk.stagedkeys import KeyFile, RowSet, StagedKeys
from omnigraph.bulk.verdicts import ReplaceTask, run_task
from omnigraph.embedding import EmbeddingConfig
from omnigraph.errors import InvalidDataError, LimitExceededError, Violation
from omnigraph.model.catalog import EdgeType
from omnigraph.model.commit import StagedWrite
from omnigraph.model.snapshot import Snapshot
from omnigraph.model.write import Affected
from omnigraph.rows import breaches as words
from omnigraph.rows.findings import MOST, Findings, Numbers, invalid
from omnigraph.rows.identities import unnamed_notice
from omnigraph.storage.distributed import Removed, StagedFile, Target, finish_target, prepare_target
from omnigraph.storage.root import GraphRoot

# So many refused records may be set aside; beyond that the input itself is wrong.
MOST_REJECTS = 100_000
# Up to so many staged and committed rows of the tables that a load touches, their keys are checked
# here: a Spark job would take longer than its work.
_FEW_ROWS = 20_000
_PART_BITS = 32
_ROW_MASK = (1 << _PART_BITS) - 1
# Record, line and file of rows, by type and place.
_Origins = dict[tuple[int, int], tuple[int, int | None, str | None]]


@dataclass(frozen=True)
class LoadPlan:
    """What to load and how. `mode` is append, merge or overwrite; `types` are further tables that
    an overwrite replaces; `set_aside` names the folder for refused records; `embed` says how to
    make vectors that the input lacks."""

    splits: tuple[Split, ...]
    mode: str
    types: tuple[int, ...] = ()
    set_aside: str | None = None
    embed: EmbeddingConfig | None = None
    required_only: bool = False  # of the vectors, make those that may not be missing
    edge_key: tuple[str, ...] = ()


@dataclass(frozen=True)
class Loaded:
    """What a load comes to, ready for the door. `reads`: tables that its checks rest on."""

    staged: tuple[StagedWrite, ...]
    affected: Mapping[str, Affected]
    reads: frozenset[int]
    records: int
    rejected: int = 0
    notices: tuple[str, ...] = ()


@dataclass
class _Dropped:
    """Rows to leave out, by part and type, and why."""

    rows: dict[int, dict[int, RowSet]] = field(default_factory=dict)
    reasons: dict[int, dict[tuple[int, int], str]] = field(default_factory=dict)

    def add(self, table_id: int, places: Sequence[int] | Numbers) -> set[int]:
        """Returns the parts that have to be staged again."""
        ordered = np.sort(np.asarray(places, np.int64))
        ends = np.flatnonzero(np.diff(ordered >> _PART_BITS)) + 1
        touched = set()
        for some in np.split(ordered, ends) if len(ordered) else ():
            part, rows = int(some[0]) >> _PART_BITS, some & _ROW_MASK
            held = self.rows.setdefault(part, {})
            known = held.get(table_id)
            held[table_id] = RowSet.of(rows) if known is None else known.joined(rows)
            touched.add(part)
        return touched

    def explain(self, table_id: int, place: int, reason: str) -> None:
        """Of several reasons, only the first is reported."""
        part, row = place >> _PART_BITS, place & _ROW_MASK
        self.reasons.setdefault(part, {}).setdefault((table_id, row), reason)

    def of(self, part: int) -> Mapping[int, RowSet]:
        return self.rows.get(part, {})


def stage_load(
    runner: Runner, root: GraphRoot, branch_id: str, snapshot: Snapshot, plan: LoadPlan
) -> Loaded:
    """Stage everything. Raises `InvalidDataError` or `KeyConflictError` if it may not stand."""
    return _Loader(runner, root, branch_id, snapshot, plan).run()


class _Loader:
    def __init__(
        self,
        runner: Runner,
        root: GraphRoot,
        branch_id: str,
        snapshot: Snapshot,
        plan: LoadPlan,
    ) -> None:
        self._runner = runner
        self._checker: Runner = runner
        self._root = root
        self._snapshot = snapshot
        self._plan = plan
        self._dropped = _Dropped()
        self._job = StageJob(
            snapshot.catalog,
            self._targets(branch_id),
            plan.set_aside is not None,
            plan.embed,
            plan.required_only,
            plan.edge_key,
        )
        self._reports: list[PartReport] = []

    def run(self) -> Loaded:
        self._reports = self._stage([PartTask(split) for split in self._plan.splits])
        self._refuse_bad_rows()
        if self._rows_to_check() <= _FEW_ROWS:
            self._checker = LocalRunner()
        self._settle_repeats()
        self._settle_sets()
        return self._finish()

    def _targets(self, branch_id: str) -> dict[int, Target]:
        """Where rows of each type that may occur would go."""
        known = {split.how.table_id for split in self._plan.splits}
        wanted = None if None in known else {*known, *self._plan.types}
        return {
            table.id: prepare_target(
                self._root,
                branch_id,
                table,
                self._snapshot.table(table.id),
                replaces=self._plan.mode == "overwrite",
            )
            for table in self._snapshot.catalog.tables()
            if wanted is None or table.id in wanted
        }

    def _stage(self, tasks: Sequence[PartTask]) -> list[PartReport]:
        stage: Callable[[PartTask], PartReport] = partial(stage_part, self._job)
        measure = Measure(rows=attrgetter("records"), bytes=attrgetter("split.size"))
        return self._runner.run(stage, tasks, "read, check and write rows", measure)

    def _stage_again(self, parts: Iterable[int]) -> None:
        """Stage some parts again, without the rows that were dropped in the meantime."""
        chosen = sorted(set(parts))
        tasks = [
            PartTask(
                self._plan.splits[part],
                self._dropped.of(part),
                self._dropped.reasons.get(part, {}),
            )
            for part in chosen
        ]
        for part, report in zip(chosen, self._stage(tasks), strict=True):
            self._reports[part] = report

    # What came before a part, in records and lines.

    def _records_before(self, part: int) -> int:
        return sum(report.records for report in self._reports[:part])

    def _lines_before(self, part: int) -> int:
        splits = self._plan.splits
        before = zip(self._reports[:part], splits, strict=False)
        return sum(r.lines for r, split in before if split.file == splits[part].file)

    # Rows by themselves.

    def _refuse_bad_rows(self) -> None:
        total = sum(report.total for report in self._reports)
        unplaced = {
            (v.type_name, v.property, v.message): v for r in self._reports for v in r.unplaced
        }
        if unplaced or (total and self._plan.set_aside is None):
            by_rule = Counter(v.rule for v in unplaced.values())
            for report in self._reports:
                by_rule.update(report.by_rule)
            raise _invalid(
                [*unplaced.values(), *self._placed_violations()], total + len(unplaced), by_rule
            )

    def _placed_violations(self) -> list[Violation]:
        """The first violations, numbered in the whole input."""
        records = [0, *accumulate(report.records for report in self._reports)]
        found: list[Violation] = []
        for report in self._reports:
            if len(found) >= MOST:
                break
            for violation in report.violations:
                lines = self._lines_before(report.place) if violation.line is not None else 0
                found.append(_moved(violation, records[report.place], lines))
        return found[:MOST]

    def _rows_to_check(self) -> int:
        staged = sum(part.rows for report in self._reports for part in report.tables.values())
        committed = (self._snapshot.table(table.id) for table in self._snapshot.catalog.tables())
        return staged + sum(version.rows for version in committed if version is not None)

    # Rows among each other.

    def _batch(self) -> Batch:
        staged = {}
        for table_id, target in self._job.targets.items():
            files = tuple(self._key_files(table_id))
            if files:
                parts = [r.tables[table_id] for r in self._reports if table_id in r.tables]
                staged[table_id] = StagedKeys(target, files, all(part.fresh for part in parts))
        replaced: frozenset[int] = frozenset()
        if self._plan.mode == "overwrite":
            seen = {t for r in self._reports for t, part in r.tables.items() if part.rows}
            replaced = frozenset({*seen, *self._plan.types})
        return Batch(self._snapshot, self._root.location, staged, self._plan.mode, replaced)

    def _key_files(self, table_id: int) -> Iterable[KeyFile]:
        for report in self._reports:
            part = report.tables.get(table_id)
            first, dropped = 0, self._dropped.of(report.place).get(table_id)
            for file in part.files if part else ():
                yield KeyFile(report.place, first, dropped, file)
                first += file.rows

    def _inspector(self) -> Inspector:
        most = MOST if self._plan.set_aside is None else MOST_REJECTS
        return Inspector(self._checker, self._batch(), most)

    def _settle_repeats(self) -> None:
        merging = self._plan.mode == "merge"
        found, dropped = self._inspector().repeated(last_wins=merging)
        self._refuse(found)
        touched = {p for t, places in dropped.items() for p in self._dropped.add(t, places)}
        touched |= self._set_aside(found)
        self._stage_again(touched)

    def _settle_sets(self) -> None:
        """Check, and if rows are set aside check again: others may have leaned on them."""
        while True:
            found = self._inspector().inspect()
            self._refuse(found)
            touched = self._set_aside(found)
            if not touched:
                return
            self._stage_again(touched)

    def _refuse(self, found: Breaches) -> None:
        if self._plan.set_aside is not None and all(b.place is not None for b in found.found):
            return
        for table, total, ids in found.taken.values():
            raise words.taken_ids(table, ids, total)
        if found.found:
            violations = self._located(found.found)
            raise _invalid(violations, sum(found.counts.values()), found.counts)

    def _set_aside(self, found: Breaches) -> set[int]:
        if self._plan.set_aside is None:
            return set()
        refused: dict[int, list[int]] = {}

        def refuse(table_id: int, place: int, reason: str) -> None:
            refused.setdefault(table_id, []).append(place)
            self._dropped.explain(table_id, place, reason)

        origins = self._origins([breach for breach in found.found if breach.others])
        for breach in found.found:
            assert breach.place is not None
            reason = breach.describe(_records_of(origins, breach.table.id))
            refuse(breach.table.id, breach.place, str(reason.message))
        for table, places, breach in found.crowded:
            reason = breach.describe(lambda place: 0)
            for place in places.tolist():
                refuse(table.id, place, reason.message)
        return {part for t, places in refused.items() for part in self._dropped.add(t, places)}

    def _located(self, found: Sequence[Breach]) -> list[Violation]:
        """The first breaches in words, with record, line and file."""
        placed = sorted((b for b in found if b.place is not None), key=lambda b: b.place or 0)
        apart = [breach for breach in found if breach.place is None]
        chosen = [*apart, *placed][:MOST]
        origins = self._origins(chosen)
        violations = []
        for breach in chosen:
            violation = breach.describe(_records_of(origins, breach.table.id))
            if breach.place is not None:
                record, line, file = origins[breach.table.id, breach.place]
                violation = replace(violation, record=record, line=line, file=file)
            violations.append(violation)
        return sorted(violations, key=lambda v: -1 if v.record is None else v.record)

    def _origins(self, found: Sequence[Breach]) -> _Origins:
        """Record, line and file of places, by reading their parts again."""
        wanted: dict[int, dict[int, set[int]]] = {}
        for breach in found:
            for place in (*breach.others, *(() if breach.place is None else (breach.place,))):
                rows = wanted.setdefault(place >> _PART_BITS, {})
                rows.setdefault(breach.table.id, set()).add(place & _ROW_MASK)
        parts = sorted(wanted)
        items = [
            (
                self._plan.splits[part],
                {t: np.array(sorted(rows)) for t, rows in wanted[part].items()},
            )
            for part in parts
        ]
        locate = partial(locate_rows, self._job)
        answers = self._runner.run(locate, items, "find the lines of rows")
        origins: _Origins = {}
        for part, answer in zip(parts, answers, strict=True):
            records, lines = self._records_before(part), self._lines_before(part)
            split = self._plan.splits[part]
            for (table_id, row), (record, line) in answer.items():
                place = (part << _PART_BITS) | row
                origins[table_id, place] = (
                    record + records,
                    None if line is None else line + lines,
                    None if split.scratch else split.file,
                )
        return origins

    # The end.

    def _finish(self) -> Loaded:
        batch = self._batch()
        rejected = self._write_rejects()
        replaced = self._replace(batch)
        staged, affected = [], {}
        for table_id, target in self._job.targets.items():
            files = (
                [each.file for each in batch.staged[table_id].files]
                if (table_id in batch.staged)
                else []
            )
            if not _moves(target, files, table_id in batch.replaced):
                continue
            gone = replaced.get(table_id, [])
            staged.append(finish_target(target, files, gone))
            affected[target.table.name] = self._affected(batch, target, files, gone)
        records = sum(report.records for report in self._reports)
        return Loaded(
            tuple(staged), affected, batch.reads(), records, rejected, tuple(self._notices())
        )

    def _notices(self) -> Iterable[str]:
        if self._plan.mode != "merge":
            return
        for table_id, target in self._job.targets.items():
            parts = [r.tables[table_id] for r in self._reports if table_id in r.tables]
            unnamed = sum(part.unnamed for part in parts)
            if unnamed and isinstance(target.table, EdgeType) and not target.table.uniques:
                yield unnamed_notice(target.table, unnamed)

    def _replace(self, batch: Batch) -> dict[int, list[Removed]]:
        """Mark the committed rows that the load replaces."""
        if self._plan.mode != "merge":
            return {}
        tasks, owners = [], []
        for table_id, keys in batch.staged.items():
            committed = None if keys.fresh else batch.committed(table_id)
            for share in committed.shared_out(self._checker.width) if committed else ():
                tasks.append(ReplaceTask(keys.target, keys, share))
                owners.append(table_id)
        verdicts = self._checker.run(run_task, tasks, "replace existing rows")
        found: dict[int, list[Removed]] = {}
        for table_id, verdict in zip(owners, verdicts, strict=True):
            if verdict.removed is not None and verdict.removed.rows:
                found.setdefault(table_id, []).append(verdict.removed)
        return found

    def _affected(
        self, batch: Batch, target: Target, files: Sequence[StagedFile], gone: Sequence[Removed]
    ) -> Affected:
        rows = sum(file.rows for file in files)
        is_edge = isinstance(target.table, EdgeType)
        updated = sum(part.rows for part in gone)
        deleted = 0
        if target.replaces and target.base is not None:
            updated = Inspector(self._checker, batch).count_existing(target.table.id)
            deleted = target.base.rows - updated
        return Affected(rows - updated, updated, deleted, is_edge)

    def _write_rejects(self) -> int:
        rejected = sum(len(report.rejects) for report in self._reports)
        if self._plan.set_aside is None:
            return 0
        if rejected > MOST_REJECTS:
            raise LimitExceededError(
                f"{rejected:,} records were rejected; at most {MOST_REJECTS:,} are set aside.",
                resource="rejects",
                limit=float(MOST_REJECTS),
                actual=float(rejected),
                hint="Check the input: most of its records violate the schema.",
            )
        for part, report in enumerate(self._reports):
            split = self._plan.splits[part]
            records, lines = self._records_before(part), self._lines_before(part)
            write_rejects(self._plan.set_aside, split, report, records, lines)
        return rejected


def _records_of(origins: _Origins, table_id: int) -> Callable[[int], int]:
    """The record of a row of this type, by its place."""
    return lambda place: origins[table_id, place][0]


def _moves(target: Target, files: Sequence[StagedFile], replaced: bool) -> bool:
    if files:
        return True
    return replaced and target.base is not None and target.base.rows > 0


def _moved(violation: Violation, records: int, lines: int) -> Violation:
    return replace(
        violation,
        record=None if violation.record is None else violation.record + records,
        line=None if violation.line is None else violation.line + lines,
    )


def _invalid(
    violations: Sequence[Violation], total: int, by_rule: Mapping[str, int]
) -> InvalidDataError:
    findings = Findings()
    for violation in violations:
        findings.add(violation)
    return invalid(findings.violations, total, by_rule)
