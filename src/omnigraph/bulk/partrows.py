"""From blocks to rows of the graph's types, in a task: checked one by one, and given ids.

Guarantees: the same functions as in-process (`rows.checks`, `rows.identities`), so the same rows
and the same findings; rows with findings are left out of what comes back; rows of a type are in the
order of their records. With `explain`, every rejected record is reported with all of its reasons.
Deliberately absent: other rows (`integrity`), and files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.bulk.partreader import read_split
from omnigraph.bulk.splits import Split
from omnigraph.errors import Violation
from omnigraph.intake.envelopes import Block, Parsed
from omnigraph.intake.records import Record, read_line
from omnigraph.model.catalog import Catalog
from omnigraph.model.result import plain_value
from omnigraph.model.temporal import python_rows
from omnigraph.rows.checks import TableType, check_rows
from omnigraph.rows.findings import Findings, Numbers, Origin
from omnigraph.rows.identities import count_unnamed, identify, is_made


@dataclass(frozen=True)
class Shaped:
    """Good rows of one type. `fresh`: no id came along with any of them. `unnamed`: how many are
    edges that loading them again would not recognize."""

    table: TableType
    rows: pa.Table
    origin: Origin
    fresh: bool
    unnamed: int = 0


@dataclass(frozen=True)
class Reject:
    """A record that was refused, as it was given."""

    record: int
    line: int | None
    reasons: tuple[str, ...]
    source: Any


class _RowFindings(Findings):
    """Findings that remember every row they are about."""

    def __init__(self, explain: bool) -> None:
        super().__init__()
        self._explain = explain
        self.apart: list[Violation] = []
        self.rows: list[Numbers] = []
        self.reasons: dict[int, list[str]] = {}

    def add(self, violation: Violation) -> None:
        # About no row (an unknown column, say): to be said once, not once for each block.
        self.apart.append(violation)

    def add_rows(self, rows: Any, origin: Origin, describe: Any) -> None:
        super().add_rows(rows, origin, describe)
        self.rows.append(np.asarray(rows, np.int64))
        if self._explain:
            for row in rows:
                self.reasons.setdefault(int(row), []).append(_reason(describe(int(row))))

    def good(self, count: int) -> Numbers | None:
        """The rows that nothing was found about; None: all of them."""
        if not any(len(rows) for rows in self.rows):
            return None
        return np.setdiff1d(np.arange(count), np.concatenate(self.rows))


def _reason(violation: Violation) -> str:
    where = ".".join(part for part in (violation.type_name, violation.property) if part)
    return f"{where}: {violation.message}" if where else violation.message


class Shaper:
    """Shapes one part of an input."""

    def __init__(
        self,
        catalog: Catalog,
        split: Split,
        *,
        explain: bool = False,
        embed: Callable[[TableType, pa.Table], pa.Table] | None = None,
        edge_key: Sequence[str] = (),
    ) -> None:
        self._edge_key = edge_key
        self._catalog = catalog
        self._split = split
        self._explain = explain
        self._embed = embed
        self.findings = Findings()
        self.unplaced: dict[tuple[str | None, str | None], Violation] = {}
        self.lines = 0
        self.records = 0

    def shape(self) -> Iterator[tuple[list[Shaped], list[Reject]]]:
        """Good rows by type and refused records, block by block."""
        for block, data in read_split(self._catalog, self._split):
            shaped, rejects = self._shape_block(block)
            if self._explain and block.findings:
                rejects += self._refused(block, data)
            self.findings.merge(block.findings)
            self.lines += block.lines
            self.records += block.records
            yield shaped, rejects

    def _shape_block(self, block: Block) -> tuple[list[Shaped], list[Reject]]:
        by_table: dict[int, list[Shaped]] = {}
        rejects: list[Reject] = []
        for parsed in block.parsed:
            shaped = self._shape_rows(parsed, rejects)
            by_table.setdefault(parsed.table.id, []).append(shaped)
        return [_in_order(pieces) for pieces in by_table.values()], rejects

    def _shape_rows(self, parsed: Parsed, rejects: list[Reject]) -> Shaped:
        """Rows pass the checks first; those that do are given their ids."""
        table, origin = parsed.table, parsed.origin
        found = _RowFindings(self._explain)
        data = parsed.rows if self._embed is None else self._embed(table, parsed.rows)
        rows = check_rows(table, data, origin, found)
        rows, origin, data = self._keep_good(rows, origin, data, found, rejects)
        fresh = is_made(table, rows, self._edge_key)
        unnamed = count_unnamed(table, rows, self._edge_key)
        found = _RowFindings(self._explain)
        rows = identify(table, rows, origin, found, self._edge_key)
        rows, origin, _ = self._keep_good(rows, origin, data, found, rejects)
        return Shaped(table, rows, origin, fresh, unnamed)

    def _keep_good(
        self,
        rows: pa.Table,
        origin: Origin,
        data: pa.Table,
        found: _RowFindings,
        rejects: list[Reject],
    ) -> tuple[pa.Table, Origin, pa.Table]:
        self._merge(found)
        good = found.good(rows.num_rows)
        if good is None:
            return rows, origin, data
        for row, reasons in sorted(found.reasons.items()):
            source = _plain_row(data, row)
            rejects.append(Reject(origin.record(row), origin.line(row), tuple(reasons), source))
        chosen = pa.array(good)
        return rows.take(chosen), origin.take(good), data.take(chosen)

    def _merge(self, found: _RowFindings) -> None:
        self.findings.merge(found)
        for violation in found.apart:
            self.unplaced.setdefault((violation.type_name, violation.property), violation)

    def _refused(self, block: Block, data: bytes | None) -> list[Reject]:
        """Records that could not even be read, with their own text."""
        if data is None:
            return _rejects(block.findings.violations)
        numbers = [parsed.origin.lines for parsed in block.parsed]
        read = {int(line) for lines in numbers if lines is not None for line in lines}
        rejects, record = [], self.records
        for number, line in enumerate(data.split(b"\n"), self.lines + 1):
            if not line.strip():
                continue
            if number not in read:
                outcome = read_line(self._catalog, line)
                wrong = [] if isinstance(outcome, Record) else outcome
                text = line.decode("utf-8", "replace").rstrip("\r")
                rejects.append(Reject(record, number, tuple(_reason(v) for v in wrong), text))
            record += 1
        return rejects


def _rejects(violations: Sequence[Violation]) -> list[Reject]:
    """Violations of rows that have no text, by record."""
    found: dict[int, Reject] = {}
    for each in violations:
        known = found.get(each.record or 0)
        reasons = (*(known.reasons if known else ()), _reason(each))
        found[each.record or 0] = Reject(each.record or 0, each.line, reasons, None)
    return list(found.values())


def _plain_row(data: pa.Table, row: int) -> dict[str, Any]:
    (values,) = python_rows(data.slice(row, 1))
    return {name: plain_value(value) for name, value in values.items() if value is not None}


def _in_order(pieces: list[Shaped]) -> Shaped:
    """Several pieces of one type and block as one, by record."""
    first = pieces[0]
    if len(pieces) == 1:
        return first
    rows = pa.concat_tables([piece.rows for piece in pieces])
    origin = Origin.joined([piece.origin for piece in pieces])
    assert origin.records is not None
    order = np.argsort(origin.records, kind="stable")
    fresh = all(piece.fresh for piece in pieces)
    unnamed = sum(piece.unnamed for piece in pieces)
    return Shaped(first.table, rows.take(pa.array(order)), origin.take(order), fresh, unnamed)


def reject_line(split: Split, reject: Reject, records: int, lines: int) -> bytes:
    """A refused record as one line of a quarantine file; numbers are those of the whole input."""
    value = {
        "file": None if split.scratch else split.file,
        "line": None if reject.line is None else reject.line + lines,
        "record": reject.record + records,
        "reasons": list(reject.reasons),
        "source": reject.source,
    }
    return json.dumps(value, ensure_ascii=False, default=str).encode() + b"\n"
