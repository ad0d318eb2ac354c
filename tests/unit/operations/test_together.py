"""Everything at once: writers, readers, optimize, cleanup and the reconciler on one graph.

Whoever meets somebody else may be told so with a typed conflict. Nothing else may go wrong, nothing
that was acknowledged may be lost, and the graph must be sound afterwards.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.crash.sizes import FULL

import omnigraph
from omnigraph.errors import ConflictError
from omnigraph.graph import Graph
from omnigraph.operations.reconcile import Bounds

SCHEMA = """
node Item {
    key: String @key
    owner: String @index
    text: String @index
    count: I64 @index
}
edge Next: Item -> Item
"""
# How long everybody may take to get a turn.
_LONGEST_S = 300
TIGHT = Bounds(unindexed_rows=20, unindexed_share=0.0, small_files=6)

INSERT = (
    "query i($k: String, $o: String, $p: String) {"
    " insert Item { key: $k, owner: $o, text: $k, count: 0 }"
    " insert Next { from: $k, to: $p } }"
)
GROW = "query g($k: String) { update Item set { count: count + 1 } where key = $k }"
DROP = "query d($k: String) { delete Item where key = $k }"
TOTAL = "query t() { match { $i: Item } return { count($i) as n, sum($i.count) as s } }"


class Team:
    """Threads that run until told to stop; what they raise is kept."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self.stop = threading.Event()
        self.errors: list[BaseException] = []
        self.done: Counter[str] = Counter()
        self.threads: list[threading.Thread] = []

    def start(self, name: str, work: Callable[[Graph, int], Any]) -> None:
        thread = threading.Thread(target=self._run, args=(name, work), name=name)
        self.threads.append(thread)
        thread.start()

    def _run(self, name: str, work: Callable[[Graph, int], Any]) -> None:
        try:
            graph = omnigraph.open(self.uri, actor=name)
            turn = 0
            while not self.stop.is_set():
                try:
                    work(graph, turn)
                    self.done[name] += 1
                except ConflictError:
                    self.done["conflicts"] += 1
                turn += 1
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            self.errors.append(error)
            self.stop.set()

    def wait_for_all(self, writers: list[Writer]) -> None:
        """On a busy machine somebody may not have had a turn yet."""
        awaited = [*(writer.name for writer in writers), "optimize", "versions removed"]
        last = time.monotonic() + _LONGEST_S
        while not all(self.done[name] for name in awaited) and time.monotonic() < last:
            if self.stop.wait(0.5):
                return

    def finish(self) -> None:
        self.stop.set()
        for thread in self.threads:
            thread.join()


class Writer:
    """Adds, grows and drops items of its own, and remembers what was acknowledged."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.held: dict[str, int] = {"root-" + name: 0}

    def __call__(self, graph: Graph, turn: int) -> None:
        first = f"root-{self.name}"
        if turn % 10 == 9 and len(self.held) > 5:
            key = next(key for key in self.held if key != first)
            graph.mutate(DROP, params={"k": key})
            del self.held[key]
        elif turn % 3 == 2:
            key = list(self.held)[turn % len(self.held)]
            graph.mutate(GROW, params={"k": key})
            self.held[key] += 1
        else:
            key = f"{self.name}-{turn:05d}"
            graph.mutate(INSERT, params={"k": key, "o": self.name, "p": first})
            self.held[key] = 0


def read(graph: Graph, turn: int) -> None:
    """One snapshot gives one answer, however often it is asked."""
    snapshot = graph.snapshot()
    one = graph.query(TOTAL, commit=snapshot.commit_id).rows()
    other = graph.query(TOTAL, commit=snapshot.commit_id).rows()
    assert one == other
    text = 'query q() { match { $i: Item { owner: "w1" } } return { $i.key, $i.count } }'
    rows = graph.query(text).rows()
    keys = [row["i.key"] for row in rows]
    assert len(keys) == len(set(keys))
    time.sleep(0.02)  # all share one interpreter; writers should get their turn


def run_together(place: Path, seconds: float) -> None:
    graph = omnigraph.init(str(place / "g"), SCHEMA)
    writers = [Writer(f"w{n}") for n in range(4)]
    graph.ingest(
        [
            {"type": "Item", "data": {"key": key, "owner": w.name, "text": key, "count": 0}}
            for w in writers
            for key in w.held
        ]
    )
    team = Team(graph.uri)
    for writer in writers:
        team.start(writer.name, writer)
    for n in range(4):
        team.start(f"r{n}", read)
    grace = timedelta(seconds=5)
    team.start("optimize", lambda graph, turn: graph.optimize())

    def clean(graph: Graph, turn: int) -> None:
        done = graph.cleanup(keep=3, grace=grace, confirm=True)
        assert not [table.error for table in done.tables if table.error]
        team.done["versions removed"] += done.versions

    team.start("cleanup", clean)
    keeper = omnigraph.open(graph.uri, actor="keeper")
    with keeper.reconciler(bounds=TIGHT, interval_s=0.2) as worker:
        team.stop.wait(seconds)
        team.wait_for_all(writers)
        team.finish()
        assert worker.lag().rounds > 0
    if team.errors:
        raise team.errors[0]
    check(omnigraph.open(graph.uri), writers, team)


def check(graph: Graph, writers: list[Writer], team: Team) -> None:
    every = "query a() { match { $i: Item } return { $i.key, $i.count } }"
    shown = {row["i.key"]: row["i.count"] for row in graph.query(every).rows()}
    assert shown == {key: count for writer in writers for key, count in writer.held.items()}
    assert graph.verify().findings == []
    done = team.done
    assert all(done[writer.name] for writer in writers), done
    assert done["optimize"], done
    assert done["cleanup"], done
    assert done["versions removed"], done
    graph.optimize()
    assert graph.optimize().is_empty


# ledger: I04 I06 I07 I08 C15
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_everything_at_once(tmp_path: Path) -> None:
    run_together(tmp_path, 60 if FULL else 12)
