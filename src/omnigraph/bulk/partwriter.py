"""Staging one part of an input, in a task: shaped rows into files, and a report to the driver.

Guarantees: deterministic but for made ids, so that a part may be staged again, with some rows left
out, and the others keep their numbers; a part that holds a refused record stages nothing more,
unless refused records are to be set aside.
Deliberately absent: set checks, which the driver asks for once all parts are staged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa

from omnigraph.bulk.partrows import Reject, Shaped, Shaper, reject_line
from omnigraph.bulk.rowvectors import fill_vectors
from omnigraph.bulk.splits import Split
from omnigraph.bulk.stagedkeys import RowSet
from omnigraph.embedding import EmbeddingConfig
from omnigraph.errors import Violation
from omnigraph.model.catalog import Catalog
from omnigraph.model.temporal import python_rows
from omnigraph.rows.findings import Numbers, Origin
from omnigraph.storage.distributed import StagedFile, Target, write_rows
from omnigraph.storage.inputs import write_output
from omnigraph.storage.tableschema import ROWS_PER_FILE

# Wide rows (vectors, blobs) are written before they fill the memory of a task.
_FILE_BYTES = 64 << 20


@dataclass(frozen=True)
class StageJob:
    """The parameters of every task of a load."""

    catalog: Catalog
    targets: Mapping[int, Target]
    set_aside: bool = False
    embed: EmbeddingConfig | None = None
    required_only: bool = False
    edge_key: tuple[str, ...] = ()

    def embedder(self, *, pretend: bool = False) -> Callable[..., pa.Table] | None:
        """What fills in vectors, if that is wanted."""
        if self.embed is None:
            return None
        return partial(
            fill_vectors, config=self.embed, pretend=pretend, required_only=self.required_only
        )


@dataclass(frozen=True)
class PartTask:
    """One part, and what to leave out of it: shaped rows by type, some of them with a reason."""

    split: Split
    dropped: Mapping[int, RowSet] = field(default_factory=dict)
    reasons: Mapping[tuple[int, int], str] = field(default_factory=dict)


@dataclass(frozen=True)
class TablePart:
    """Rows of one type in one part: `rows` were shaped, those in files are staged."""

    rows: int
    fresh: bool
    files: tuple[StagedFile, ...]
    unnamed: int = 0


@dataclass(frozen=True)
class PartReport:
    """What became of one part. Violations are numbered from the beginning of the part."""

    place: int
    lines: int
    records: int
    tables: Mapping[int, TablePart]
    total: int
    by_rule: Mapping[str, int]
    violations: tuple[Violation, ...]
    unplaced: tuple[Violation, ...]
    rejects: tuple[Reject, ...] = ()


class _TableWriter:
    """Gathers rows of one type and writes them in files of the usual size."""

    def __init__(self, target: Target, dropped: RowSet | None) -> None:
        self._target = target
        self._dropped = None if dropped is None else dropped.numbers()
        self._held: list[pa.Table] = []
        self._held_rows = 0
        self._held_bytes = 0
        self.rows = 0
        self.fresh = True
        self.unnamed = 0
        self.files: list[StagedFile] = []

    def add(self, shaped: Shaped, *, write: bool) -> None:
        rows, first = shaped.rows, self.rows
        self.rows += rows.num_rows
        self.fresh = self.fresh and shaped.fresh
        self.unnamed += shaped.unnamed
        if self._dropped is not None:
            low, high = np.searchsorted(self._dropped, (first, self.rows))
            stays = np.ones(rows.num_rows, bool)
            stays[self._dropped[low:high] - first] = False
            rows = rows if low == high else rows.filter(pa.array(stays))
        if write and rows.num_rows:
            self._hold(rows)

    def _hold(self, rows: pa.Table) -> None:
        self._held.append(rows)
        self._held_rows += rows.num_rows
        self._held_bytes += rows.nbytes
        while self._held_rows >= ROWS_PER_FILE or self._held_bytes >= _FILE_BYTES:
            self._write(ROWS_PER_FILE)

    def finish(self) -> TablePart:
        while self._held_rows:
            self._write(ROWS_PER_FILE)
        return TablePart(self.rows, self.fresh, tuple(self.files), self.unnamed)

    def _write(self, most: int) -> None:
        held = pa.concat_tables(self._held)
        self.files += write_rows(self._target, held.slice(0, most))
        rest = held.slice(most)
        self._held = [rest] if rest.num_rows else []
        self._held_rows, self._held_bytes = rest.num_rows, rest.nbytes if rest.num_rows else 0


def stage_part(job: StageJob, task: PartTask) -> PartReport:
    """Read, check and write one part."""
    shaper = Shaper(
        job.catalog,
        task.split,
        explain=job.set_aside,
        embed=job.embedder(),
        edge_key=job.edge_key,
    )
    writers: dict[int, _TableWriter] = {}
    rejects: list[Reject] = []
    for shaped, refused in shaper.shape():
        rejects += refused
        write = job.set_aside or not (shaper.findings or shaper.unplaced)
        for piece in shaped:
            rejects += _dropped_rejects(task, piece, writers.get(piece.table.id))
            writer = _writer(job, task, writers, piece.table.id)
            writer.add(piece, write=write)
    sound = job.set_aside or not (shaper.findings or shaper.unplaced)
    tables = {
        table_id: writer.finish() if sound else TablePart(writer.rows, writer.fresh, ())
        for table_id, writer in writers.items()
    }
    return PartReport(
        task.split.place,
        shaper.lines,
        shaper.records,
        tables,
        shaper.findings.total,
        dict(shaper.findings.by_rule),
        shaper.findings.violations,
        tuple(shaper.unplaced.values()),
        tuple(rejects),
    )


def _writer(
    job: StageJob, task: PartTask, writers: dict[int, _TableWriter], table_id: int
) -> _TableWriter:
    if table_id not in writers:
        writers[table_id] = _TableWriter(job.targets[table_id], task.dropped.get(table_id))
    return writers[table_id]


def _dropped_rejects(
    task: PartTask, piece: Shaped, writer: _TableWriter | None
) -> Iterable[Reject]:
    """Rows that a set check refused, as quarantine shows them."""
    if not task.reasons:
        return
    first = writer.rows if writer else 0
    table = piece.table
    for row in range(piece.rows.num_rows):
        reason = task.reasons.get((table.id, first + row))
        if reason is not None:
            (values,) = python_rows(piece.rows.slice(row, 1))
            source = {"type" if table.kind == "node" else "edge": table.name, "data": values}
            yield Reject(piece.origin.record(row), piece.origin.line(row), (reason,), source)


def locate_rows(
    job: StageJob, item: tuple[Split, Mapping[int, Numbers]]
) -> dict[tuple[int, int], tuple[int, int | None]]:
    """Where rows of one part came from: (type, row) → record and line. Reads the part again."""
    split, wanted = item
    # Vectors are of no consequence here, but their absence would change which rows are good.
    embed = job.embedder(pretend=True)
    shaper = Shaper(job.catalog, split, embed=embed, edge_key=job.edge_key)
    seen: dict[int, int] = {}
    found: dict[tuple[int, int], tuple[int, int | None]] = {}
    for shaped, _ in shaper.shape():
        for piece in shaped:
            table_id, first = piece.table.id, seen.get(piece.table.id, 0)
            seen[table_id] = first + piece.rows.num_rows
            for row in wanted.get(table_id, ()):
                if first <= row < seen[table_id]:
                    found[table_id, int(row)] = _origin(piece.origin, int(row) - first)
    return found


def _origin(origin: Origin, row: int) -> tuple[int, int | None]:
    return origin.record(row), origin.line(row)


def write_rejects(folder: str, split: Split, report: PartReport, records: int, lines: int) -> None:
    """Put the refused records of one part into a file of the quarantine folder."""
    if report.rejects:
        rejects = sorted(report.rejects, key=lambda reject: reject.record)
        data = b"".join(reject_line(split, reject, records, lines) for reject in rejects)
        write_output(f"{folder.rstrip('/')}/rejects-{split.place:05d}.jsonl", data)
