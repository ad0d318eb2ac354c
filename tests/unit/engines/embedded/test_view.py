"""What a write sees: lookups, passes over columns and files must all tell the same."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from tests.support.writegraphs import another, new_graph

from omnigraph.engines.embedded import lookupcache, view
from omnigraph.engines.embedded.lookupcache import Lookups
from omnigraph.engines.embedded.view import View
from omnigraph.graph import Graph
from omnigraph.operations.requests import Optimize
from omnigraph.operations.verbs import run
from omnigraph.rows.checks import check_rows
from omnigraph.rows.deltas import TableDelta, removal
from omnigraph.rows.findings import Findings, Origin
from omnigraph.rows.identities import identify
from omnigraph.storage.root import GraphRoot

SCHEMA = """
node Thing {
    name: String @key
    size: F64?
    day: Date?
    rank: I32?
    note: String?
}
edge Near: Thing -> Thing
"""


@pytest.fixture
def graph(tmp_path) -> Graph:
    return new_graph(tmp_path, SCHEMA)


def things(numbers, chance: random.Random) -> list[dict]:
    return [
        {
            "name": f"t{n}",
            "size": chance.choice([None, 0.0, -0.0, 1.5, 2.0]),
            "day": chance.choice([None, "2024-01-31", "1960-02-01"]),
            "rank": chance.choice([None, -1, 0, 7]),
            "note": chance.choice([None, "", 'a"b', "x"]),
        }
        for n in numbers
    ]


def shaped(graph: Graph, rows: list[dict]) -> pa.Table:
    table = graph.snapshot().catalog.nodes[0]
    findings = Findings()
    data = pa.Table.from_pylist(rows)
    found = identify(table, check_rows(table, data, Origin(), findings), Origin(), findings)
    findings.raise_if_any()
    return found


COLUMNS = [("id",), ("size",), ("day", "rank"), ("note",), ("note", "size")]


def answers(seen: View, graph: Graph, asked: pa.Table) -> dict:
    table = graph.snapshot().catalog.nodes[0]
    found: dict = {"rows": sorted(map(str, seen.select(table).to_pylist()))}
    for columns in COLUMNS:
        keys = lookupcache.spelled(asked, columns)
        _, first = np.unique(np.array(keys.fill_null("∅").to_pylist()), return_index=True)
        distinct = asked.take(pa.array(np.sort(first)))
        places, ids = seen.holders(table, columns, distinct)
        spelled = lookupcache.spelled(distinct, columns)
        found[columns] = sorted(
            (spelled[int(place)].as_py(), id_)
            for place, id_ in zip(places, ids.to_pylist(), strict=True)
        )
    found["existing"] = seen.existing(table, asked.column("id").combine_chunks()).tolist()
    return found


def through(way: str, monkeypatch) -> None:
    """Ask through lookups, through filtered reads, or through passes over whole columns."""
    monkeypatch.setattr(lookupcache, "_SMALL", 50_000 if way == "lookup" else -1)
    monkeypatch.setattr(lookupcache, "_PATIENCE", 10**9)
    monkeypatch.setattr(view, "_MANY", 0 if way == "pass" else 20_000)


@pytest.mark.parametrize("over", [False, True])
def test_every_way_of_asking_gives_the_same(graph, monkeypatch, over):
    chance = random.Random(5)
    graph.ingest(things(range(40), chance), type="Thing")
    asked = shaped(graph, things([*range(0, 60, 3), 5, 5], chance))
    delta = {}
    if over:
        table = graph.snapshot().catalog.nodes[0]
        rows = shaped(graph, things(range(35, 45), chance))
        delta = {table.id: TableDelta(table, rows, removal(table, ["t1", "t2", "zz"]).removed)}
    found = {}
    for way in ("lookup", "probe", "pass"):
        through(way, monkeypatch)
        seen = View(GraphRoot.at(graph.uri), graph.snapshot(), delta, lookups=Lookups())
        found[way] = answers(seen, graph, asked)
    assert found["lookup"] == found["probe"] == found["pass"]
    assert len(found["lookup"]["id",]) > 5
    assert len(found["lookup"]["day", "rank"]) > 2


def test_lookups_follow_what_others_did(graph, monkeypatch):
    """Inserts, updates, deletes, folds, maintenance and a branch's own line."""
    chance = random.Random(6)
    held = Lookups()
    graph.ingest(things(range(20), chance), type="Thing")
    asked = shaped(graph, things(range(0, 80, 2), chance))
    where: Graph = graph

    def compare() -> None:
        root = GraphRoot.at(where.uri)
        carried = answers(View(root, where.snapshot(), lookups=held), where, asked)
        fresh = answers(View(root, where.snapshot(), lookups=Lookups()), where, asked)
        assert carried == fresh

    compare()
    for step in range(40):
        other = another(graph).on(where.branch_name)
        if step == 12:
            where = graph.create_branch("side")
            other = where
        if step % 10 == 9:
            run(other._context, Optimize())
        elif step % 5 == 4:
            other.mutate(f'query q() {{ delete Thing where name = "t{chance.randrange(60)}" }}')
        elif step % 17 == 16:
            other.ingest(things(range(30), chance), "overwrite", type="Thing", types=["Near"])
        else:
            some = [chance.randrange(60) for _ in range(3)]
            other.ingest(things(some, chance), "merge", type="Thing")
        compare()


def test_an_old_state_is_told_as_it_was(graph):
    chance = random.Random(7)
    graph.ingest(things(range(10), chance), type="Thing")
    old = graph.snapshot()
    graph.ingest(things(range(10, 20), chance), type="Thing")
    root, held = GraphRoot.at(graph.uri), Lookups()
    table = old.catalog.nodes[0]
    ids = pa.array(["t1", "t15"])
    assert View(root, graph.snapshot(), lookups=held).existing(table, ids).tolist() == [True, True]
    assert View(root, old, lookups=held).existing(table, ids).tolist() == [True, False]
    assert View(root, graph.snapshot(), lookups=held).existing(table, ids).tolist() == [True, True]


def test_lookups_keep_within_their_budget(graph):
    graph.ingest(things(range(300), random.Random(8)), type="Thing")
    held = Lookups(budget_bytes=20_000)
    seen = View(GraphRoot.at(graph.uri), graph.snapshot(), lookups=held)
    answers(seen, graph, shaped(graph, things([1, 2], random.Random(9))))
    assert 0 < held._held.held_bytes <= 20_000


def test_what_was_asked_is_remembered(graph):
    graph.ingest(things([1], random.Random(1)), type="Thing")
    snapshot = graph.snapshot()
    thing, near = snapshot.catalog.nodes[0], snapshot.catalog.edges[0]
    seen = View(GraphRoot.at(graph.uri), snapshot)
    seen.existing(near, pa.array(["x"]))
    later = seen.with_delta({near.id: removal(near, ["x"])})
    later.existing(thing, pa.array(["t1"]))
    assert seen.reads == {thing.id, near.id}
    assert seen.again().reads == set()
