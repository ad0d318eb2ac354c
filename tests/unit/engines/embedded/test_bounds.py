"""Bounds of a query: memory, time, rows; cancellation and Ctrl-C; nothing left behind."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.unit.engines.embedded import interrupted
from tests.unit.engines.embedded.asked import ask, graph, people

from omnigraph import progress
from omnigraph.engines.base import Cancellation, Limits, Options
from omnigraph.engines.embedded import EmbeddedEngine
from omnigraph.engines.embedded.bounds import LONG_WORK, Bounds
from omnigraph.errors import CancelledError, LimitExceededError
from omnigraph.model.snapshot import Snapshot

PAIRS = "match { $a: Person $b: Person } return { $a.name as a, $b.name as b }"
WALK = "match { $a: Person $a knows{1,} $b } return { count($b) as n }"


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    path: Path = tmp_path_factory.mktemp("bounds")
    return graph(path, people(1500, 1))


def limited(**limits: float | None) -> Options:
    return Options(limits=Limits(**limits))  # type: ignore[arg-type]


# ledger: Q04
def test_memory(snapshot: Snapshot) -> None:
    with pytest.raises(LimitExceededError) as caught:
        ask(EmbeddedEngine(), snapshot, PAIRS, limited(memory_bytes=1 << 20))
    assert caught.value.resource == "memory_bytes"
    assert caught.value.limit == 1 << 20
    assert caught.value.actual is not None
    assert caught.value.actual > 1 << 20


def test_time(snapshot: Snapshot) -> None:
    with pytest.raises(LimitExceededError) as caught:
        ask(EmbeddedEngine(), snapshot, WALK, limited(seconds=0.0))
    assert caught.value.resource == "seconds"


def test_rows_scanned(snapshot: Snapshot) -> None:
    with pytest.raises(LimitExceededError) as caught:
        ask(EmbeddedEngine(), snapshot, WALK, limited(rows_scanned=1000))
    assert caught.value.resource == "rows_scanned"


def test_rows_returned(snapshot: Snapshot) -> None:
    result = ask(
        EmbeddedEngine(),
        snapshot,
        "match { $p: Person } return { $p.name }",
        limited(rows_returned=10),
    )
    with pytest.raises(LimitExceededError) as caught:
        result.rows()
    assert caught.value.resource == "rows_returned"
    assert "limit" in str(caught.value)


def test_no_bounds(snapshot: Snapshot) -> None:
    free = limited(memory_bytes=None, seconds=None, rows_scanned=None, rows_returned=None)
    assert len(ask(EmbeddedEngine(), snapshot, "match { $p: Person } return { $p }", free)) == 1500


def test_a_query_tells_how_many_rows_it_has_seen(snapshot: Snapshot) -> None:
    heard: list[progress.Progress] = []
    with progress.listening(heard.append):
        rows = ask(EmbeddedEngine(), snapshot, WALK).rows()
    seen = [event.rows or 0 for event in heard if event.stage == "match"]
    assert seen == sorted(seen)
    assert seen[-1] >= rows[0]["n"]  # every row that was found was walked to
    assert heard[-1] == progress.Progress("fetch", 0, 1, 0)


def test_a_query_in_a_thread_of_its_own_tells_the_one_that_waits() -> None:
    bounds, told, heard = Bounds(Limits()), threading.Event(), []

    def hear(event: progress.Progress) -> None:
        heard.append((event.rows, threading.current_thread() is threading.main_thread()))
        if event.rows:
            told.set()

    def work() -> bool:
        bounds.scan(7)
        return told.wait(30)

    with progress.listening(hear):
        assert bounds.listening(work)
    assert (7, True) in heard
    assert all(on_main for _, on_main in heard)


def test_a_bound_leaves_the_engine_whole(snapshot: Snapshot) -> None:
    engine = EmbeddedEngine()
    with pytest.raises(LimitExceededError):
        ask(engine, snapshot, WALK, limited(rows_scanned=1000))
    expected = ask(EmbeddedEngine(), snapshot, WALK).rows()
    assert ask(engine, snapshot, WALK).rows() == expected == [{"n": 1500 * 1499}]


def test_cancellation(snapshot: Snapshot) -> None:
    switch = Cancellation()
    switch.cancel()
    with pytest.raises(CancelledError):
        ask(EmbeddedEngine(), snapshot, WALK, Options(cancellation=switch))


def test_cancellation_during_a_long_kernel() -> None:
    switch, release, done = Cancellation(), threading.Event(), threading.Event()

    def kernel() -> None:
        switch.cancel()
        release.wait()
        done.set()

    with pytest.raises(CancelledError):
        Bounds(Limits(), switch).wait(kernel, LONG_WORK)
    assert not done.is_set(), "the query waited for its kernel"
    release.set()


def test_ctrl_c_during_a_long_kernel() -> None:
    release, done = threading.Event(), threading.Event()

    def kernel() -> None:
        signal.raise_signal(signal.SIGINT)
        release.wait()
        done.set()

    with pytest.raises(KeyboardInterrupt):
        Bounds(Limits()).wait(kernel, LONG_WORK)
    assert not done.is_set(), "the query waited for its kernel"
    release.set()


def test_short_work_is_done_at_once() -> None:
    thread = Bounds(Limits()).wait(threading.current_thread, 10)
    assert thread is threading.current_thread()


def test_a_failing_kernel_fails_its_query() -> None:
    def kernel() -> None:
        raise TimeoutError("from inside")

    with pytest.raises(TimeoutError, match="from inside"):
        Bounds(Limits()).wait(kernel, LONG_WORK)


@pytest.mark.parametrize("_time", range(50))  # it may come at any instant of the start
def test_ctrl_c_stops_a_long_query_and_what_it_started(_time: int) -> None:
    stopped = threading.Event()
    bounds = Bounds(Limits())

    def query() -> None:
        signal.raise_signal(signal.SIGINT)
        try:
            while True:
                bounds.check()
        except CancelledError:
            stopped.set()

    with pytest.raises(KeyboardInterrupt):
        bounds.listening(query)
    assert stopped.wait(30), "what the query had started went on"


def test_a_query_in_another_thread_runs_there() -> None:
    found: list[threading.Thread] = []
    bounds = Bounds(Limits())
    thread = threading.Thread(
        target=lambda: found.append(bounds.listening(threading.current_thread))
    )
    thread.start()
    thread.join()
    assert found == [thread]


def test_a_failing_query_fails_where_it_was_asked() -> None:
    def query() -> None:
        raise LimitExceededError("too much", resource="rows")

    with pytest.raises(LimitExceededError, match="too much"):
        Bounds(Limits()).listening(query)


# ledger: Q04
@pytest.mark.slow
def test_ctrl_c_stops_real_queries_within_a_tenth_of_a_second(tmp_path: Path) -> None:
    command = [sys.executable, interrupted.__file__, str(tmp_path / "graph")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=True)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["query"] for each in found] == list(interrupted.QUERIES)
    for each in found:
        heard = [delay for delay in each["delays"] if delay is not None]
        assert heard, f"{each['query']} was over before it could be interrupted"
        # The quickest of several: the others may have waited for a busy machine.
        assert min(heard) < 0.1, each
        assert each["threads"] == [], "what the query had started went on"
        assert each["files"] == []
        assert each["afterwards"] == [{"n": interrupted.PEOPLE * interrupted.DEGREE}]
