"""Sorted rows in parts: the first page of a long list, and long lists as a stream.

If the order of the rows is first of all an order of the nodes that a plan starts from, rows of
earlier starts precede rows of later ones. The starts are sorted and taken a few at a time: a page
stops when it is full, a stream returns each part as soon as it is matched and sorted.

The parts, one after the other, are equal to the rows after sorting everything. Other orders are not
handled here: they need all rows before the first one is known.
"""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.engines.embedded.frame import Frame
from omnigraph.engines.embedded.run import Run
from omnigraph.engines.embedded.sortorder import first_rows
from omnigraph.plan.operators import (
    Exists,
    Expand,
    Filter,
    Operator,
    Optional,
    Reduce,
    Scan,
    Sort,
    TopK,
)
from omnigraph.plan.rules.order_joins import LONG_RESULT
from omnigraph.plan.trees import names_in, operators

_FIRST_STARTS = 256
_GROWTH = 4
# A part of a stream ends near this many rows, which bounds the memory of the whole.
_ROWS_AT_ONCE = 250_000


def start_of(operator: TopK) -> Scan | None:
    """The scan whose order decides the page, if there is one."""
    start = _chain_start(operator.input)
    if start is None or operator.input.rows < LONG_RESULT:
        return None
    return start if _is_led_by(operator, start) else None


def start_of_stream(root: Operator) -> Operator | None:
    """The operator whose rows can be taken in parts while the rest of a sorted plan runs on each.

    None if the plan is short, if its order needs all rows, or if nothing follows the start.
    """
    if not isinstance(root, Sort) or root.input.rows < LONG_RESULT:
        return None
    scan = _chain_start(root.input)
    if scan is None or not _is_led_by(root, scan):
        return None
    above = list(_chain(root.input))
    while isinstance(above[-1], Scan | Filter | Reduce):
        start = above.pop()
        if not above:
            return None
    # A scan in a correlated plan reads all of its table, and would do so for every part.
    inner = (o.plan for o in above if isinstance(o, Exists | Optional))
    if any(isinstance(o, Scan) for plan in inner for o in operators(plan)):
        return None
    return start


def _is_led_by(operator: Sort | TopK, start: Scan) -> bool:
    """Whether an order compares the starts before it compares anything else."""
    names = {name for key in operator.keys for name in names_in(key.expr)}
    var = start.node.var
    return bool(operator.ties) and operator.ties[0] == var and names <= {var}


def _chain(operator: Operator) -> Iterator[Operator]:
    """Operators that process one row at a time, from the top down to their first other input."""
    while isinstance(operator, Expand | Filter | Reduce | Exists | Optional):
        yield operator
        operator = operator.input
    yield operator


def _chain_start(operator: Operator) -> Scan | None:
    """The scan at the bottom of operators that process one row at a time."""
    *_, last = _chain(operator)
    return last if isinstance(last, Scan) else None


def order_of_starts(operator: Sort | TopK, start: Operator) -> Sort:
    """The order of the rows, as an order of the starts alone."""
    return Sort(start, operator.keys, operator.ties[:1])


def slices(starts: Frame, order: Sort, run: Run) -> Iterator[Frame]:
    """The starts in order: few at first, found without sorting the rest, then more and more."""
    first, count = 0, _FIRST_STARTS
    while first < max(1, starts.rows):
        last = first + count
        if last * _GROWTH >= starts.rows:
            last = max(1, starts.rows)
        yield first_rows(order, starts, last, run).cut(first, last - first)
        first, count = last, count * _GROWTH


class Slicing:
    """Sorted starts in parts that yield about `_ROWS_AT_ONCE` rows each; the first are small."""

    def __init__(self, starts: Frame) -> None:
        self._starts = starts
        self._first = 0
        self._count = _FIRST_STARTS

    def __iter__(self) -> Iterator[Frame]:
        while self._first < max(1, self._starts.rows):
            part = self._starts.cut(self._first, self._count)
            self._first += self._count
            yield part

    def matched(self, rows: int) -> None:
        """Choose the size of the next part by how many rows the last one yielded."""
        fitting = _ROWS_AT_ONCE * self._count // max(1, rows)
        self._count = max(1, min(fitting, self._count * _GROWTH))
