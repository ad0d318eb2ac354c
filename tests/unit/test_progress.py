"""Reports of long work: heard in their own context alone, and able to stop it."""

from __future__ import annotations

import threading

import pytest

from omnigraph import progress
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


def test_loading_tells_how_far_it_is(tmp_path) -> None:
    import omnigraph

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
