"""Which rows a mutation may change: those that its author can see."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from omnigraph.engines.embedded.view import View
from omnigraph.engines.expressions.tablerows import rows_that_hold
from omnigraph.errors import KeyConflictError
from omnigraph.ir.expr import And, Expr
from omnigraph.model.catalog import DST_COLUMN, ID_COLUMN, SRC_COLUMN, EdgeType, NodeType
from omnigraph.model.visibility import Visibility


class VisibleTargets:
    """Restricts the statements of a mutation to visible rows."""

    def __init__(self, visibility: Visibility) -> None:
        self._rows = visibility.rows

    def where(self, table: NodeType | EdgeType, where: Expr) -> Expr:
        """The condition of a statement, and that the row is visible."""
        own = self._rows.get(table.id, ())
        return And((where, *own)) if own else where

    def edges(self, view: View, table: EdgeType, ids: Sequence[str]) -> list[str]:
        """Those of some edges whose ends are visible."""
        left = list(ids)
        for column, name in ((SRC_COLUMN, table.src_type), (DST_COLUMN, table.dst_type)):
            node = view.snapshot.catalog.node(name)
            if node is None or node.id not in self._rows or not left:
                continue
            rows = view.rows(table, left)
            pairs = zip(
                rows.column(ID_COLUMN).to_pylist(), rows.column(column).to_pylist(), strict=True
            )
            ends = dict(pairs)
            seen = self._visible(node, view.rows(node, sorted(set(ends.values()))))
            left = [id_ for id_ in left if ends.get(id_) in seen]
        return left

    def refuse_hidden(self, view: View, table: NodeType, id_: str) -> None:
        """Raise KeyConflictError if a hidden row has this id."""
        if table.id not in self._rows:
            return
        rows = view.rows(table, [id_])
        if rows.num_rows and id_ not in self._visible(table, rows):
            raise KeyConflictError(
                f"{table.name} has a node {id_!r} already.", type_name=table.name, ids=[id_]
            )

    def _visible(self, table: NodeType, rows: pa.Table) -> set[str]:
        found: set[str] = set()
        for batch in rows.combine_chunks().to_batches():
            marks = rows_that_hold(self._rows[table.id], batch, table)
            found.update(batch.column(ID_COLUMN).filter(pa.array(marks)).to_pylist())
        return found
