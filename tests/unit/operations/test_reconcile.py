"""The reconciler: it converges off the write path, and tells how far behind it is."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.support.schemachanges import content, new_graph

from omnigraph import faults
from omnigraph.errors import StorageTransientError
from omnigraph.graph import Graph, init
from omnigraph.operations.reconcile import Bounds

TIGHT = Bounds(unindexed_rows=0, unindexed_share=0.0, small_files=2)


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return new_graph(str(tmp_path / "g"))


def add_city(graph: Graph, n: int) -> None:
    graph.ingest([{"type": "City", "data": {"id": f"n{n}", "title": f"n{n}"}}])


def wait_for(what) -> None:
    deadline = time.monotonic() + 60
    while not what():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.02)


# ledger: I08
def test_it_converges_in_the_background(graph: Graph) -> None:
    assert graph.lag().unindexed_rows > 0
    with graph.reconciler(bounds=TIGHT, interval_s=0.05) as worker:
        wait_for(lambda: worker.lag().rounds and not worker.lag().unindexed_rows)
        rounds = worker.lag().rounds
        for n in range(12):
            add_city(graph, n)
        wait_for(lambda: worker.lag().rounds > rounds and not graph.lag().unindexed_rows)
    assert graph.lag().unindexed_rows == 0
    assert len(content(graph)["City"]) == 15
    assert graph.verify().findings == []


# ledger: I08
def test_lag_is_observable_and_bounds_are_kept(graph: Graph) -> None:
    worker = graph.reconciler(bounds=Bounds(unindexed_rows=5, unindexed_share=0.0))
    assert worker.reconcile() is not None  # Person has 12 rows and no index
    lag = {table.type_name: table for table in worker.lag().tables}
    assert lag["Person"].unindexed_rows == 0
    assert lag["City"].unindexed_rows == 3  # within bounds
    assert worker.reconcile() is None
    for n in range(4):
        add_city(graph, n)
    assert graph.lag().to_dict()["unindexed_rows"] >= 4
    done = worker.reconcile()
    assert done is not None
    assert [table.type_name for table in done.tables] == ["City"]


# ledger: I08
def test_an_error_is_told_and_the_next_round_tries_again(graph: Graph) -> None:
    worker = graph.reconciler(bounds=TIGHT, interval_s=0.05)
    worker.reconcile()
    add_city(graph, 1)
    with (
        faults.armed("commit.before_lock", faults.Raise(StorageTransientError("busy"))),
        worker,
    ):
        wait_for(lambda: worker.lag().last_error is not None)
    assert "busy" in str(worker.lag().last_error)
    with worker:
        wait_for(lambda: worker.lag().last_error is None)
        wait_for(lambda: not worker.lag().unindexed_rows)


def test_a_graph_that_stands_still_is_left_alone(graph: Graph) -> None:
    with graph.reconciler(bounds=TIGHT, interval_s=0.01) as worker:
        wait_for(lambda: worker.lag().rounds >= 1 and not worker.lag().due)
        rounds, head = worker.lag().rounds, graph.snapshot().commit_id
        time.sleep(0.3)
        assert worker.lag().rounds == rounds
    assert graph.snapshot().commit_id == head


def test_an_interval_that_is_longer_than_a_thread_can_wait(tmp_path: Path) -> None:
    graph = init(tmp_path / "g", "node Person { name: String @key }")
    worker = graph.reconciler(interval_s=2.0**63)
    with worker:
        deadline = time.monotonic() + 30
        while worker._rounds == 0 and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.1)
        assert worker._thread is not None
        assert worker._thread.is_alive()
