"""Predicates on the rows of one table, over batches in physical columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from omnigraph.engines.expressions.evaluate import holds
from omnigraph.engines.expressions.functions import as_type
from omnigraph.errors import InvariantViolationError
from omnigraph.ir import expr as ir
from omnigraph.ir.fold import parts
from omnigraph.model.catalog import DST_COLUMN, ID_COLUMN, SRC_COLUMN, EdgeType, NodeType

_PLAIN = (ID_COLUMN, SRC_COLUMN, DST_COLUMN)


@dataclass(frozen=True)
class _Constants:
    now: datetime
    params: Mapping[str, Any] = field(default_factory=dict)
    strict: bool = False


class _TableRows:
    """A batch of one table as rows that expressions can ask."""

    def __init__(self, batch: pa.RecordBatch, table: NodeType | EdgeType, now: datetime) -> None:
        self.given = _Constants(now)
        self.count = batch.num_rows
        self._batch = batch
        self._table = table

    def property_of(self, expr: ir.Property) -> pa.Array:
        column, wanted = _column(expr.name, self._table), expr.type.to_arrow()
        if column is None or column not in self._batch.schema.names:
            return pa.nulls(self.count, wanted)
        return as_type(self._batch.column(column), wanted)

    def object_of(self, expr: ir.Entity) -> pa.Array:
        raise _unexpected(expr)

    def absent(self, var: str) -> pa.Array:
        return pa.array(np.zeros(self.count, bool))

    def value_of(self, name: str) -> Any:
        raise _unexpected(name)

    def score_of(self, expr: ir.Score) -> pa.Array | None:
        raise _unexpected(expr)

    def matches(self, expr: ir.TextMatch) -> pa.Array:
        raise _unexpected(expr)


def predicate_columns(predicates: Iterable[ir.Expr], table: NodeType | EdgeType) -> tuple[str, ...]:
    """The columns that predicates on one table read."""
    used = (part for p in predicates for part in parts(p) if isinstance(part, ir.Property))
    columns = (_column(part.name, table) for part in used)
    return tuple(dict.fromkeys(column for column in columns if column is not None))


def rows_that_hold(
    predicates: Sequence[ir.Expr], batch: pa.RecordBatch, table: NodeType | EdgeType
) -> NDArray[np.bool_]:
    """Marks of the rows of a batch for which all predicates are true."""
    return holds(predicates, _TableRows(batch, table, datetime.now(UTC))).copy()


def _column(name: str, table: NodeType | EdgeType) -> str | None:
    if name in _PLAIN:
        return name
    found = table.get(name)
    return None if found is None else found.column


def _unexpected(part: object) -> InvariantViolationError:
    return InvariantViolationError(f"A predicate on rows of one table cannot contain {part!r}.")
