"""Expressions over frames: what `engines.expressions` asks for, answered from numbers.

    evaluate(expr, frame, run)   an array with one value per row, or a scalar for all of them
    holds(predicates, frame, run)   marks of the rows for which all predicates are true

Properties are fetched by number when an expression asks for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from omnigraph.engines.embedded import nodeobjects
from omnigraph.engines.embedded.frame import Frame
from omnigraph.engines.embedded.rownumbers import Array
from omnigraph.engines.embedded.run import Run
from omnigraph.engines.expressions import evaluate as shared
from omnigraph.engines.expressions.evaluate import constant, is_constant
from omnigraph.ir import expr as ir
from omnigraph.ir.expr import Expr

__all__ = ["column", "constant", "evaluate", "holds", "is_constant"]

Values = Any  # pa.Array or pa.Scalar


def evaluate(expr: Expr, frame: Frame, run: Run) -> Values:
    """The values of an expression, one per row or one for all."""
    return shared.evaluate(expr, _FrameRows(frame, run))


def column(expr: Expr, frame: Frame, run: Run) -> pa.Array:
    """The values of an expression, one per row, in its own Arrow type."""
    return shared.column(expr, _FrameRows(frame, run))


def holds(predicates: Sequence[Expr], frame: Frame, run: Run) -> Array:
    """Marks of the rows for which every predicate is true; null is not true."""
    return shared.holds(predicates, _FrameRows(frame, run))


class _FrameRows:
    """A frame as rows that expressions can ask."""

    def __init__(self, frame: Frame, run: Run) -> None:
        self.given = run
        self.count = frame.rows
        self._frame = frame

    def property_of(self, expr: ir.Property) -> pa.Array:
        entities = self._frame.entities[expr.var]
        return nodeobjects.property_values(entities, expr.name, expr.type.to_arrow())

    def object_of(self, expr: ir.Entity) -> pa.Array:
        return nodeobjects.object_values(self._frame.entities[expr.var], expr, self.given)

    def absent(self, var: str) -> pa.Array:
        return pa.array(self._frame.entities[var].numbers < 0)

    def value_of(self, name: str) -> Values:
        return self._frame.values[name]

    def score_of(self, expr: ir.Score) -> pa.Array | None:
        return self._frame.score(expr)

    def matches(self, expr: ir.TextMatch) -> pa.Array:
        from omnigraph.engines.embedded import matchsearch

        return matchsearch.text_matches(expr, self._frame.entities[expr.property.var], self.given)
