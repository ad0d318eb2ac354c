"""A table version can have several numberings; arrays by number are never used with another one."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import pytest
from tests.support.memorypressure import ask, at_once

import omnigraph
from omnigraph.caches import AnyCache
from omnigraph.engines.embedded import EmbeddedEngine, adjacency_store, lineage
from omnigraph.engines.embedded.bounds import Bounds
from omnigraph.graph import Graph
from omnigraph.history.resolve import Target, resolve
from omnigraph.model.snapshot import Snapshot
from omnigraph.storage.derived import save_array
from omnigraph.storage.root import GraphRoot

SCHEMA = "node Doc { key: String @key  n: I64 }  edge Cites: Doc -> Doc"
ALL = "match { $d: Doc } return { $d.key as k, $d.n as n }"
PAIRS = "match { $d: Doc $d cites $e } return { $d.key as d, $e.key as e }"
SORTED = "match { $d: Doc } return { $d.n as n, count($d) as c } order { $d.n desc }"
QUESTIONS = (ALL, PAIRS, SORTED)


class _Forgetful(AnyCache):
    """Forgets every numbering once it has been handed out so many times."""

    times = 10**9

    def peek(self, key: Hashable) -> Any | None:
        found = super().peek(key)
        if found is not None and isinstance(key, tuple) and key[-1] == "rows":
            self.times -= 1
            if self.times <= 0:
                forget_numberings(self)
        return found


@pytest.fixture(autouse=True)
def _carry_over_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lineage, "_LARGEST_SHARE", 0)


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    found = omnigraph.init(str(tmp_path / "graph"), SCHEMA)
    found.ingest([{"key": f"k{i}", "n": i} for i in range(12)], type="Doc")
    edges = [{"from": f"k{i}", "to": f"k{(i + step) % 12}"} for i in range(12) for step in (1, 5)]
    found.ingest(edges, type="Cites")
    return found


def head(graph: Graph) -> Snapshot:
    return resolve(GraphRoot.at(graph.uri), Target(branch=graph.branch_name))


def forget_numberings(cache: AnyCache) -> None:
    for key in list(cache._entries):
        if isinstance(key, tuple) and key[-1] == "rows":
            cache._drop(key)


def with_hole(graph: Graph, engine: EmbeddedEngine) -> Snapshot:
    """A state whose numbers continue those of the state before it, with a hole."""
    for question in QUESTIONS:
        ask(engine, head(graph), question)
    graph.mutate('query q() { delete Doc where key = "k3" }')
    return head(graph)


@pytest.mark.parametrize("question", QUESTIONS)
def test_18_12_arrays_are_not_used_with_another_numbering(graph: Graph, question: str) -> None:
    engine = EmbeddedEngine()
    state = with_hole(graph, engine)
    expected = ask(EmbeddedEngine(), state, question)
    assert ask(engine, state, question) == expected
    forget_numberings(engine.cache)
    assert ask(engine, state, question) == expected


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("times", range(1, 8))
def test_18_12_a_query_sees_one_numbering(graph: Graph, question: str, times: int) -> None:
    engine = EmbeddedEngine()
    engine.cache = cache = _Forgetful()
    state = with_hole(graph, engine)
    expected = ask(EmbeddedEngine(), state, question)
    ask(engine, state, question)
    cache.times = times
    assert ask(engine, state, question) == expected
    assert ask(engine, state, question) == expected


def test_18_12_the_next_version_continues_the_numbering_that_is_there(graph: Graph) -> None:
    engine = EmbeddedEngine()
    for question in QUESTIONS:
        ask(engine, with_hole(graph, engine), question)
    forget_numberings(engine.cache)
    ask(engine, head(graph), ALL)  # numbers the rows again, without the hole
    graph.mutate('query q() { insert Doc { key: "k0a", n: 40 } }')
    for question in QUESTIONS:
        expected = ask(EmbeddedEngine(), head(graph), question)
        assert ask(engine, head(graph), question) == expected


def test_18_12_only_numbers_from_nothing_are_kept_on_disk(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved: list[str] = []

    def save(root: GraphRoot, name: str, array: Any) -> None:
        saved.append(name)
        save_array(root, name, array)

    engine = EmbeddedEngine()
    state = with_hole(graph, engine)
    monkeypatch.setattr(adjacency_store, "_LEAST_EDGES", 0)
    monkeypatch.setattr(Bounds, "beside", at_once)
    monkeypatch.setattr(adjacency_store, "save_array", save)
    expected = ask(EmbeddedEngine(), state, PAIRS)
    assert saved, "numbered from nothing"
    saved.clear()
    # These numbers have a hole. What the disk has is in others, and neither replaces the other.
    assert ask(engine, state, PAIRS) == expected
    assert saved == []
    forget_numberings(engine.cache)
    assert ask(engine, state, PAIRS) == expected
