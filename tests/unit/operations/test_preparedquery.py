"""Prepared queries: what is skipped, and what makes the plan anew."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph import aio
from omnigraph.errors import InvalidArgumentError, QueryError
from omnigraph.lang import gq
from omnigraph.lang.gq import compile as compiler
from omnigraph.plan import planner

SCHEMA = "node Person { name: String @key age: I32? }\nedge Knows: Person -> Person\n"
BY_NAME = "query q($n: String) { match { $p: Person { name: $n } } return { $p.name as n } }"
INSERT = "query add($n: String) { insert Person { name: $n } }"


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    made = og.init(str(tmp_path / "g"), SCHEMA)
    made.mutate(INSERT, params={"n": "Ada"})
    return made


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every parse, compile or plan of a read query, and every lookup of one that was kept."""
    made: list[str] = []
    for module, name in (
        (compiler, "_compile"),
        (planner, "plan_query"),
        (gq, "compile_query"),
        (planner.Planner, "plan"),
    ):
        original = getattr(module, name)

        def counted(*args: Any, _name: str = name, _original: Any = original, **kw: Any) -> Any:
            made.append(_name)
            return _original(*args, **kw)

        monkeypatch.setattr(module, name, counted)
    return made


def test_20_06_repeated_calls_neither_compile_nor_plan(graph: og.Graph, calls: list[str]) -> None:
    prepared = graph.prepare(BY_NAME)
    assert sorted(calls) == ["_compile", "compile_query", "plan", "plan_query"]
    calls.clear()
    assert [prepared({"n": n}).rows() for n in ("Ada", "Bo", "Ada")] == [
        [{"n": "Ada"}],
        [],
        [{"n": "Ada"}],
    ]
    assert calls == []


def test_20_06_calls_read_what_was_written_since(graph: og.Graph) -> None:
    prepared = graph.prepare(BY_NAME)
    assert prepared({"n": "Bo"}).rows() == []
    graph.mutate(INSERT, params={"n": "Bo"})
    assert prepared({"n": "Bo"}).rows() == [{"n": "Bo"}]


def test_20_06_a_schema_change_plans_again(graph: og.Graph, calls: list[str]) -> None:
    prepared = graph.prepare(BY_NAME)
    calls.clear()
    graph.apply_schema(SCHEMA.replace("age: I32?", "age: I32? city: String?"))
    assert prepared({"n": "Ada"}).rows() == [{"n": "Ada"}]
    assert "_compile" in calls
    assert "plan_query" in calls
    calls.clear()
    prepared({"n": "Ada"}).rows()
    assert calls == []


def test_20_06_a_schema_without_the_property_is_an_error(graph: og.Graph) -> None:
    prepared = graph.prepare("query q() { match { $p: Person } return { $p.age } }")
    prepared().rows()
    graph.apply_schema(SCHEMA.replace(" age: I32?", ""), allow_data_loss=True)
    with pytest.raises(QueryError):
        prepared()


def test_20_06_growth_plans_again(graph: og.Graph, calls: list[str]) -> None:
    prepared = graph.prepare(BY_NAME)
    rows = "".join(f'{{"type":"Person","data":{{"name":"p{i}"}}}}\n' for i in range(1000))
    graph.ingest(rows)
    calls.clear()
    prepared({"n": "p7"}).rows()
    assert "plan_query" in calls


def test_20_06_each_branch_has_its_own(graph: og.Graph) -> None:
    graph.create_branch("dev")
    here, there = graph.prepare(BY_NAME), graph.on("dev").prepare(BY_NAME)
    graph.on("dev").mutate(INSERT, params={"n": "Bo"})
    assert [len(here({"n": "Bo"})), len(there({"n": "Bo"}))] == [0, 1]


def test_20_06_preparing_reports_mistakes_at_once(graph: og.Graph) -> None:
    with pytest.raises(QueryError):
        graph.prepare("query q() { match { $p: Nobody } return { $p.name } }")
    with pytest.raises(InvalidArgumentError, match="changes the graph"):
        graph.prepare(INSERT)
    with pytest.raises(InvalidArgumentError):
        graph.prepare(BY_NAME)({"n": "Ada"}, options="fast")  # type: ignore[arg-type]


def test_20_06_prepared_with_asyncio(graph: og.Graph) -> None:
    async def ask() -> list[dict[str, object]]:
        prepared = await aio.AsyncGraph(graph).prepare(BY_NAME)
        result = await prepared({"n": "Ada"})
        return result.rows()

    assert asyncio.run(ask()) == [{"n": "Ada"}]
