"""Maintenance in other processes: tasks and answers that travel, and the same outcome."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.errors import InvalidArgumentError
from omnigraph.graph import Graph
from omnigraph.operations import maintain

SCHEMA = """
node Doc {
    slug: String @key
    body: String @index
    size: I64 @index
}
"""


def filled(place: Path) -> Graph:
    graph = omnigraph.init(str(place), SCHEMA)
    for number in range(6):
        graph.ingest(
            [{"slug": f"d{number}-{n}", "body": f"word{n} common", "size": n} for n in range(50)],
            type="Doc",
        )
    graph.mutate("query q() { delete Doc where size = 3 }")
    return graph


def found(graph: Graph) -> list[Any]:
    asked = (
        'query q() { match { $d: Doc search($d.body, "word7") } return { $d.slug, $d.size } }',
        "query q() { match { $d: Doc $d.size = 9 } return { $d.slug } }",
        "query q() { match { $d: Doc } return { count($d) as n } }",
    )
    return [sorted(map(repr, graph.query(text).rows())) for text in asked]


def test_tasks_travel_and_the_outcome_is_the_same(tmp_path: Path) -> None:
    said: list[str] = []

    def spread(function: Callable[[Any], Any], items: Sequence[Any], what: str) -> list[Any]:
        said.append(f"{len(items)} {what}")
        sent = [pickle.loads(pickle.dumps((function, item))) for item in items]
        return [pickle.loads(pickle.dumps(run(item))) for run, item in sent]

    here, there = filled(tmp_path / "here"), filled(tmp_path / "there")
    expected = found(here)
    done = here.optimize()
    spread_done = maintain.optimize(there._context, spread=spread)
    assert [table.to_dict() for table in spread_done.tables] == [
        table.to_dict() for table in done.tables
    ]
    assert any("rewrite files" in text for text in said)
    assert any("build indexes" in text for text in said)
    assert found(here) == found(there) == expected
    assert maintain.optimize(there._context, spread=spread).is_empty
    assert there.verify().is_clean


def test_an_engine_that_is_none_is_refused(tmp_path: Path) -> None:
    graph = omnigraph.init(str(tmp_path / "g"), SCHEMA)
    with pytest.raises(InvalidArgumentError, match="no engine 'steam'"):
        graph.optimize(engine="steam")
    with pytest.raises(InvalidArgumentError, match="in memory"):
        omnigraph.init("memory://spreading", SCHEMA).ensure_indices(engine="spark")
