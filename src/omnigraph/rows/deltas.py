"""Deltas: the changes of a write to its tables, as rows to put and ids to delete.

Guarantees: immutable; within one delta every id is put at most once and is not both put and
removed; rows hold all physical columns of their type.
Deliberately absent: whether the result is allowed (`setchecks`), and files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.model.catalog import ID_COLUMN
from omnigraph.rows.checks import TableType, logical_schema
from omnigraph.rows.columns import combined
from omnigraph.rows.findings import Origin


@dataclass(frozen=True)
class TableDelta:
    """The change of one table.

    `rows` are new images of rows, whether or not an id exists already; `replacing` says how many of
    them do, once that is known. `removed` are ids of committed rows that go. With `replaces`, all
    committed rows that are not in `rows` go too. `strict`: an id in `rows` that exists is a
    conflict. `fresh`: the ids were generated for these rows, so that no other row can have them.
    `cascaded`: the edges of removed nodes go in the same write. `origin` says which record of the
    input a row was.
    """

    table: TableType
    rows: pa.Table
    removed: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))
    replaces: bool = False
    strict: bool = False
    fresh: bool = False
    cascaded: bool = False
    replacing: int | None = None
    origin: Origin = field(default_factory=Origin)

    @property
    def ids(self) -> pa.Array:
        return combined(self.rows.column(ID_COLUMN))

    @property
    def is_empty(self) -> bool:
        return not (self.replaces or self.rows.num_rows or len(self.removed))

    @property
    def nbytes(self) -> int:
        return int(self.rows.nbytes) + int(self.removed.nbytes)


Delta: TypeAlias = Mapping[int, TableDelta]


def no_rows(table: TableType) -> pa.Table:
    return logical_schema(table).empty_table()


def removal(table: TableType, ids: Iterable[str], *, cascaded: bool = False) -> TableDelta:
    return TableDelta(table, no_rows(table), pa.array(list(ids), pa.string()), cascaded=cascaded)


def merged(first: TableDelta | None, then: TableDelta) -> TableDelta:
    """One delta after another on the same table, as one."""
    if first is None or then.replaces:
        return then
    gone = pa.concat_arrays([then.ids, then.removed])
    kept = np.flatnonzero(
        pc.invert(pc.is_in(first.ids, value_set=gone)).to_numpy(zero_copy_only=False)
    )
    both = pa.concat_arrays([first.removed, then.removed])
    return TableDelta(
        first.table,
        pa.concat_tables([first.rows.take(pa.array(kept)), then.rows]),
        both.filter(pc.invert(pc.is_in(both, value_set=then.ids))).unique(),
        replaces=first.replaces,
        strict=first.strict and then.strict,
        fresh=first.fresh and then.fresh,
        cascaded=first.cascaded or then.cascaded,
        origin=first.origin.take(kept).followed_by(then.origin, then.rows.num_rows),
    )


def together(one: TableDelta | None, other: TableDelta) -> TableDelta:
    """Two deltas of one table that touch different rows, as one."""
    if one is None:
        return other
    known = one.replacing is not None and other.replacing is not None
    return TableDelta(
        one.table,
        pa.concat_tables([one.rows, other.rows]),
        pa.concat_arrays([one.removed, other.removed]),
        fresh=one.fresh and other.fresh,
        cascaded=one.cascaded or other.cascaded,
        replacing=(one.replacing or 0) + (other.replacing or 0) if known else None,
    )
