"""The isolation checker under planted histories: each anomaly is found under its name, and
histories that a serial order explains are accepted."""

from __future__ import annotations

import random

import pytest
from tests.isolation.checker import find_anomalies, find_snapshot_anomalies
from tests.isolation.history import Append, Outcome, Read, Transaction

FAILED, UNKNOWN = Outcome.FAILED, Outcome.UNKNOWN


def r(key: str, *values: int) -> Read:
    return Read(key, values)


def a(key: str, value: int) -> Append:
    return Append(key, value)


def t(name: str, *operations: Read | Append, at: float = 0.0, session: str = "",
      outcome: Outcome = Outcome.OK, lasts: float = 100.0) -> Transaction:  # fmt: skip
    """A transaction that overlaps every other one, unless `at` and `lasts` say otherwise."""
    end = None if outcome is UNKNOWN else at + lasts
    return Transaction(name, session or name, at, end, operations, outcome)


def t_alone(name: str, at: float, *operations: Read | Append, session: str = "") -> Transaction:
    return t(name, *operations, at=at, lasts=0.5, session=session)


PLANTED: dict[str, list[Transaction]] = {
    "duplicate append": [t("w", a("x", 1)), t("r", r("x", 1, 1))],
    "incompatible order": [
        t("w", a("x", 1)), t("v", a("x", 2)), t("r", r("x", 1, 2)), t("s", r("x", 2)),
    ],
    "garbage read": [t("r", r("x", 9))],
    "internal": [t("w", r("x"), a("x", 1), r("x"))],
    "G1a": [t("w", a("x", 1), outcome=FAILED), t("r", r("x", 1))],
    "G1b": [t("w", a("x", 1), a("x", 2)), t("r", r("x", 1)), t("s", r("x", 1, 2))],
    "dirty update": [
        t("w", a("x", 1), outcome=FAILED), t("v", a("x", 2)), t("r", r("x", 1, 2)),
    ],
    "lost append": [t_alone("w", 1, a("x", 1)), t_alone("r", 2, r("x"))],
    "lost update": [
        t("v", r("x"), a("x", 1)), t("w", r("x"), a("x", 2)), t("s", r("x", 1, 2)),
    ],
    "G0": [
        t("v", a("x", 1), a("y", 1)), t("w", a("x", 2), a("y", 2)),
        t("r", r("x", 1, 2)), t("s", r("y", 2, 1)),
    ],
    "G1c": [
        t("v", a("x", 1), r("y", 1)), t("w", a("y", 1), r("x", 1)),
    ],
    "G-single": [
        t("v", a("x", 1), a("y", 1)), t("r", r("x", 1), r("y")), t("s", r("y", 1)),
    ],
    "G-nonadjacent": [
        # p -rw-> v -wr-> q -rw-> w -wr-> p: two read skews, held apart by reads
        t("v", a("x", 1)), t("w", a("y", 1)),
        t("p", r("x"), r("y", 1)), t("q", r("x", 1), r("y")),
    ],
    "G2": [
        t("v", r("x"), r("y"), a("x", 1)), t("w", r("x"), r("y"), a("y", 1)),
        t("s", r("x", 1), r("y", 1), at=200),
    ],
    "G-single-realtime": [t_alone("w", 1, a("x", 1)), t_alone("r", 2, r("x")),
                          t_alone("s", 3, r("x", 1))],
    "G0-realtime": [
        t_alone("v", 1, a("x", 1)), t_alone("w", 2, a("x", 2)), t_alone("r", 3, r("x", 2, 1)),
    ],
    "G-single-session": [
        t("w", a("x", 1)), t("r", r("x"), at=101, lasts=1, session="w"),
        t("s", r("x", 1)),
    ],
    "read your writes": [
        t("w", a("x", 1), session="c", lasts=1), t("r", r("x"), at=2, session="c"),
        t("s", r("x", 1)),
    ],
    "monotonic reads": [
        t("w", a("x", 1)), t("r", r("x", 1), session="c", lasts=1),
        t("s", r("x"), at=2, session="c"),
    ],
    "monotonic writes": [
        t("v", a("x", 1), session="c", lasts=1), t("w", a("x", 2), at=2, session="c"),
        t("r", r("x", 2, 1)),
    ],
    "writes follow reads": [
        t("v", a("x", 1)), t("r", r("x", 1), session="c", lasts=1),
        t("w", a("x", 2), at=2, session="c"), t("s", r("x", 2, 1)),
    ],
}  # fmt: skip


@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_anomaly_is_found(kind: str) -> None:
    assert kind in {anomaly.kind for anomaly in find_anomalies(PLANTED[kind])}


HONEST: dict[str, list[Transaction]] = {
    "empty": [],
    "one after the other": [
        t_alone("v", 1, r("x"), a("x", 1)), t_alone("w", 2, r("x", 1), a("x", 2), r("x", 1, 2)),
        t_alone("r", 3, r("x", 1, 2)),
    ],
    "a snapshot between two writers": [
        t("v", a("x", 1), a("y", 1)), t("w", a("x", 2)), t("r", r("x", 1), r("y", 1)),
        t("s", r("x", 1, 2), at=200),
    ],
    "a failed append that nobody sees": [
        t("w", a("x", 1), outcome=FAILED), t_alone("r", 200, r("x")),
    ],
    "an unknown append that happened": [
        t("w", a("x", 1), outcome=UNKNOWN), t_alone("r", 2, r("x", 1)),
    ],
    "an unknown append that did not happen": [
        t("w", a("x", 1), outcome=UNKNOWN), t_alone("r", 2, r("x")),
    ],
    "an unknown append that happens late": [
        t("w", a("x", 1), outcome=UNKNOWN), t_alone("r", 2, r("x")), t_alone("s", 3, r("x", 1)),
    ],
    "two appends of one transaction": [
        t("w", a("x", 1), a("x", 2)), t("r", r("x", 1, 2)), t("s", r("x")),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_history_is_accepted(name: str) -> None:
    assert find_anomalies(HONEST[name]) == []


def test_snapshot_isolation_allows_write_skew_and_nothing_else() -> None:
    assert find_snapshot_anomalies(PLANTED["G2"]) == []
    for kind in PLANTED.keys() - {"G2"}:
        assert find_snapshot_anomalies(PLANTED[kind]), kind


def test_a_malformed_history_is_refused() -> None:
    with pytest.raises(ValueError, match="twice"):
        find_anomalies([t("v", a("x", 1)), t("w", a("x", 1))])
    with pytest.raises(ValueError, match="named"):
        find_anomalies([t("v"), t("v")])
    with pytest.raises(ValueError, match="overlap"):
        find_anomalies([t("v", session="s"), t("w", session="s")])


def _serial(seed: int, size: int = 40) -> list[Transaction]:
    """A random history that was executed one transaction after the other, then stretched: each
    transaction is reported as running for some time around the instant at which it took effect."""
    chance = random.Random(seed)
    lists: dict[str, list[int]] = {"x": [], "y": [], "z": []}
    history = []
    for number in range(size):
        operations: list[Read | Append] = []
        for key in chance.sample(sorted(lists), chance.randrange(1, 4)):
            if chance.random() < 0.5:
                operations.append(Read(key, tuple(lists[key])))
            if chance.random() < 0.4:
                lists[key].append(number)
                operations.append(Append(key, number))
        begin, end = number - chance.random() * 3, number + chance.random() * 3
        history.append(Transaction(f"t{number}", f"t{number}", begin, end, tuple(operations)))
    return history


@pytest.mark.parametrize("seed", range(200))
def test_a_serial_history_is_accepted(seed: int) -> None:
    assert find_anomalies(_serial(seed)) == []


def test_a_stale_read_in_a_serial_history_is_found() -> None:
    """Each history gets one read that misses the last append of its key, long after it."""
    for seed in range(100):
        history = _serial(seed)
        order = max((read for txn in history for read in txn.reads), key=lambda x: len(x.values))
        stale = Transaction("stale", "stale", 900, 901, (Read(order.key, order.values[:-1]),))
        found = {anomaly.kind for anomaly in find_anomalies([*history, stale])}
        assert "lost append" in found
        assert any(kind.startswith("G") for kind in found)
