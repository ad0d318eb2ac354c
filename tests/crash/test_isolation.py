"""Concurrent histories under the isolation checker, and the checker under planted histories."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.crash.isolating import judge
from tests.crash.nursery import Nursery
from tests.crash.sizes import FULL, note
from tests.isolation import Txn, find_anomalies

HISTORIES = 120 if FULL else 30


def judge_all(nursery: Nursery, folder: Path, seeds: range) -> None:
    transactions = 0
    for seed in seeds:
        history, found = judge(nursery, str(folder / f"h{seed}"), seed)
        assert found == [], f"history {seed}: {found}"
        transactions += len(history)
    note("isolation", histories=len(seeds), first=seeds.start, transactions=transactions)


# ledger: C02 C10 C14 C17
@pytest.mark.crash
def test_a_few_histories(nursery: Nursery, tmp_path: Path) -> None:
    judge_all(nursery, tmp_path, range(1000, 1003))


# ledger: C02 C10 C14 C17
@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("part", range(3))
def test_many_histories(nursery: Nursery, tmp_path: Path, part: int) -> None:
    size = HISTORIES // 3
    judge_all(nursery, tmp_path, range(part * size, (part + 1) * size))


# Planted histories.


def txn(name: str, begin: float, reads: dict[str, str], *writes: str, session: str = "") -> Txn:
    """A transaction that takes so long that only its beginning matters, unless it is whole."""
    long = begin == int(begin)
    end = begin + (100 if long else 0.1)
    return Txn(name, session or name, begin, end, reads, frozenset(writes))


PLANTED = {
    "lost update": (
        [txn("a", 1, {"x": ""}, "x"), txn("b", 2, {"x": ""}, "x")],
        {"x": ["a", "b"]},
    ),
    "fractured read": (
        [txn("a", 1, {}, "x", "y"), txn("r", 2, {"x": "a", "y": ""})],
        {"x": ["a"], "y": ["a"]},
    ),
    "write skew": (
        [txn("a", 1, {"x": "", "y": ""}, "x"), txn("b", 2, {"x": "", "y": ""}, "y")],
        {"x": ["a"], "y": ["b"]},
    ),
    "non-monotonic read": (
        [
            txn("a", 1, {}, "x"),
            txn("r", 2, {"x": "a"}, session="s"),
            txn("q", 3, {"x": ""}, session="s"),
        ],
        {"x": ["a"]},
    ),
    "read skew": (
        [
            txn("a", 1, {"x": ""}, "x"),
            txn("b", 2, {"x": "a"}, "y"),
            txn("r", 3, {"x": "", "y": "b"}),
        ],
        {"x": ["a"], "y": ["b"]},
    ),
    "stale read": (
        [txn("a", 1.5, {}, "x"), txn("r", 2.5, {"x": ""})],
        {"x": ["a"]},
    ),
    "cyclic writes": (
        [txn("a", 1, {}, "x", "y"), txn("b", 2, {}, "x", "y")],
        {"x": ["a", "b"], "y": ["b", "a"]},
    ),
    "reordered": (
        [txn("a", 1.5, {}, "x"), txn("b", 2.5, {}, "x")],
        {"x": ["b", "a"]},
    ),
    "lost write": ([txn("a", 1, {}, "x")], {}),
    "read of nothing": ([txn("r", 1, {"x": "ghost"})], {"x": ["a"]}),
}


@pytest.mark.parametrize("kind", PLANTED)
def test_the_checker_finds(kind: str) -> None:
    history, orders = PLANTED[kind]
    assert kind in {anomaly.kind for anomaly in find_anomalies(history, orders)}


@pytest.mark.parametrize(
    ("history", "orders"),
    [
        ([], {}),
        # One after the other, each reading the one before.
        (
            [
                txn("a", 1.5, {"x": ""}, "x"),
                txn("b", 2.5, {"x": "a"}, "x"),
                txn("r", 3.5, {"x": "b"}),
            ],
            {"x": ["a", "b"]},
        ),
        # Side by side, and the reader pinned a snapshot between them.
        (
            [txn("a", 1, {}, "x", "y"), txn("b", 1, {}, "x"), txn("r", 1, {"x": "a", "y": "a"})],
            {"x": ["a", "b"], "y": ["a"]},
        ),
        # Two that read everything and write different keys, the second after the first.
        (
            [txn("a", 1, {"x": "", "y": ""}, "x"), txn("b", 1, {"x": "a", "y": ""}, "y")],
            {"x": ["a"], "y": ["b"]},
        ),
    ],
)
def test_the_checker_accepts_honest_histories(history, orders) -> None:
    assert find_anomalies(history, orders) == []
