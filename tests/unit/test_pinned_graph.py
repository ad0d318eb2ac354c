"""`graph.at(...)`: one state, which nothing changes."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import (
    CommitNotFoundError,
    DeniedError,
    InvalidArgumentError,
    TagNotFoundError,
)
from omnigraph.graph import Graph

SCHEMA = "node Person { name: String @key  photo: Blob? }"
READ = "query q() { match { $p: Person } return { $p.name } order { $p.name } }"


def insert(graph: Graph, name: str) -> str:
    done = graph.mutate("query q($n: String) { insert Person { name: $n } }", params={"n": name})
    return str(done.commit_id)


def names(graph: Graph) -> list[str]:
    return [row["p.name"] for row in graph.query(READ).rows()]


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = omnigraph.init(tmp_path / "g", SCHEMA)
    insert(graph, "ada")
    graph.create_tag("v1")
    return graph


def test_20_06_each_way_to_name_a_state(graph: Graph) -> None:
    first = graph.snapshot().commit_id
    then = datetime.now(UTC)
    head = graph.at(branch="main")
    insert(graph, "bob")
    pinned = [
        head,
        graph.at(commit=first),
        graph.at(commit=first[:20]),
        graph.at(version=2),
        graph.at(time=then),
        graph.at(tag="v1"),
    ]
    for each in pinned:
        assert names(each) == ["ada"]
        assert each.snapshot().commit_id == first
        assert first in repr(each)
    assert names(graph) == ["ada", "bob"]


def test_20_06_a_pinned_state_stays_when_its_tag_goes(graph: Graph) -> None:
    pinned = graph.at(tag="v1")
    insert(graph, "bob")
    graph.delete_tag("v1")
    graph.create_tag("v1")
    assert names(pinned) == ["ada"]
    assert names(graph.at(tag="v1")) == ["ada", "bob"]


def test_20_06_a_pinned_schema_is_the_old_one(graph: Graph) -> None:
    pinned = graph.at()
    graph.apply_schema(SCHEMA + "\nnode Pet { name: String @key }")
    assert "Pet" not in pinned.schema()
    assert b"".join(pinned.export_lines()) == b"".join(graph.export_lines())
    run = pinned.prepare(READ)
    insert(graph, "bob")
    assert run().rows() == [{"p.name": "ada"}]


def test_20_06_a_pinned_graph_is_not_written(graph: Graph) -> None:
    insert(graph, "bob")
    pinned = graph.at(tag="v1")
    head = graph.snapshot().commit_id
    with pytest.raises(DeniedError, match="pinned") as refused:
        insert(pinned, "eve")
    assert "graph.on" in str(refused.value.hint)
    for write in (
        lambda: pinned.ingest([{"name": "eve"}], type="Person"),
        lambda: pinned.apply_schema(SCHEMA),
        lambda: pinned.merge("main"),
        lambda: pinned.optimize(),
        lambda: pinned.delete_tag("v1"),
        lambda: pinned.branch().__enter__(),
    ):
        with pytest.raises(DeniedError):
            write()
    assert graph.snapshot().commit_id == head
    insert(pinned.on("main"), "eve")
    assert names(graph) == ["ada", "bob", "eve"]


def test_20_06_branches_and_tags_begin_at_the_pinned_state(graph: Graph) -> None:
    insert(graph, "bob")
    pinned = graph.at(tag="v1")
    made = pinned.create_branch("fix")
    assert names(made) == ["ada"]
    insert(made, "eve")
    pinned.create_tag("again")
    assert names(graph.at(tag="again")) == ["ada"]
    with pinned.branch("scratch", merge=False) as inner:
        insert(inner, "zoe")
        assert names(inner) == ["ada", "zoe"]
    assert [info.branch.name for info in graph.branches()] == ["main", "fix"]


def test_20_06_a_read_only_graph_creates_nothing_at_a_pinned_state(graph: Graph) -> None:
    pinned = omnigraph.open(graph.uri, read_only=True).at(tag="v1")
    assert names(pinned) == ["ada"]
    with pytest.raises(DeniedError, match="read-only"):
        pinned.create_branch("fix")


def test_20_06_what_cannot_be_pinned(graph: Graph) -> None:
    with pytest.raises(InvalidArgumentError, match="several"):
        graph.at(version=1, tag="v1")
    with pytest.raises(TagNotFoundError):
        graph.at(tag="no-such-tag")
    with pytest.raises(CommitNotFoundError):
        graph.at(commit="01JZZZZZZZZZZZZZZZZZZZZZZZ")
    with pytest.raises(InvalidArgumentError, match="pinned"):
        graph.at(tag="v1").query(READ, version=1)


def test_20_06_pinned_for_asyncio(graph: Graph) -> None:
    async def read() -> list[dict[str, object]]:
        opened = await omnigraph.aio.open(graph.uri)
        pinned = await opened.at(tag="v1")
        return (await pinned.query(READ)).rows()

    insert(graph, "bob")
    assert asyncio.run(read()) == [{"p.name": "ada"}]
