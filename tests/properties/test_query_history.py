"""Commit after commit, on main and on a branch: an engine that has seen earlier versions answers as
one that has seen nothing.

The warm engine carries numbering, ids and adjacency over from version to version; the cold one
builds everything from the snapshot alone.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from tests.support.questions import SCHEMA, random_data, random_params, random_query
from tests.support.resultequality import assert_same_rows

import omnigraph
from omnigraph.engines.embedded import EmbeddedEngine, lineage
from omnigraph.errors import OmniGraphError, QueryError
from omnigraph.graph import Graph
from omnigraph.history.resolve import Target, resolve
from omnigraph.ir.query import ReadQuery
from omnigraph.lang import gq
from omnigraph.model.snapshot import Snapshot
from omnigraph.plan.planner import plan_query
from omnigraph.storage.root import GraphRoot

FAST, SLOW = 3, 20
COMMITS = 8
QUERIES = 6
ALWAYS = (
    "query q() { match { $a: Person $a knows $b } return { $a.name as a, $b.name as b } }",
    "query q() { match { $a: Person $a <-knows{1,3} $b } return { $a.name as a, count($b) as n } }",
    "query q() { match { $a: Person $a $w:worksAt $c } return { $a.name, $c.name as c, $w.role } }",
    "query q() { match { $p: Person } return { $p } }",
)


@pytest.fixture(autouse=True)
def _carry_over_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small tables change by large shares; carry over all the same."""
    monkeypatch.setattr(lineage, "_LARGEST_SHARE", 0)


# ledger: Q05, B01
@pytest.mark.parametrize("seed", range(FAST))
def test_warm_engine_agrees_with_cold_one(seed: int, tmp_path: Path) -> None:
    check_history(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(FAST, FAST + SLOW))
def test_warm_engine_agrees_with_cold_one_at_length(seed: int, tmp_path: Path) -> None:
    check_history(seed, tmp_path)


def check_history(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    graph = omnigraph.init(str(tmp_path / "graph"), SCHEMA)
    for name, rows in random_data(rng).items():
        if rows:
            graph.ingest(rows, type=name)
    warm = EmbeddedEngine()
    branches = [graph]
    for number in range(COMMITS):
        here = rng.choice(branches)
        change(here, rng, number)
        compare(here, warm, rng)
        if number == COMMITS // 2:
            graph.create_branch("side")
            branches.append(graph.on("side"))


def compare(graph: Graph, warm: EmbeddedEngine, rng: random.Random) -> None:
    snapshot = resolve(GraphRoot.at(graph.uri), Target(branch=graph.branch_name))
    for text in (*ALWAYS, *(random_query(rng) for _ in range(QUERIES))):
        params = random_params(rng) if "$ids" in text else {}
        try:
            query = gq.compile_query(text, snapshot.catalog).query
        except QueryError:
            continue
        assert isinstance(query, ReadQuery)
        expected = run(EmbeddedEngine(), query, snapshot, params)
        found = run(warm, query, snapshot, params)
        assert_same_rows(found, expected, f"{graph.branch_name} at {snapshot.sequence}:\n{text}")


def run(
    engine: EmbeddedEngine, query: ReadQuery, snapshot: Snapshot, params: dict[str, Any]
) -> list[dict[str, Any]]:
    plan = plan_query(query, snapshot.catalog, engine.statistics(snapshot))
    return engine.run(plan, snapshot, params).rows()


def change(graph: Graph, rng: random.Random, number: int) -> None:
    """One random commit; one that the schema refuses changes nothing."""
    person, other = f"p{rng.randint(0, 9)}", f"p{rng.randint(0, 9)}"
    company = f"co{rng.randint(0, 3)}"
    statements = [
        f'insert Person {{ name: "n{number}", age: {rng.randint(0, 5)} }}',
        f'insert Knows {{ from: "{person}", to: "{other}", since: {rng.randint(1, 4)} }}',
        f'insert Knows {{ from: "{person}", to: "{person}" }}',
        f'insert WorksAt {{ from: "{person}", to: "{company}", role: "new" }}',
        f'update Person set {{ age: {rng.randint(0, 5)} }} where name = "{person}"',
        f'delete Person where name = "{person}"',
        f"delete Knows where since = {rng.randint(1, 4)}",
        f'delete Company where name = "{company}"',
    ]
    text = f"query change() {{ {rng.choice(statements)} }}"
    try:
        graph.mutate(text)
    except QueryError:
        raise
    except OmniGraphError:
        graph.mutate(f'query change() {{ insert City {{ name: "extra{number}" }} }}')
