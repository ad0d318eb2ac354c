"""Memory pressure: cached entries disappear at random between questions and during them.

A graph is changed by random commits on two branches. One engine answers questions at random
states of the history; its cache has random budgets and loses random entries on access. Every
answer must be the answer of an engine with an empty cache and without derived files.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.support.resultequality import assert_same_rows

import omnigraph
from omnigraph.caches import AnyCache
from omnigraph.engines.embedded import EmbeddedEngine, adjacency_store, lineage
from omnigraph.engines.embedded.bounds import Bounds
from omnigraph.errors import OmniGraphError
from omnigraph.graph import Graph
from omnigraph.history.resolve import Target, resolve
from omnigraph.ir.query import ReadQuery
from omnigraph.lang import gq
from omnigraph.model.snapshot import Snapshot
from omnigraph.plan.planner import plan_query
from omnigraph.storage.root import GraphRoot

SCHEMA = """
node Doc {
    key: String @key
    n: I64?
    v: Vector(2)?
}
node Topic { key: String @key }
edge Cites: Doc -> Doc { weight: I64? }
edge About: Doc -> Topic
"""
QUESTIONS = (
    "match { $d: Doc } return { $d.key as k, $d.n as n }",
    "match { $d: Doc $d.n >= 3 } return { $d.key as k }",
    'match { $d: Doc $d.key = "k3" } return { $d.key as k, $d.n as n }',
    "match { $d: Doc } return { $d.n as n, count($d) as c }",
    "match { $d: Doc } return { $d.key as k, $d.n as n } order { $d.n desc, $d.key } limit 5",
    "match { $d: Doc } return { $d.key as k } order { nearest($d.v, [1.0, 0.0]) } limit 4",
    "match { $d: Doc $d cites $e } return { $d.key as d, $e.key as e }",
    "match { $d: Doc $d $c:cites $e } return { $d.key as d, $c.weight as w, $e.n as n }",
    "match { $d: Doc $e cites $d } return { $d.key as d, count($e) as n }",
    "match { $d: Doc $d cites{1,3} $e } return { $d.key as d, count($e) as n }",
    "match { $d: Doc $d about $t } return { $t.key as t, count($d) as n }",
    'match { $d: Doc $d.key = "k5" $d about $t $e about $t } return { $e.key as e, $t.key as t }',
)
ROWS = 16
TOPICS = 4
# From next to nothing to enough for everything.
BUDGETS = (0, 400, 1500, 4000, 1 << 20)


class LossyCache(AnyCache):
    """A cache that loses entries by chance whenever it is asked for one."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__(1 << 20)
        self._chance = chance
        self.share = 0.0  # of accesses that lose an entry
        self.lost = 0

    def peek(self, key: Hashable) -> Any | None:
        if self._chance.random() < self.share:
            self.lose()
        return super().peek(key)

    def lose(self) -> None:
        with self._lock:
            if self._entries:
                self._drop(self._chance.choice(list(self._entries)))
                self.lost += 1


class Pressure:
    """One graph, its history, and an engine that is short of memory."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.chance = random.Random(seed)
        self.graph = omnigraph.init(str(folder), SCHEMA)
        self.engine = EmbeddedEngine()
        self.cache = self.engine.cache = LossyCache(self.chance)
        self.states: list[Snapshot] = []
        self._branches = [self.graph]
        self._made = ROWS
        self.graph.ingest([self._doc(f"k{i}") for i in range(ROWS)], type="Doc")
        self.graph.ingest([{"key": f"t{i}"} for i in range(TOPICS)], type="Topic")
        self.graph.ingest([self._cite() for _ in range(2 * ROWS)], type="Cites")
        self.graph.ingest([self._about() for _ in range(ROWS)], type="About")

    def play(self, steps: int) -> None:
        with _small_tables_are_large():
            for number in range(steps):
                if number == steps // 3:
                    self.graph.create_branch("side")
                    self._branches.append(self.graph.on("side"))
                self._change()
                self._ask_all()
        assert self.cache.lost, "nothing was lost"

    # Commits

    def _doc(self, key: str) -> dict[str, Any]:
        n = self.chance.choice([None, *range(6)])
        return {"key": key, "n": n, "v": [self.chance.random(), self.chance.random()]}

    def _some(self) -> str:
        return f"k{self.chance.randrange(self._made)}"

    def _cite(self) -> dict[str, Any]:
        ends = {"from": f"k{self.chance.randrange(ROWS)}", "to": f"k{self.chance.randrange(ROWS)}"}
        return {**ends, "weight": self.chance.randrange(5)}

    def _about(self) -> dict[str, Any]:
        topic = f"t{self.chance.randrange(TOPICS)}"
        return {"from": f"k{self.chance.randrange(ROWS)}", "to": topic}

    def _change(self) -> None:
        """A random commit; one that is refused, because an end is gone, changes nothing."""
        here, chance = self.chance.choice(self._branches), self.chance
        statements = [
            f'delete Doc where key = "{self._some()}"',
            f'update Doc set {{ n: {chance.randrange(6)} }} where key = "{self._some()}"',
            f'insert Doc {{ key: "k{self._made}", n: {chance.randrange(6)} }}',
            f'insert Cites {{ from: "{self._some()}", to: "{self._some()}", weight: 9 }}',
            f'insert About {{ from: "{self._some()}", to: "t{chance.randrange(TOPICS)}" }}',
            f"delete Cites where weight = {chance.randrange(5)}",
        ]
        text = chance.choice(statements)
        try:
            here.mutate(f"query change() {{ {text} }}")
        except OmniGraphError:
            pass
        else:
            self._made += text.startswith("insert Doc")
        self.states.append(_snapshot(here))

    # Questions

    def _ask_all(self) -> None:
        self.cache.limit_bytes = self.chance.choice(BUDGETS)
        self.cache.share = self.chance.choice([0.0, 0.02, 0.2])
        newest = self.states[-1]
        for snapshot in (newest, self.chance.choice(self.states[-6:]), newest):
            for question in self.chance.sample(QUESTIONS, 6):
                self._compare(snapshot, question)
                for _ in range(self.chance.randrange(3)):
                    self.cache.lose()

    def _compare(self, snapshot: Snapshot, question: str) -> None:
        expected = _cold(snapshot, question)
        found = ask(self.engine, snapshot, question)
        assert_same_rows(found, expected, f"{snapshot.branch} at {snapshot.sequence}: {question}")


def ask(engine: EmbeddedEngine, snapshot: Snapshot, question: str) -> list[dict[str, Any]]:
    query = gq.compile_query(f"query q() {{ {question} }}", snapshot.catalog).query
    assert isinstance(query, ReadQuery)
    plan = plan_query(query, snapshot.catalog, engine.statistics(snapshot))
    return engine.run(plan, snapshot, {}).rows()


def _cold(snapshot: Snapshot, question: str) -> list[dict[str, Any]]:
    """The answer without anything that was cached or kept before."""
    with patch.object(adjacency_store, "_LEAST_EDGES", 10**9):
        return ask(EmbeddedEngine(), snapshot, question)


def _snapshot(graph: Graph) -> Snapshot:
    return resolve(GraphRoot.at(graph.uri), Target(branch=graph.branch_name))


@contextmanager
def _small_tables_are_large() -> Iterator[None]:
    """Numbers are continued whatever share of a table changes, and adjacency is kept on disk."""
    with (
        patch.object(lineage, "_LARGEST_SHARE", 0),
        patch.object(adjacency_store, "_LEAST_EDGES", 0),
        patch.object(Bounds, "beside", at_once),
    ):
        yield


def at_once(self: Bounds, work: Callable[[], Any]) -> Future[Any]:
    """In this thread, so that a seed always gives the same run."""
    future: Future[Any] = Future()
    future.set_result(work())
    return future
