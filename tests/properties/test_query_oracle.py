"""Random graphs and random queries: the engine gives what nested loops over dicts give.

The same rows lie in storage in several shapes (files, rewritten and deleted rows, compacted,
indexed), and the engine holds everything, nothing, or asks indexes wherever it can; neither may be
seen in a result. Plans that only few rules have touched must give the same rows, too.
"""

from __future__ import annotations

import random
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.support.edgefilters import with_edge_filters
from tests.support.oracle import TooManyRowsError, answer
from tests.support.querygraphs import SHAPES, write_graph
from tests.support.questions import (
    SCHEMA,
    Rows,
    edge_filters,
    random_data,
    random_params,
    random_query,
)
from tests.support.resultequality import assert_same_rows
from tests.support.textwalks import from_text

from omnigraph.engines.embedded import (
    EmbeddedEngine,
    expansion,
    firstpage,
    joins,
    neighbours,
    partial,
    scans,
)
from omnigraph.errors import QueryError
from omnigraph.ir.query import ReadQuery
from omnigraph.lang import gq
from omnigraph.lang.pg import compile_schema
from omnigraph.model.catalog import Catalog
from omnigraph.plan.planner import plan_query
from omnigraph.plan.rules import RULES
from omnigraph.plan.rules.order_joins import order_joins
from omnigraph.plan.statistics import Statistics, declared_indexes

QUERIES_PER_GRAPH = 40
FAST = 5
SLOW = 120  # with those above, 5,000 questions
MOST_ROWS = 1_500
ENGINES = ("warm", "without memory", "by index", "in parts")


@pytest.fixture
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> EmbeddedEngine:
    if request.param == "by index":
        access = import_module("omnigraph.plan.rules.choose_access")
        monkeypatch.setattr(scans, "_SMALL_TABLE", -1)
        monkeypatch.setattr(neighbours, "_EDGES_PER_PROBE", 0)
        monkeypatch.setattr(neighbours, "_EDGES_PER_NODE", 0)
        monkeypatch.setattr(access, "_SELECTIVE", 1.0)
        monkeypatch.setattr(access, "_EDGES_PER_PROBE", 0.0)
        monkeypatch.setattr(access, "_SMALL_TABLE", 0)
    if request.param == "in parts":
        monkeypatch.setattr(expansion, "_ROWS_AT_ONCE", 3)
        monkeypatch.setattr(expansion, "_FIRST_WALKS", 2)
        monkeypatch.setattr(joins, "_PAIRS_AT_ONCE", 3)
        monkeypatch.setattr(joins, "_CHUNK", 2)
        monkeypatch.setattr(partial, "_TIDY_ROWS", 4)
        monkeypatch.setattr(firstpage, "LONG_RESULT", 0.0)
        monkeypatch.setattr(firstpage, "_ROWS_AT_ONCE", 3)
        monkeypatch.setattr(import_module("omnigraph.plan.rules.order_joins"), "LONG_RESULT", 0.0)
        monkeypatch.setattr(firstpage, "_FIRST_STARTS", 1)
        monkeypatch.setattr(firstpage, "_GROWTH", 2)
    small = request.param in ("without memory", "by index")
    return EmbeddedEngine(cache_bytes=0 if small else None)


def _cases(first: int, count: int) -> list[tuple[int, str]]:
    return [(n, ENGINES[n % len(ENGINES)]) for n in range(first, first + count)]


# ledger: Q02, Q05, I02
@pytest.mark.parametrize(("number", "engine"), _cases(0, FAST), indirect=["engine"])
def test_engine_agrees_with_nested_loops(
    number: int, engine: EmbeddedEngine, tmp_path: Path
) -> None:
    check_graph(number, engine, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "engine"), _cases(FAST, SLOW), indirect=["engine"])
def test_engine_agrees_with_nested_loops_at_length(
    number: int, engine: EmbeddedEngine, tmp_path: Path
) -> None:
    check_graph(number, engine, tmp_path)


def check_graph(number: int, engine: EmbeddedEngine, tmp_path: Path) -> None:
    rng = random.Random(number)
    data = random_data(rng)
    catalog = compile_schema(SCHEMA)
    snapshot = write_graph(tmp_path / "graph", catalog, data, rng.choice(SHAPES))
    statistics = engine.statistics(snapshot)
    if ENGINES[number % len(ENGINES)] == "by index":
        # Plans may suggest an index that is not there; the rows stay the same.
        statistics = Statistics(statistics.nodes, statistics.edges, declared_indexes(catalog))
    for place in range(QUERIES_PER_GRAPH):
        text, query, params, expected = _question(rng, catalog, data)
        rules = RULES if place % 5 else (order_joins,)
        plan = plan_query(query, catalog, statistics, rules)
        found = engine.run(plan, snapshot, params).rows()
        assert_same_rows(found, expected, f"graph {number}, query {place}:\n{text}\n{params}")


def _question(
    rng: random.Random, catalog: Catalog, data: dict[str, Rows]
) -> tuple[str, ReadQuery, dict[str, Any], Rows]:
    """A query that means something, and its rows; none with more than nested loops can bear."""
    while True:
        text, params = random_query(rng), random_params(rng)
        try:
            query = gq.compile_query(text, catalog).query
            assert isinstance(query, ReadQuery)
            filters = edge_filters(text)
            walked = with_edge_filters(from_text(query, text, catalog), catalog, filters)
            query = with_edge_filters(query, catalog, filters)
            rows = answer(walked, catalog, data, params, MOST_ROWS)
            return f"{text}\nedges: {filters}", query, params, rows
        except (QueryError, TooManyRowsError):
            continue
