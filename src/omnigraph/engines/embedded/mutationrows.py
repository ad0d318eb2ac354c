"""The rows of mutation statements: predicates and values over a view.

    matched = matching(view, table, statement.where, moment)
    values = evaluated(assignment.value, matched, table, moment)

Predicates mean here what they mean in a read query: the same expressions are evaluated by the same
code. Storage decides what it can (through an index if there is one), the rest is tested on the
rows that come back and on those that the write itself has laid over the snapshot.

Guarantees: one instant and one set of parameters for a whole mutation. An integer beyond its type
is null in a predicate, as in a read, and an error in a value that is to be written.
Deliberately absent: what is done with the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.caches import AnyCache, Cache
from omnigraph.engines.base import DEFAULT_OPTIONS
from omnigraph.engines.embedded.arrays import Arrays
from omnigraph.engines.embedded.bounds import Bounds
from omnigraph.engines.embedded.catalog_view import Space, TypeView
from omnigraph.engines.embedded.frame import Entities, Frame
from omnigraph.engines.embedded.frameexpr import column, constant, holds
from omnigraph.engines.embedded.pushdown import Pushed, push
from omnigraph.engines.embedded.rownumbers import NOBODY, Array, Numbering
from omnigraph.engines.embedded.run import Run
from omnigraph.engines.embedded.tablecache import Resident
from omnigraph.engines.embedded.view import View
from omnigraph.ir.expr import Expr, Property
from omnigraph.ir.fold import parts
from omnigraph.ir.query import TARGET
from omnigraph.model.catalog import ID_COLUMN
from omnigraph.model.snapshot import Snapshot
from omnigraph.rows.checks import TableType, system_columns
from omnigraph.rows.columns import combined
from omnigraph.storage.table import Table

_NOTHING_HELD: AnyCache = Cache(0)


class Moment:
    """The parameters and the instant of one mutation."""

    def __init__(self, snapshot: Snapshot, params: Mapping[str, Any]) -> None:
        self._run = Run(snapshot, params, _NOTHING_HELD, DEFAULT_OPTIONS)
        self._strict = copy(self._run)
        self._strict.strict = True

    @property
    def run(self) -> Run:
        """For predicates."""
        return self._run

    @property
    def strict(self) -> Run:
        """For values that are to be written."""
        return self._strict

    def value(self, expr: Expr) -> Any:
        """The value of an expression that speaks of no row."""
        return constant(expr, self._strict)


def matching(view: View, table: TableType, where: Expr, moment: Moment) -> pa.Table:
    """The rows of a type for which a predicate is true, in all their columns."""
    pushed = _pushed(view, table, where, moment)
    if pushed is not None and pushed.rest:
        # Storage cannot tell the rows: find them by the few columns it takes, then fetch them.
        return view.rows(table, matching_ids(view, table, where, moment))
    return _kept(view.select(table, pushed and pushed.filter), table, where, moment)


def matching_ids(view: View, table: TableType, where: Expr, moment: Moment) -> list[str]:
    """The ids of those rows."""
    names = {part.name for part in parts(where) if isinstance(part, Property)}
    properties = [table.by_name[name].column for name in sorted(names) if name in table.by_name]
    columns = [*system_columns(table), *properties]
    pushed = _pushed(view, table, where, moment)
    found = view.select(table, pushed and pushed.filter, columns=columns)
    ids: list[str] = _kept(found, table, where, moment).column(ID_COLUMN).to_pylist()
    return ids


def _kept(found: pa.Table, table: TableType, where: Expr, moment: Moment) -> pa.Table:
    return found.filter(pa.array(holds([where], _frame(table, found, moment), moment.run)))


def evaluated(expr: Expr, rows: pa.Table, table: TableType, moment: Moment) -> pa.Array:
    """The values of an expression over rows of a type."""
    return column(expr, _frame(table, rows, moment), moment.strict)


def _pushed(view: View, table: TableType, where: Expr, moment: Moment) -> Pushed | None:
    source = view.committed(table)
    if source is None:
        return None
    return push([where], TypeView(table, _Files(source), moment.run.bounds), moment.run)


def _frame(table: TableType, rows: pa.Table, moment: Moment) -> Frame:
    view = TypeView(table, _Rows(rows), moment.run.bounds)
    numbers = np.arange(rows.num_rows, dtype=np.int32)
    return Frame(rows.num_rows, {TARGET: Entities(Space.over([view]), numbers, whole=True)})


class _Files(Resident):
    """A table version of which nothing is held: enough to ask what storage can decide."""

    def __init__(self, table: Table) -> None:
        super().__init__(("files", table.version), table, _NOTHING_HELD)


class _Rows(Resident):
    """Rows in memory, in the place of a table version."""

    def __init__(self, rows: pa.Table) -> None:
        super().__init__(("rows", id(rows)), None, _NOTHING_HELD)
        self._rows = rows

    @property
    def rows(self) -> int:
        return int(self._rows.num_rows)

    def arrays(self, bounds: Bounds) -> Arrays:
        return _RowArrays(self, self._rows, bounds)

    def has(self, column: str) -> bool:
        return column in self._rows.column_names


class _RowArrays(Arrays):
    """Columns of rows in memory, in the order of the rows."""

    def __init__(self, resident: Resident, rows: pa.Table, bounds: Bounds) -> None:
        super().__init__(resident, Numbering(rows.num_rows), _NOTHING_HELD, bounds)
        self._rows = rows

    def fits(self, column: str) -> bool:
        return True

    def held(self, column: str) -> pa.Array | None:
        return combined(self._rows.column(column))

    def column(self, column: str) -> pa.Array:
        return combined(self._rows.column(column))

    def values(self, column: str, numbers: Array) -> pa.Array:
        indices = pa.array(numbers, mask=numbers < 0)
        return combined(self._rows.column(column)).take(indices)

    def find(self, ids: Sequence[str]) -> Array:
        places = {id_: at for at, id_ in enumerate(self._rows.column(ID_COLUMN).to_pylist())}
        return np.array([places.get(id_, NOBODY) for id_ in ids], np.int32)
