"""Maintenance in other processes: tasks and answers that travel, and the same outcome."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.support import schemachanges

import omnigraph
from omnigraph.errors import InvalidArgumentError
from omnigraph.graph import Graph
from omnigraph.operations import maintain, migrate
from omnigraph.operations.requests import Optimize
from omnigraph.operations.verbs import run
from omnigraph.storage import backfill
from omnigraph.storage.maintenancetasks import Spread
from omnigraph.storage.table import open_table

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


@pytest.fixture
def said() -> list[str]:
    """What was handed out."""
    return []


@pytest.fixture
def spread(said: list[str]) -> Spread:
    """As executors would run tasks: nothing but what can be sent reaches them."""

    def run_all(function: Callable[[Any], Any], items: Sequence[Any], what: str) -> list[Any]:
        said.append(f"{len(items)} {what}")
        sent = [pickle.loads(pickle.dumps((function, item))) for item in items]
        return [pickle.loads(pickle.dumps(run(item))) for run, item in sent]

    return run_all


def test_tasks_travel_and_the_outcome_is_the_same(
    tmp_path: Path, spread: Spread, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = filled(tmp_path / "here"), filled(tmp_path / "there")
    expected = found(here)
    done = here.optimize()
    monkeypatch.setattr(maintain, "spread_by", lambda *_: spread)
    spread_done = run(there._context, Optimize())
    assert [table.to_dict() for table in spread_done.tables] == [
        table.to_dict() for table in done.tables
    ]
    assert any("rewrite files" in text for text in said)
    assert any("build indexes" in text for text in said)
    assert found(here) == found(there) == expected
    assert run(there._context, Optimize()).is_empty
    assert there.verify().is_clean


# ledger: T02
def test_rows_are_reshaped_elsewhere(
    tmp_path: Path, spread: Spread, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Widened, filled and without what goes for good, in several files, on a branch of its own."""
    monkeypatch.setattr(backfill, "ROWS_PER_FILE", 2)
    names = ("several at once", "widen a float", "drop a property for good")
    graph = schemachanges.new_graph(str(tmp_path / "g"))
    graph.ingest([{"type": "City", "data": {"id": f"d{n}", "title": "x"}} for n in range(30)])
    graph.mutate('query q() { delete City where title = "city 1" }')
    for name in names:
        change = schemachanges.CHANGES[name]
        branches = [f"{place}-{names.index(name)}" for place in ("here", "there")]
        for branch in branches:
            graph.create_branch(branch)
            hands = spread if branch.startswith("there") else None
            monkeypatch.setattr(migrate, "spread_for", lambda *asked, by=hands: asked[-1] and by)
            graph.on(branch).apply_schema(change.schema, allow_data_loss=change.allow_data_loss)
        here, there = (graph.on(branch) for branch in branches)
        assert schemachanges.content(there) == schemachanges.content(here), name
        assert ordered(there) == ordered(here), name
        there.ingest([{"type": "City", "data": {"id": "after", "title": "x"}}])
        assert there.verify().is_clean
    assert said == [
        "1 rewrite Human",
        "2 fill City",
        "1 rewrite Person",
        "1 rewrite Person",
    ]


def ordered(graph: Graph) -> list[list[str]]:
    """The ids of all tables as they lie there."""
    found = graph.snapshot()
    tables = [open_table(found.location, version) for version in found.tables.values()]
    return [table.read(["id"]).column(0).to_pylist() for table in tables]


def test_an_engine_that_is_none_is_refused(tmp_path: Path) -> None:
    graph = omnigraph.init(str(tmp_path / "g"), SCHEMA)
    with pytest.raises(InvalidArgumentError, match="no engine 'steam'"):
        graph.optimize(engine="steam")
    with pytest.raises(InvalidArgumentError, match="no engine 'steam'"):
        graph.apply_schema(SCHEMA, engine="steam")
    with pytest.raises(InvalidArgumentError, match="in memory"):
        omnigraph.init("memory://spreading", SCHEMA).ensure_indices(engine="spark")
