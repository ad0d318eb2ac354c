"""Ingest: writes rows in this process.

    append      every id must be new; an existing id is a conflict and nothing is written
    merge       an existing row is replaced; of several records with one id the last is used
    overwrite   the input replaces all rows of its types

Guarantees: one atomic commit; the order of records matters only for duplicates in `merge`, so edges
may precede their nodes; everything is validated before a table changes. Inputs beyond the size
limit need `load`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from omnigraph import progress
from omnigraph.engines.embedded.integrity import run_checks
from omnigraph.engines.embedded.mutation import affected_rows
from omnigraph.engines.embedded.stagedelta import replaced_rows
from omnigraph.engines.embedded.view import View
from omnigraph.errors import InvalidArgumentError
from omnigraph.history.log import BranchLog
from omnigraph.history.refs import read_branch
from omnigraph.history.resolve import head_snapshot
from omnigraph.intake.inputforms import MOST_BYTES, Lines, Supply, supply
from omnigraph.intake.typedrows import EmbedRows, TypeRows, find_type, shape
from omnigraph.model.catalog import Catalog, EdgeType
from omnigraph.model.commit import CommitKind
from omnigraph.model.write import Affected, WriteResult
from omnigraph.operations.context import Context
from omnigraph.operations.requests import Ingest
from omnigraph.rows.deltas import Delta, TableDelta, no_rows
from omnigraph.rows.findings import Findings
from omnigraph.rows.identities import edge_key_names, unnamed_notice
from omnigraph.rows.setchecks import distinct_ids, last_of_each, set_checks
from omnigraph.writes.groupcommit import write_alone, write_in_group
from omnigraph.writes.request import Conditions, Evaluated
from omnigraph.writes.requiredvectors import required_vectors
from omnigraph.writes.rowgroup import MOST_LISTED


class Mode(StrEnum):
    APPEND = "append"
    MERGE = "merge"
    OVERWRITE = "overwrite"


@dataclass
class IngestRequest:
    """Rows to ingest. They are converted once per schema, not once per attempt."""

    parts: Supply
    mode: Mode
    conditions: Conditions
    types: tuple[str, ...] = ()
    most_bytes: int = MOST_BYTES
    embed: EmbedRows | None = None
    edge_key: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    _shaped: tuple[str, Delta] | None = None

    @property
    def kind(self) -> CommitKind:
        return CommitKind.LOAD

    @property
    def is_strict(self) -> bool:
        return self.mode is Mode.OVERWRITE

    @property
    def joint(self) -> None:
        return None

    @property
    def fingerprint(self) -> str | None:
        parts = self.parts()
        if not all(isinstance(part, Lines) for part in parts):
            return None
        digest = hashlib.blake2b(
            f"{self.mode} {sorted(self.types)} {self.edge_key}".encode(), digest_size=16
        )
        for part in parts:
            digest.update(part.data if isinstance(part, Lines) else b"")
        return digest.hexdigest()

    def evaluate(self, view: View) -> Evaluated:
        catalog = view.snapshot.catalog
        delta = self.shaped(catalog)
        run_checks(view, delta, set_checks(catalog, delta)).raise_if_any()
        known = {
            table_id: replace(change, replacing=replaced_rows(view, change))
            for table_id, change in delta.items()
        }
        return Evaluated(known, _affected(view, known))

    def shaped(self, catalog: Catalog) -> Delta:
        """The rows as a delta, independent of the stored rows."""
        if self._shaped is None or self._shaped[0] != catalog.hash:
            self._shaped = (catalog.hash, self._shape(catalog))
        return self._shaped[1]

    def _shape(self, catalog: Catalog) -> Delta:
        findings = Findings()
        found = shape(catalog, self.parts(), findings, self.most_bytes, self.embed, self.edge_key)
        findings.raise_if_any()
        if self.mode is Mode.MERGE:
            self.notices = tuple(_notices(found.values()))
        delta = {table_id: self._delta(rows, findings) for table_id, rows in found.items()}
        findings.raise_if_any()
        if self.mode is Mode.OVERWRITE:
            for table in (find_type(catalog, name) for name in self.types):
                delta.setdefault(table.id, TableDelta(table, no_rows(table), replaces=True))
            _refuse_no_types(delta)
        return delta

    def _delta(self, found: TypeRows, findings: Findings) -> TableDelta:
        table, rows, origin = found.table, found.rows, found.origin
        if self.mode is Mode.MERGE:
            rows, origin = last_of_each(rows, origin)
        elif not found.fresh:
            distinct_ids(table, rows, origin, findings)
        return TableDelta(
            table,
            rows,
            replaces=self.mode is Mode.OVERWRITE,
            strict=self.mode is Mode.APPEND,
            fresh=found.fresh,
            origin=origin,
        )


def ingest(context: Context, request: Ingest) -> WriteResult:
    """Ingest rows into a branch. `types` are further types whose rows an overwrite deletes; those
    of the input are replaced anyway. `edge_key` lists the properties that determine the id of edges
    without one."""
    root = context.root
    parts = supply(request.data, request.type, request.most_bytes)
    log = BranchLog(root, read_branch(root, request.branch).id)
    catalog = head_snapshot(root, request.branch, log).catalog
    embed = required_vectors(catalog.tables())
    write = IngestRequest(
        parts,
        _mode(request.mode),
        Conditions(context.actor, request.message, request.if_commit, request.idempotency_key),
        tuple(request.types) if request.type is None else (*request.types, request.type),
        request.most_bytes,
        embed,
        edge_key_names(request.edge_key),
    )
    # Shaping is most of the work, and needs no lock.
    delta = write.shaped(catalog)
    if embed is not None:
        write.conditions = replace(write.conditions, details=embed.details)
    rows = sum(change.rows.num_rows for change in delta.values())
    progress.report("write", rows=rows)
    if rows > MOST_LISTED or write.is_strict:
        result = write_alone(root, request.branch, write)
    else:
        # While a provider makes vectors the branch may move, so it is read again.
        result = write_in_group(root, request.branch, write, None if embed else log)
    return replace(result, notices=write.notices)


def _notices(found: Iterable[TypeRows]) -> Iterator[str]:
    for rows in found:
        if isinstance(rows.table, EdgeType) and rows.unnamed and not rows.table.uniques:
            yield unnamed_notice(rows.table, rows.unnamed)


def _mode(mode: str) -> Mode:
    try:
        return Mode(mode)
    except ValueError:
        raise InvalidArgumentError(
            f"There is no mode {mode!r}.", hint=f"Use one of {', '.join(Mode)}."
        ) from None


def _refuse_no_types(delta: Delta) -> None:
    if not delta:
        raise InvalidArgumentError(
            "The input is empty, and no type to replace is given.",
            hint="Name the types whose rows are to be deleted: types=['Person', …].",
        )


def _affected(view: View, delta: Delta) -> dict[str, Affected]:
    """As for any delta, plus the rows that an overwrite deletes."""
    found = affected_rows(delta)
    for change in delta.values():
        base = view.snapshot.table(change.table.id)
        if change.replaces and base is not None:
            counts = found.get(change.table.name, Affected(is_edge=change.table.kind == "edge"))
            gone = base.rows - counts.updated
            if gone:
                found[change.table.name] = replace(counts, deleted=gone)
    return found
