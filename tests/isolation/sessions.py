"""Session guarantees: what a session may expect of its own past.

read your writes       a read shows every append that its session made before
monotonic reads        a read shows at least what its session has read before
monotonic writes       appends of a session are applied in its order
writes follow reads    an append comes after everything that its session has read before
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.isolation.history import Anomaly, Outcome, Transaction, by_session
from tests.isolation.versions import Orders


def find_session_anomalies(history: Sequence[Transaction], orders: Orders) -> Iterator[Anomaly]:
    places = {
        key: {value: place for place, value in enumerate(order, 1)} for key, order in orders.items()
    }
    done = [each for each in history if each.outcome is Outcome.OK]
    for members in by_session(done).values():
        yield from _one_session(members, places)


def _one_session(
    members: Sequence[Transaction], places: dict[str, dict[int, int]]
) -> Iterator[Anomaly]:
    # Per key: how much of its order this session has read and written, and in which transaction.
    read: dict[str, tuple[int, str]] = {}
    written: dict[str, tuple[int, str]] = {}
    for txn in members:
        for key, values in txn.external_reads.items():
            for kind, known in (("read your writes", written), ("monotonic reads", read)):
                place, before = known.get(key, (0, ""))
                if len(values) < place:
                    yield Anomaly(kind, (before, txn.name), key)
        for append in txn.appends:
            order = places.get(append.key, {})
            if append.value not in order:
                continue
            place = order[append.value]
            for kind, known in (("monotonic writes", written), ("writes follow reads", read)):
                earlier, before = known.get(append.key, (0, ""))
                if place <= earlier and before != txn.name:
                    yield Anomaly(kind, (before, txn.name), append.key)
            written[append.key] = max(written.get(append.key, (0, "")), (place, txn.name))
        for key, values in txn.external_reads.items():
            read[key] = max(read.get(key, (0, "")), (len(values), txn.name))
