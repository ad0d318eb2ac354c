"""Carrying changes of one graph out on another: rows put in place and ids taken away, in one
commit.

    replay(context, Changes(rows=b'{"type": "Person", …}', removed={"Person": ["Ada"]}), "main")

Guarantees: all of it or nothing; every check that a write has; an id that is not there any more is
no obstacle, so that a change may come twice; with an idempotency key it is carried out once.
Deliberately absent: where changes come from, and their order. Of each entity the last state counts,
and the caller knows it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from omnigraph.engines.embedded.integrity import run_checks
from omnigraph.engines.embedded.mutation import affected_rows
from omnigraph.engines.embedded.stagedelta import replaced_rows
from omnigraph.engines.embedded.view import View
from omnigraph.intake.inputforms import Columns, Lines, Part
from omnigraph.intake.typedrows import find_type, shape
from omnigraph.model.catalog import Catalog
from omnigraph.model.commit import CommitKind
from omnigraph.model.write import WriteResult
from omnigraph.operations.context import Context
from omnigraph.operations.requests import Replay
from omnigraph.rows.deltas import TableDelta, no_rows
from omnigraph.rows.findings import Findings
from omnigraph.rows.setchecks import last_of_each, set_checks
from omnigraph.writes.groupcommit import write_alone
from omnigraph.writes.request import Conditions, Evaluated

MOST_BYTES = 2 << 30


@dataclass(frozen=True)
class Changes:
    """Rows as they shall be, and ids that shall be gone, by the names of their types."""

    rows: tuple[Part, ...] = ()
    removed: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        return not self.rows and not any(self.removed.values())


def replay(context: Context, request: Replay) -> WriteResult:
    """Carry changes out on a branch."""
    write = _ReplayRequest(request.changes, request.conditions or Conditions(context.actor))
    return write_alone(context.root, request.branch, write)


@dataclass
class _ReplayRequest:
    changes: Changes
    conditions: Conditions
    _shaped: tuple[str, dict[int, TableDelta]] | None = None

    @property
    def kind(self) -> CommitKind:
        return CommitKind.LOAD

    @property
    def is_strict(self) -> bool:
        return False

    @property
    def joint(self) -> None:
        return None

    @property
    def fingerprint(self) -> str | None:
        digest = hashlib.blake2b(digest_size=16)
        for part in self.changes.rows:
            for piece in _pieces(part):
                digest.update(piece)
        digest.update(repr(sorted((k, list(v)) for k, v in self.changes.removed.items())).encode())
        return digest.hexdigest()

    def evaluate(self, view: View) -> Evaluated:
        catalog = view.snapshot.catalog
        delta = {
            table_id: replace(change, removed=_present(view, change))
            for table_id, change in self._delta(catalog).items()
        }
        run_checks(view, delta, set_checks(catalog, delta)).raise_if_any()
        known = {
            table_id: replace(change, replacing=replaced_rows(view, change))
            for table_id, change in delta.items()
        }
        return Evaluated(known, affected_rows(known))

    def _delta(self, catalog: Catalog) -> dict[int, TableDelta]:
        if self._shaped is None or self._shaped[0] != catalog.hash:
            self._shaped = (catalog.hash, self._shape(catalog))
        return self._shaped[1]

    def _shape(self, catalog: Catalog) -> dict[int, TableDelta]:
        findings = Findings()
        found = shape(catalog, self.changes.rows, findings, MOST_BYTES)
        findings.raise_if_any()
        delta = {}
        for table_id, shaped in found.items():
            rows, origin = last_of_each(shaped.rows, shaped.origin)
            delta[table_id] = TableDelta(shaped.table, rows, origin=origin)
        for name, ids in self.changes.removed.items():
            table = find_type(catalog, name)
            change = delta.get(table.id) or TableDelta(table, no_rows(table))
            delta[table.id] = replace(change, removed=pa.array(ids, pa.string()).unique())
        return delta


def _pieces(part: Part) -> Iterator[bytes]:
    if isinstance(part, Lines):
        yield part.data
    elif isinstance(part, Columns):
        yield from (batch.serialize().to_pybytes() for batch in part.rows.to_batches())
    else:
        yield repr(part.items).encode()


def _present(view: View, change: TableDelta) -> pa.Array:
    """Those ids to remove that are there."""
    if not len(change.removed):
        return change.removed
    return change.removed.filter(pa.array(view.existing(change.table, change.removed)))
