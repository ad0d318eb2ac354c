"""Snapshot isolation and no lost updates, by recorded histories of four processes."""

from __future__ import annotations

import pytest
from tests.crash.sizes import FULL
from tests.support.concurrenthistories import Trial, Workers, play_all

import omnigraph

MANY = 250 if FULL else 60


@pytest.fixture(scope="module")
def workers():
    found = Workers(4)
    yield found
    found.close()


def test_histories_of_four_processes_are_honest(workers, tmp_path):
    """ledger: C02, C10, C14, C16, C17"""
    outcomes = play_all(workers, tmp_path, range(6))
    assert outcomes["done"] > 20
    assert outcomes["read"] > 5


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_many_histories_are_honest(workers, tmp_path):
    """ledger: C02, C10, C14, C16, C17"""
    outcomes = play_all(workers, tmp_path, range(100, 100 + MANY))
    assert outcomes["done"] > 5 * MANY
    assert {"read", "done", "taken", "broken", "nothing", "moved"} <= outcomes.keys()


# The judge itself must notice.


def told(**changes: object) -> list[dict]:
    add = {"name": "w0-0-0", "kind": "add", "k": 0, "to": 0, "v": 5}
    end = {**add, "outcome": "done", "sequence": 3, "touched": [1, 0], "end": 2.0, "last": 3}
    return [{**add, "begin": 1.0, "first": 2}, {**end, **changes}]


@pytest.fixture
def graph(tmp_path):
    from tests.support.concurrenthistories import SCHEMA, TEXTS

    made = omnigraph.init(str(tmp_path / "graph"), SCHEMA)
    made.ingest([{"key": 0, "value": 0}, {"key": 1, "value": 0}], type="Cell", message="start")
    made.mutate(TEXTS["add"], params={"k": 0, "v": 5}, message="w0-0-0")
    return made


def read(sequence: int, cells: dict[str, int], begin: float, end: float) -> list[dict]:
    op = {"name": "w1-0-0", "kind": "read", "k": 0, "to": 0, "v": 1}
    return [
        {**op, "begin": begin, "first": 2},
        {**op, "outcome": "read", "sequence": sequence, "cells": cells, "links": [], "end": end,
         "last": 3},
    ]  # fmt: skip


def test_the_judge_accepts_an_honest_history(graph):
    honest = [*told(), *read(3, {"0": 5, "1": 0}, 3.0, 4.0)]
    assert Trial(graph, honest).judge() == {"done": 1, "read": 1}


@pytest.mark.parametrize(
    "entries",
    [
        told(sequence=4),
        told(touched=[2, 0]),
        told(outcome="conflict"),
        told(outcome="nothing", last=2),
        [*told(), *read(3, {"0": 0, "1": 0}, 3.0, 4.0)],  # an old value under a new commit
        [*told(), *read(2, {"0": 0, "1": 0}, 3.0, 4.0)],  # a read of the past
        [{**e, "name": "w9-9-9"} for e in told()],  # acknowledged, and not there
    ],
)
def test_the_judge_notices_a_lie(graph, entries):
    with pytest.raises(AssertionError):
        Trial(graph, entries).judge()
