"""Derived files that are lost or damaged, and answers that must not change.

A graph has indexes and kept adjacency. A step damages some of those files, at random, as a disk or
a careless program would; sometimes it writes, or optimizes. After each step every question has the
answer of a twin that was written alike and has no derived file at all.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any
from unittest.mock import patch

import omnigraph
from omnigraph.engines.embedded import EmbeddedEngine, adjacency_store
from omnigraph.engines.embedded.bounds import Bounds
from omnigraph.graph import Graph
from omnigraph.history.resolve import Target, resolve
from omnigraph.ir.query import ReadQuery
from omnigraph.lang import gq
from omnigraph.plan.planner import plan_query
from omnigraph.storage.derived import FOLDER
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.table import forget_tables

SCHEMA = """
node Doc {
    key: String @key
    body: String? @index
    n: I64? @index
}
edge Cites: Doc -> Doc
"""
QUESTIONS = (
    'match { $d: Doc search($d.body, "apple") } return { $d.key as k }',
    'match { $d: Doc fuzzy($d.body, "appel") } return { $d.key as k }',
    "match { $d: Doc $d.n >= 30 } return { $d.key as k }",
    "match { $d: Doc $d cites $e } return { $d.key as d, $e.key as e }",
    "match { $d: Doc $e cites $d } return { $d.key as d, count($e) as n }",
    "match { $d: Doc $d cites{1,3} $e } return { $d.key as d, count($e) as n }",
)
ROWS = 40
WORDS = ("apple", "apples and pears", "sky", "blue")


def at_once(self: Bounds, work: Callable[[], Any]) -> Future[Any]:
    """Files change only within a step."""
    future: Future[Any] = Future()
    future.set_result(work())
    return future


class Decay:
    """One graph, damaged again and again."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.chance = random.Random(seed)
        self.graph = omnigraph.init(str(folder / "graph"), SCHEMA)
        self.twin = omnigraph.init(str(folder / "twin"), SCHEMA)
        docs = [{"key": f"k{n:02}", "body": self.chance.choice(WORDS), "n": n} for n in range(ROWS)]
        edges = [self._edge() for _ in range(3 * ROWS)]
        for graph in (self.graph, self.twin):
            graph.ingest(docs, type="Doc")
            graph.ingest(edges, type="Cites")
        self.story: list[str] = []

    def play(self, steps: int) -> None:
        with (
            patch.object(adjacency_store, "_LEAST_EDGES", 0),
            patch.object(Bounds, "beside", at_once),
        ):
            self.graph.optimize()
            self.look()
            for _ in range(steps):
                self.chance.choice([self._damage, self._damage, self._write, self._optimize])()
                self.look()
            self._optimize()
            assert self.graph.verify().findings == [], self.story

    def _edge(self) -> dict[str, str]:
        return {end: f"k{self.chance.randrange(ROWS):02}" for end in ("from", "to")}

    def _write(self) -> None:
        self.story.append("write")
        key = f"k{self.chance.randrange(ROWS):02}"
        word = self.chance.choice(WORDS)
        edge = self._edge()
        for graph in (self.graph, self.twin):
            graph.mutate(f'query q() {{ update Doc set {{ body: "{word}" }} where key = "{key}" }}')
            graph.ingest([edge], type="Cites")

    def _optimize(self) -> None:
        self.story.append("optimize")
        self.graph.optimize()

    def _damage(self) -> None:
        root = Path(self.graph.uri)
        files = [*root.glob("*/*/_indices/*/*"), *(root / FOLDER).rglob("*")]
        files = sorted(path for path in files if path.is_file())
        for file in self.chance.sample(files, min(len(files), self.chance.randrange(1, 5))):
            self._harm(file)
        forget_tables()

    def _harm(self, file: Path) -> None:
        """In place or by a new file, as both happen."""
        data = bytearray(file.read_bytes())
        way = self.chance.choice(["lose", "cut", "fill"])
        if FOLDER in file.parts and data:
            way = self.chance.choice(["flip", "flip", "lose", "cut", "fill"])
        self.story.append(f"{way} {file.name}")
        if way == "lose":
            file.unlink()
        elif way == "cut":
            file.write_bytes(data[: self.chance.randrange(len(data) + 1)])
        elif way == "fill":
            file.write_bytes(self.chance.randbytes(len(data)))
        else:
            data[self.chance.randrange(len(data))] ^= 1 << self.chance.randrange(8)
            file.unlink()  # whoever has mapped the file keeps what it has
            file.write_bytes(data)

    def look(self) -> None:
        with patch.object(adjacency_store, "_LEAST_EDGES", 10**9):
            expected = answers(self.twin)
        assert answers(self.graph) == expected, self.story


def answers(graph: Graph) -> list[list[str]]:
    """The answers of an engine that has seen nothing yet."""
    engine = EmbeddedEngine()
    snapshot = resolve(GraphRoot.at(graph.uri), Target(branch="main"))
    found = []
    for text in QUESTIONS:
        query = gq.compile_query(f"query q() {{ {text} }}", snapshot.catalog).query
        assert isinstance(query, ReadQuery)
        plan = plan_query(query, snapshot.catalog, engine.statistics(snapshot))
        found.append(sorted(map(str, engine.run(plan, snapshot, {}).rows())))
    return found
