"""Edges between transactions: which must precede which, and why.

    ww        the second appended right after the first
    wr        the second read a list that ends with the first's append
    rw        the first read a list that the second's append extends
    session   the second follows the first in the same session
    time      the first ended before the second began

Real-time edges would be quadratic in number. They lead through nodes of time instead: each end of a
transaction has a node, these nodes form a chain, and a transaction follows the last node before it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from tests.isolation.history import Outcome, Transaction, by_session
from tests.isolation.versions import Orders, writers_of

WW, WR, RW, SESSION, TIME = "ww", "wr", "rw", "session", "time"
Edge = tuple[str, str, str]
Edges = dict[str, dict[str, set[str]]]
CLOCK = "\0time "
"""Prefix of the nodes that stand for instants."""


def find_edges(history: Sequence[Transaction], orders: Orders) -> Edges:
    edges: Edges = defaultdict(lambda: defaultdict(set))
    happened = [each for each in history if _happened(each, orders)]
    every = (*_data_edges(happened, orders), *_session_edges(happened), *_time_edges(happened))
    for before, after, label in every:
        if before != after:
            edges[before][after].add(label)
    return edges


def _happened(txn: Transaction, orders: Orders) -> bool:
    """A transaction with an unknown outcome counts if one of its appends was read."""
    if txn.outcome is Outcome.UNKNOWN:
        return any(a.value in orders.get(a.key, ()) for a in txn.appends)
    return txn.outcome is Outcome.OK


def _data_edges(history: Sequence[Transaction], orders: Orders) -> Iterator[Edge]:
    writers = {place: txn.name for place, txn in writers_of(history).items()}
    for key, order in orders.items():
        for one, two in pairwise(order):
            if (key, one) in writers and (key, two) in writers:
                yield writers[key, one], writers[key, two], WW
    for txn in history:
        for key, values in txn.external_reads.items():
            if values and (key, values[-1]) in writers:
                yield writers[key, values[-1]], txn.name, WR
            following = list(orders.get(key, ()))[len(values) : len(values) + 1]
            if following and (key, following[0]) in writers:
                yield txn.name, writers[key, following[0]], RW


def _session_edges(history: Sequence[Transaction]) -> Iterator[Edge]:
    for members in by_session(history).values():
        for one, two in pairwise(members):
            yield one.name, two.name, SESSION


def _time_edges(history: Sequence[Transaction]) -> Iterator[Edge]:
    # An unknown outcome may take effect long after the client gave up.
    ended = sorted(
        (each.end, each.name)
        for each in history
        if each.end is not None and each.outcome is Outcome.OK
    )
    clocks = [f"{CLOCK}{place}" for place in range(len(ended))]
    for (_, name), clock in zip(ended, clocks, strict=True):
        yield name, clock, TIME
    for one, two in pairwise(clocks):
        yield one, two, TIME
    ends = [end for end, _ in ended]
    for each in history:
        place = bisect_left(ends, each.begin) - 1
        if place >= 0:
            yield clocks[place], each.name, TIME
