"""All anomalies of a history, and which of them an isolation level allows."""

from __future__ import annotations

from collections.abc import Sequence

from tests.isolation.cycles import G2, find_cycles
from tests.isolation.dependencies import find_edges
from tests.isolation.history import Anomaly, Transaction, check_form
from tests.isolation.sessions import find_session_anomalies
from tests.isolation.versions import find_direct, infer_orders


def find_anomalies(history: Sequence[Transaction]) -> list[Anomaly]:
    """Everything that strict serializability forbids."""
    check_form(history)
    orders = infer_orders(history)
    return [
        *find_direct(history, orders),
        *find_session_anomalies(history, orders),
        *find_cycles(find_edges(history, orders)),
    ]


def find_snapshot_anomalies(history: Sequence[Transaction]) -> list[Anomaly]:
    """What snapshot isolation forbids: everything but write skew between transactions that
    overlap. Session and real-time variants of G2 stay forbidden."""
    return [anomaly for anomaly in find_anomalies(history) if anomaly.kind != G2]
