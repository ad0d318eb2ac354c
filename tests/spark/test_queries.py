"""Queries on Spark: the rows of the embedded engine.

All conformance cases run over tables that the driver reads, as for any small graph. A choice of
them runs again as for a large one: tables read in tasks, several partitions, joins by exchange.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.conformance.test_queries import CASES, HERE, Case, ask, shown
from tests.support.oracle import answer
from tests.support.querygraphs import PLAIN, Shape, typed_data, write_graph
from tests.support.questions import SCHEMA, random_data, random_params, random_query
from tests.support.resultequality import assert_same_rows

from omnigraph.engines.spark.engine import SparkEngine
from omnigraph.engines.spark.queries import run, scans
from omnigraph.errors import QueryError
from omnigraph.ir.query import ReadQuery
from omnigraph.lang import gq
from omnigraph.lang.pg import compile_schema
from omnigraph.model.snapshot import Snapshot
from omnigraph.plan.planner import plan_query

Snapshots = Callable[[str, Shape], Snapshot]
# One of each construct that reads, joins, walks, groups or ranks.
AS_LARGE = (
    "count nodes",
    "groups by a node",
    "one optional inside another",
    "a negation over several hops",
    "the shortest way",
    "paths over bound edges count parallel ones",
    "three stages",
    "two vectors of one node",
    "fused rankings",
    "what does not match",
    "a filter on edges keeps distinct neighbours",
    "a walk over filtered edges",
)


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory: pytest.TempPathFactory) -> Snapshots:
    @cache
    def make(name: str, shape: Shape) -> Snapshot:
        content = yaml.safe_load((HERE / "graphs" / f"{name}.yaml").read_text())
        catalog = compile_schema(content["schema"])
        data = typed_data(catalog, content["data"])
        return write_graph(tmp_path_factory.mktemp(name), catalog, data, shape)

    return make


def check(cases: list[Case], snapshots: Snapshots, shape: Shape) -> None:
    engine = SparkEngine()
    for case in cases:
        found = shown(ask(engine, snapshots(case.graph, shape), case))
        assert_same_rows(found, case.rows, f"{case.name}\n{case.query}")


def test_20_02_filters_on_edges(spark: Any, snapshots: Snapshots) -> None:
    chosen = [case for case in CASES if case.edges]
    assert len(chosen) >= 10
    check(chosen, snapshots, PLAIN)


# ledger: Q01, Q02, Q06, Q07, I03
@pytest.mark.parametrize("part", range(8))
def test_rows(part: int, spark: Any, snapshots: Snapshots) -> None:
    check(CASES[part::8], snapshots, PLAIN)


def test_rows_of_large_graphs(
    spark: Any, snapshots: Snapshots, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scans, "_FEW_ROWS", -1)
    monkeypatch.setattr(run, "TINY_ROWS", -1)
    monkeypatch.setattr(run, "BROADCAST_ROWS", 3)
    chosen = [case for case in CASES if case.name in AS_LARGE]
    assert len(chosen) == len(AS_LARGE)
    check(chosen, snapshots, Shape(files=2, scarred=True))


@pytest.mark.parametrize("number", [3, 11])
def test_random_queries(number: int, spark: Any, tmp_path: Path) -> None:
    rng = random.Random(number)
    data, catalog = random_data(rng), compile_schema(SCHEMA)
    snapshot = write_graph(tmp_path / "graph", catalog, data)
    engine = SparkEngine()
    for _ in range(10):
        text, params = random_query(rng), random_params(rng)
        try:
            query = gq.compile_query(text, catalog).query
        except QueryError:
            continue
        assert isinstance(query, ReadQuery)
        plan = plan_query(query, catalog, engine.statistics(snapshot))
        found = engine.run(plan, snapshot, params).rows()
        assert_same_rows(
            found, answer(query, catalog, data, params, text=text), f"{text}\n{params}"
        )
