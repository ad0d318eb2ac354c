"""A checker of recorded histories: what no snapshot-isolated, fenced store may show.

A history is a list of transactions, each with what it read (which transaction's version of a key)
and what it wrote, and the order in which the versions of each key were published. From that follow
dependencies between transactions:

    ww    its version of a key follows the other's
    wr    it read the other's version
    rw    it read a version that the other replaced
    rt    it began after the other had ended; or came later in the same session

A history that some order of one-after-the-other could have produced has no cycle. What a cycle is
made of says what went wrong. Besides cycles, four anomalies are looked for by their own definition,
because their names are what people ask about.

Deliberately absent: any knowledge of graphs. It is tested on planted histories of its own.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

INITIAL = ""
"""Who wrote the versions that were there from the beginning."""


@dataclass(frozen=True)
class Txn:
    """A transaction that was acknowledged, with the times between which it ran."""

    name: str
    session: str
    begin: float
    end: float
    reads: Mapping[str, str] = field(default_factory=dict)
    writes: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Anomaly:
    kind: str
    transactions: tuple[str, ...]
    about: str


Orders = Mapping[str, Sequence[str]]
Graph = dict[str, dict[str, set[str]]]


def find_anomalies(history: Sequence[Txn], orders: Orders) -> list[Anomaly]:
    """Everything that is wrong with a history. `orders`: per key, its writers, oldest first."""
    places = {
        key: {name: n for n, name in enumerate((INITIAL, *order))} for key, order in orders.items()
    }
    return [
        *_phantom_reads(history, places),
        *_lost_writes(history, places),
        *_lost_updates(history),
        *_fractured_reads(history, places),
        *_backward_reads(history, places),
        *_cycles(history, orders),
    ]


Places = Mapping[str, Mapping[str, int]]


def _phantom_reads(history: Sequence[Txn], places: Places) -> Iterator[Anomaly]:
    for txn in history:
        for key, writer in txn.reads.items():
            if writer not in places.get(key, {INITIAL: 0}):
                yield Anomaly("read of nothing", (txn.name, writer), key)


def _lost_writes(history: Sequence[Txn], places: Places) -> Iterator[Anomaly]:
    """Acknowledged, and in no order of versions."""
    for txn in history:
        for key in sorted(txn.writes):
            if txn.name not in places.get(key, {}):
                yield Anomaly("lost write", (txn.name,), key)


def _lost_updates(history: Sequence[Txn]) -> Iterator[Anomaly]:
    """Two that replaced the same version of a key, each having read it."""
    first: dict[tuple[str, str], str] = {}
    for txn in history:
        for key in sorted(txn.writes & txn.reads.keys()):
            seen = (key, txn.reads[key])
            if seen in first:
                yield Anomaly("lost update", (first[seen], txn.name), key)
            first.setdefault(seen, txn.name)


def _fractured_reads(history: Sequence[Txn], places: Places) -> Iterator[Anomaly]:
    """One that saw a part of another's writes, and an older version of the rest."""
    by_name = {txn.name: txn for txn in history}
    for txn in history:
        for key, writer in txn.reads.items():
            other = by_name.get(writer)
            if other is None or other is txn:
                continue
            for second in sorted(other.writes & txn.reads.keys()):
                order = places[second]
                if order.get(txn.reads[second], 0) < order.get(other.name, 0):
                    yield Anomaly("fractured read", (txn.name, other.name), f"{key}, {second}")


def _backward_reads(history: Sequence[Txn], places: Places) -> Iterator[Anomaly]:
    """A session that sees an older version of a key than it has seen or written before."""
    newest: dict[tuple[str, str], tuple[int, str]] = {}
    for txn in sorted(history, key=lambda txn: txn.begin):
        for key, writer in txn.reads.items():
            place = places.get(key, {}).get(writer, 0)
            before = newest.get((txn.session, key), (0, ""))
            if place < before[0]:
                yield Anomaly("non-monotonic read", (before[1], txn.name), key)
        seen = {**txn.reads, **dict.fromkeys(txn.writes, txn.name)}
        for key, writer in seen.items():
            place = places.get(key, {}).get(writer, 0)
            newest[txn.session, key] = max(
                newest.get((txn.session, key), (0, "")), (place, txn.name)
            )


# Cycles.


def dependencies(history: Sequence[Txn], orders: Orders) -> Graph:
    """Who comes before whom, and why."""
    known = {txn.name for txn in history}
    graph: Graph = defaultdict(lambda: defaultdict(set))
    for first, second, why in (*_by_versions(history, orders), *_by_time(history)):
        if first != second and first in known and second in known:
            graph[first][second].add(why)
    return graph


def _by_versions(history: Sequence[Txn], orders: Orders) -> Iterator[tuple[str, str, str]]:
    for key, order in orders.items():
        for one, two in pairwise(order):
            yield one, two, "ww"
        after = dict(zip((INITIAL, *order), order, strict=False))
        for txn in history:
            if key in txn.reads:
                yield txn.reads[key], txn.name, "wr"
                yield txn.name, after.get(txn.reads[key], INITIAL), "rw"


def _by_time(history: Sequence[Txn]) -> Iterator[tuple[str, str, str]]:
    for one in history:
        for two in history:
            if one.end < two.begin or (one.session == two.session and one.begin < two.begin):
                yield one.name, two.name, "rt"


def _cycles(history: Sequence[Txn], orders: Orders) -> Iterator[Anomaly]:
    """One shortest cycle for each transaction that lies on any, each cycle told once."""
    graph = dependencies(history, orders)
    told: set[frozenset[str]] = set()
    for txn in history:
        cycle = _shortest_cycle(graph, txn.name)
        if cycle and frozenset(cycle) not in told:
            told.add(frozenset(cycle))
            reasons = [graph[a][b] for a, b in zip(cycle, (*cycle[1:], cycle[0]), strict=True)]
            yield Anomaly(
                _kind(reasons), tuple(cycle), " ".join("/".join(sorted(r)) for r in reasons)
            )


def _kind(reasons: Sequence[set[str]]) -> str:
    """What a cycle is called, by the weakest edges that it needs."""
    needs_time = any(reason == {"rt"} for reason in reasons)
    against = sum(not reason & {"ww", "wr", "rt"} for reason in reasons)
    if needs_time:
        return "stale read" if against else "reordered"
    if against == 0:
        return "cyclic writes"
    return "read skew" if against == 1 else "write skew"


def _shortest_cycle(graph: Graph, start: str) -> list[str] | None:
    came_from: dict[str, str] = {}
    queue = deque([start])
    while queue:
        here = queue.popleft()
        for there in sorted(graph.get(here, ())):
            if there == start:
                path = [here]
                while path[-1] != start:
                    path.append(came_from[path[-1]])
                return path[::-1]
            if there not in came_from:
                came_from[there] = here
                queue.append(there)
    return None
