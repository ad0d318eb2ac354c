"""Reports of long work: heard in their own context alone, and able to stop it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import progress
from omnigraph.graph import Graph
from omnigraph.progress import Progress


def test_who_listens_hears() -> None:
    heard: list[Progress] = []
    progress.report("before")
    with progress.listening(heard.append):
        progress.report("read", 1, 2, rows=10, bytes=20)
        assert list(progress.each("clean", ["a", "b"])) == ["a", "b"]
    progress.report("after")
    assert heard == [
        Progress("read", 1, 2, 10, 20),
        Progress("clean", 0, 2),
        Progress("clean", 1, 2),
        Progress("clean", 2, 2),
    ]


def test_another_thread_is_not_heard() -> None:
    heard: list[Progress] = []
    with progress.listening(heard.append):
        other = threading.Thread(target=lambda: progress.report("elsewhere"))
        other.start()
        other.join()
    assert heard == []


def test_a_listener_may_stop_the_work() -> None:
    def stop(_: Progress) -> None:
        raise InterruptedError

    with progress.listening(stop), pytest.raises(InterruptedError):
        progress.report("read")


def test_rows_are_counted_in_all_threads_and_told_by_the_one_that_waits() -> None:
    heard: list[tuple[Progress, int]] = []

    def work() -> str:
        with progress.tallying("compare", 30):
            progress.count(5)
            counts = [progress.inherited(lambda: progress.count(10)) for _ in range(2)]
            threads = [threading.Thread(target=one) for one in counts]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert [batch.num_rows for batch in progress.counted([_Batch(3), _Batch(2)])] == [3, 2]
        progress.count(1000)  # of no stage
        progress.report("check")
        return "done"

    with progress.listening(lambda event: heard.append((event, threading.get_ident()))):
        assert progress.aside(work) == "done"
    assert [event for event, _ in heard][-2:] == [
        Progress("compare", 30, 30, 30),
        Progress("check"),
    ]
    assert {thread for _, thread in heard} == {threading.get_ident()}


class _Batch:
    def __init__(self, num_rows: int) -> None:
        self.num_rows = num_rows


def test_nobody_listens_and_nothing_is_put_aside() -> None:
    def work() -> int:
        with progress.tallying("compare"):
            progress.count(1)
        return threading.get_ident()

    assert progress.aside(work) == threading.get_ident()


def test_work_aside_fails_and_is_stopped_like_any_other() -> None:
    ended = threading.Event()

    def forever() -> None:
        try:
            while True:
                progress.report("turn")
        finally:
            ended.set()

    def stop(_: Progress) -> None:
        raise InterruptedError

    with progress.listening(lambda _: None), pytest.raises(ZeroDivisionError):
        progress.aside(lambda: 1 // 0)
    with progress.listening(stop), pytest.raises(InterruptedError):
        progress.aside(forever)
    assert ended.wait(60)


def test_loading_tells_how_far_it_is(tmp_path) -> None:
    graph = omnigraph.init(str(tmp_path / "g"), "node Person { name: String @key }")
    heard: list[Progress] = []
    with progress.listening(heard.append):
        graph.ingest([{"type": "Person", "data": {"name": str(n)}} for n in range(100)])
        graph.export(str(tmp_path / "out.jsonl"))
        graph.verify()
    found = {event.stage: event for event in heard}
    assert found["read"].rows == 100
    assert found["read"].done == found["read"].total
    assert found["write"].rows == 100
    assert (found["export"].done, found["export"].total) == (100, 100)
    assert "check" in found


@pytest.fixture
def two_sides(tmp_path: Path) -> Graph:
    graph = omnigraph.init(str(tmp_path / "g"), "node Person { name: String @key\n n: I64? }")
    graph.ingest([_person(n, 0) for n in range(20)])
    side = graph.create_branch("side")
    side.ingest([_person(n, 1) for n in range(5)], "merge")
    graph.ingest([_person(n, 2) for n in range(10, 13)], "merge")
    return graph


def _person(number: int, n: int) -> dict[str, Any]:
    return {"type": "Person", "data": {"name": f"p{number:02}", "n": n}}


def test_merges_and_diffs_tell_how_far_they_are(two_sides: Graph) -> None:
    heard: list[Progress] = []
    with progress.listening(heard.append):
        two_sides.merge("side")
    found = {event.stage: event for event in heard}
    # Five rows on one side and three on the other, as they were and as they are.
    assert found["compare"] == Progress("compare", 16, 16, 16)
    assert found["write"] == Progress("write", 5, 5, 5)
    assert list(found) == ["compare", "combine", "check", "write"]
    heard.clear()
    with progress.listening(heard.append):
        assert len(list(two_sides.diff("side", "main"))) == 3
    assert {event.stage for event in heard} == {"compare", "diff"}
    (picked, *_) = two_sides.on("side").commits()
    heard.clear()
    with progress.listening(heard.append):
        two_sides.create_branch("other", version=2).cherry_pick(picked.id)
    assert {"compare", "write"} <= {event.stage for event in heard}


def test_a_rebase_tells_its_commits(two_sides: Graph) -> None:
    heard: list[Progress] = []
    with progress.listening(heard.append):
        two_sides.on("side").rebase()
    assert [event for event in heard if event.stage == "rebase"] == [
        Progress("rebase", 0, 1),
        Progress("rebase", 1, 1),
    ]
    assert "write" in {event.stage for event in heard}


def test_a_stopped_rebase_leaves_no_branch(two_sides: Graph) -> None:
    def stop(event: Progress) -> None:
        if event.stage == "write":
            raise KeyboardInterrupt

    refs = Path(two_sides.uri) / "__refs"
    before = sorted(refs.iterdir())
    with progress.listening(stop), pytest.raises(KeyboardInterrupt):
        two_sides.on("side").rebase()
    assert sorted(refs.iterdir()) == before
    assert len(two_sides.on("side").rebase()) == 1
