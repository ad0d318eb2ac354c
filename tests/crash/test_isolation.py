"""Concurrent list-append histories under the isolation checker: threads, processes, kills, S3."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.crash.listappend import (
    FORKING,
    KINDS,
    final_read,
    new_lists,
    recorded,
    run_in_threads,
)
from tests.crash.listtrial import COUNT, judge, logs_in
from tests.crash.nursery import Nursery, open_nursery
from tests.crash.sizes import FULL, note
from tests.isolation.checker import find_anomalies
from tests.isolation.history import Outcome, Transaction
from tests.support.s3 import S3Server

HISTORIES = 120 if FULL else 24
ON_S3 = max(3, HISTORIES // 12)
# How many histories a run judges at each place.
LEAST = {
    "processes": 3 + HISTORIES + HISTORIES // 4,
    "threads": HISTORIES // 2,
    "killed processes": HISTORIES // 2,
    "S3": ON_S3,
}


def judge_all(nursery: Nursery, folder: Path, seeds: range, kinds: Sequence[str] = KINDS) -> None:
    histories = []
    for seed in seeds:
        history, found = judge(nursery, folder / f"h{seed}", seed, kinds)
        assert found == [], f"history {seed}: {found}"
        histories.append(history)
    _note("processes", histories)
    assert _succeeded(histories) > len(seeds) * COUNT


def _succeeded(histories: Sequence[Sequence[Transaction]]) -> int:
    return sum(txn.outcome is Outcome.OK for history in histories for txn in history)


def _note(where: str, histories: Sequence[Sequence[Transaction]]) -> None:
    note("isolation", where=where, histories=len(histories), transactions=sum(map(len, histories)))


# ledger: C02 C10 C14 C17
@pytest.mark.crash
def test_a_few_histories(nursery: Nursery, tmp_path: Path) -> None:
    judge_all(nursery, tmp_path, range(1000, 1003))


# ledger: C02 C10 C14 C17
@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("part", range(3))
def test_many_histories_of_processes(nursery: Nursery, tmp_path: Path, part: int) -> None:
    size = HISTORIES // 3
    judge_all(nursery, tmp_path, range(part * size, (part + 1) * size))


# ledger: B02 C02
@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_forks_are_snapshot_isolated(nursery: Nursery, tmp_path: Path) -> None:
    judge_all(nursery, tmp_path, range(HISTORIES // 4), FORKING)


# ledger: C02 C10 C14
@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_many_histories_of_threads(tmp_path: Path) -> None:
    histories = []
    for seed in range(HISTORIES // 2):
        folder = tmp_path / f"h{seed}"
        logs, uri = logs_in(folder), str(folder / "graph")
        new_lists(uri, COUNT)
        run_in_threads(uri, logs, seed, COUNT)
        histories.append([*recorded(logs), final_read(uri)])
        assert find_anomalies(histories[-1]) == [], f"history {seed}"
    _note("threads", histories)
    assert _succeeded(histories) > len(histories) * COUNT


# ledger: C17 R03 R14
@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_histories_with_killed_processes(nursery: Nursery, tmp_path: Path) -> None:
    histories = []
    for seed in range(HISTORIES // 2):
        folder = tmp_path / f"h{seed}"
        logs, uri = logs_in(folder), str(folder / "graph")
        new_lists(uri, COUNT)
        _run_and_kill(nursery, uri, logs, seed)
        histories.append([*recorded(logs), final_read(uri)])
        assert find_anomalies(histories[-1]) == [], f"history {seed}"
    _note("killed processes", histories)
    unknown = sum(t.outcome is Outcome.UNKNOWN for history in histories for t in history)
    assert unknown > len(histories) // 4
    assert _succeeded(histories) > len(histories) * COUNT


def _run_and_kill(nursery: Nursery, uri: str, logs: Sequence[Path], seed: int) -> None:
    """Two of the sessions are killed while they run; the others carry on."""
    chance = random.Random(seed)
    children = [
        nursery.start("append_to_lists", uri, str(log), number, seed, COUNT, list(KINDS))
        for number, log in enumerate(logs)
    ]
    for child in chance.sample(children, 2):
        time.sleep(chance.uniform(0.02, 0.2))
        os.kill(child, signal.SIGKILL)
    for child in children:
        ending = nursery.bury(child)
        assert ending.killed or not ending.error, ending.error


@pytest.fixture(scope="module")
def s3_nursery(s3_server: S3Server) -> Iterator[Nursery]:
    with open_nursery(**s3_server.environ()) as nursery:
        yield nursery


# ledger: C02 C10 C14 C17
@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_histories_on_s3(s3_nursery: Nursery, s3_root: str, tmp_path: Path) -> None:
    histories = []
    for seed in range(ON_S3):
        uri = f"{s3_root}/lists-{seed}"
        history, found = judge(s3_nursery, tmp_path / f"h{seed}", seed, uri=uri)
        assert found == [], f"history {seed}: {found}"
        histories.append(history)
    _note("S3", histories)
    assert _succeeded(histories) > len(histories) * COUNT
