"""Rows inside a task: a batch that Spark hands over, as expressions ask for it.

Guarantees: values have the types of the graph again, not those that Spark had to give them.
Deliberately absent: PySpark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa

from omnigraph.engines.expressions.functions import as_type
from omnigraph.engines.expressions.shapes import TYPE_FIELD, object_fields, tables_of
from omnigraph.engines.spark.queries.columnnames import Bound, Layout
from omnigraph.engines.spark.sparktypes import from_spark
from omnigraph.errors import InvariantViolationError
from omnigraph.ir import expr as ir
from omnigraph.model.catalog import ID_COLUMN, Catalog


@dataclass(frozen=True)
class Constants:
    """What is the same for all rows of a query."""

    params: Mapping[str, Any]
    now: datetime
    strict: bool = False


class BatchRows:
    """A batch as rows that expressions can ask."""

    def __init__(
        self,
        batch: pa.RecordBatch,
        layout: Layout,
        given: Constants,
        catalog: Catalog | None = None,
    ) -> None:
        self.given = given
        self.count = batch.num_rows
        self._batch = batch
        self._layout = layout
        self._catalog = catalog

    def property_of(self, expr: ir.Property) -> pa.Array:
        bound = self._layout.entities[expr.var]
        return self._property(bound, expr.name, None, expr.type.to_arrow())

    def _property(self, bound: Bound, name: str, only: str | None, wanted: Any) -> pa.Array:
        if name == ID_COLUMN:
            return self._batch.column(bound.id_column)
        held = bound.properties.get((name, only))
        if held is None:
            return pa.nulls(self.count, wanted)
        return as_type(from_spark(self._batch.column(held.column), held.type), wanted)

    def object_of(self, expr: ir.Entity) -> pa.Array:
        assert self._catalog is not None
        bound = self._layout.entities[expr.var]
        fields = object_fields(tables_of(expr, self._catalog))
        arrays = [
            self._types(bound)
            if item.source == TYPE_FIELD
            else self._property(bound, item.source, item.only, item.field.type)
            for item in fields
        ]
        absent = self.absent(expr.var)
        mask = absent if absent.true_count else None
        return pa.StructArray.from_arrays(arrays, fields=[f.field for f in fields], mask=mask)

    def _types(self, bound: Bound) -> pa.Array:
        if bound.type_column is None:
            return pa.repeat(pa.scalar(bound.types[0]), self.count)
        return self._batch.column(bound.type_column)

    def absent(self, var: str) -> pa.Array:
        return self._batch.column(self._layout.entities[var].id_column).is_null()

    def value_of(self, name: str) -> pa.Array:
        held = self._layout.values[name]
        return from_spark(self._batch.column(held.column), held.type)

    def score_of(self, expr: ir.Score) -> pa.Array | None:
        column = self._layout.score(expr)
        return None if column is None else self._batch.column(column)

    def matches(self, expr: ir.TextMatch) -> pa.Array:
        column = self._layout.match(expr)
        if column is None:
            raise InvariantViolationError("A text condition was evaluated without a search result.")
        return self._batch.column(column)
