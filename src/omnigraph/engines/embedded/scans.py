"""Finds the rows of one variable: by id, by predicates in memory, or by a storage scan.

Guarantees: every way finds the same rows, as ascending numbers of the variable's space.
Deliberately absent: properties of what is found; they are fetched when needed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from omnigraph.engines.embedded.catalog_view import Space, TypeView
from omnigraph.engines.embedded.frame import Entities, Frame
from omnigraph.engines.embedded.frameexpr import holds
from omnigraph.engines.embedded.pushdown import push
from omnigraph.engines.embedded.rownumbers import NOBODY, Array
from omnigraph.engines.embedded.run import Run
from omnigraph.engines.expressions.keyids import key_ids
from omnigraph.ir.expr import Expr, Property, TextMatch
from omnigraph.ir.fold import parts
from omnigraph.plan.operators import Access, NodeVar
from omnigraph.storage.table import ROW_ID

# Below this many rows, reading the columns beats thinking about it.
_SMALL_TABLE = 20_000


def scan(node: NodeVar, access: Access, run: Run) -> Entities:
    """The nodes of a variable that satisfy what is said of it alone."""
    space = run.space(node.types)
    found = [
        selected(view, node, access, run).astype(space.dtype, copy=False) + space.dtype.type(base)
        for view, base in zip(space.views, space.bases, strict=True)
    ]
    if len(found) == 1:
        return Entities(space, found[0])
    return Entities(space, np.concatenate(found) if found else np.empty(0, space.dtype))


def selected(view: TypeView, node: NodeVar, access: Access, run: Run) -> Array:
    """The same for one type, as numbers of its own."""
    if view.resident.rows == 0:
        return np.empty(0, np.int32)
    if node.key is not None:
        numbers = keyed(view, node.key, run)
        return tested(view, node.var, numbers, node.predicates, run)
    if not node.predicates:
        return view.numbering.everything()
    if _ask_storage(view, node.predicates, access):
        return asked(view, node.var, node.predicates, run)
    return np.flatnonzero(marked(view, node.var, node.predicates, run)).astype(view.numbering.dtype)


def keyed(view: TypeView, key: Expr, run: Run) -> Array:
    """The rows with an id, or with any of several, ascending."""
    ids = key_ids(key, run)
    if not ids:
        return np.empty(0, view.numbering.dtype)
    found = view.find(ids)
    found = found[found != NOBODY]
    return found if len(found) < 2 else np.unique(found)


def tested(view: TypeView, var: str, numbers: Array, predicates: Sequence[Expr], run: Run) -> Array:
    """Those of some rows for which the predicates hold."""
    if not predicates or not len(numbers):
        return numbers
    frame = Frame(len(numbers), {var: Entities(Space.over([view]), numbers)})
    kept: Array = numbers[holds(predicates, frame, run)]
    return kept


def marked(view: TypeView, var: str, predicates: Sequence[Expr], run: Run) -> Array:
    """By number: whether the predicates hold, tested over whole columns in memory."""
    size = view.numbering.size
    everything = np.arange(size, dtype=view.numbering.dtype)
    frame = Frame(size, {var: Entities(Space.over([view]), everything, whole=True)})
    run.bounds.scan(size)
    marks = holds(predicates, frame, run)
    if view.numbering.alive is not None:
        marks &= view.numbering.alive
    return marks


def asked(view: TypeView, var: str, predicates: Sequence[Expr], run: Run) -> Array:
    """The rows that storage finds, with what it could not decide tested after."""
    table = view.resident.table
    assert table is not None
    pushed = push(predicates, view, run)
    parts_found: list[Array] = []
    for batch in table.scan([], filter=pushed.filter, with_row_id=True):
        run.bounds.scan(batch.num_rows)
        parts_found.append(view.numbering.to_numbers(batch.column(ROW_ID).to_numpy()))
    if not parts_found:
        return np.empty(0, view.numbering.dtype)
    numbers = np.sort(np.concatenate(parts_found))
    return tested(view, var, numbers, pushed.rest, run)


def _ask_storage(view: TypeView, predicates: Sequence[Expr], access: Access) -> bool:
    """Whether storage is the better place to test predicates."""
    if any(isinstance(part, TextMatch) for p in predicates for part in parts(p)):
        return False
    columns = {name for p in predicates for name in _columns(p, view)}
    if all(view.arrays.held(column) is not None for column in columns):
        return False
    if access is Access.INDEX:
        return view.resident.rows > _SMALL_TABLE
    return not all(view.arrays.fits(column) for column in columns)


def _columns(predicate: Expr, view: TypeView) -> set[str]:
    names = {part.name for part in parts(predicate) if isinstance(part, Property)}
    physical = [view.physical(name) for name in names]
    return {p[0] for p in physical if p is not None and view.resident.has(p[0])}
