"""The first page of a long list, without making the list.

Where the order of the results is, first of all, an order of the nodes that a plan starts from, rows
of earlier starts come before rows of later ones. So the starts are put in order and taken a few at
a time, and once a page is full no further start is looked at.

Guarantees: the same first rows as after sorting everything.
Deliberately absent: orders that look at anything but the start before they look at the start.
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
from omnigraph.plan.trees import names_in

# Below this many rows, sorting all of them costs less than taking them step by step.
_LONG = 20_000.0
_FIRST_STARTS = 256
_GROWTH = 4


def start_of(operator: TopK) -> Scan | None:
    """The scan whose order decides the page, if there is one."""
    start = _chain_start(operator.input)
    if start is None or operator.input.rows < _LONG or not operator.ties:
        return None
    names = {name for key in operator.keys for name in names_in(key.expr)}
    var = start.node.var
    return start if operator.ties[0] == var and names <= {var} else None


def _chain_start(operator: Operator) -> Scan | None:
    """The scan at the bottom of steps that look at one row at a time."""
    if isinstance(operator, Scan):
        return operator
    if isinstance(operator, Expand | Filter | Reduce | Exists | Optional):
        return _chain_start(operator.input)
    return None


def order_of_starts(operator: TopK, start: Scan) -> Sort:
    """The order of the page, as an order of the starts alone."""
    return Sort(start, operator.keys, (start.node.var,))


def slices(starts: Frame, order: Sort, run: Run) -> Iterator[Frame]:
    """The starts in order: few at first, found without sorting the rest, then more and more."""
    first, count = 0, _FIRST_STARTS
    while first < max(1, starts.rows):
        last = first + count
        if last * _GROWTH >= starts.rows:
            last = max(1, starts.rows)
        yield first_rows(order, starts, last, run).cut(first, last - first)
        first, count = last, count * _GROWTH
