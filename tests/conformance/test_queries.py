"""Every construct of the query language, on every engine: the rows that the case files give.

A case is data: a graph (`graphs/`), a query, parameters and rows (`cases/`), the rows as JSON shows
them, in order. An engine joins by a name in `ENGINES`; what it cannot do yet it names in
`NOT_YET`, as an expected failure. The spark engine runs all of them where its session is
(`tests/spark/test_queries.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.edgefilters import with_edge_filters
from tests.support.querygraphs import PLAIN, SHAPES, Shape, typed_data, write_graph
from tests.support.resultequality import assert_same_rows

from omnigraph.engines.base import Engine
from omnigraph.engines.embedded import EmbeddedEngine
from omnigraph.ir.query import ReadQuery
from omnigraph.lang import gq
from omnigraph.lang.pg import compile_schema
from omnigraph.model.result import Result, plain_value
from omnigraph.model.snapshot import Snapshot
from omnigraph.plan.planner import plan_query

HERE = Path(__file__).parent
ENGINES: dict[str, Callable[[], Engine]] = {"embedded": EmbeddedEngine}
NOT_YET: dict[str, frozenset[str]] = {}


@dataclass(frozen=True)
class Case:
    name: str
    graph: str
    query: str
    rows: list[dict[str, Any]]
    params: dict[str, Any] = field(default_factory=dict)
    edges: dict[str, str] = field(default_factory=dict)  # by edge type: a filter on `$e`

    def __str__(self) -> str:
        return self.name


def read_cases() -> list[Case]:
    found: list[Case] = []
    for path in sorted((HERE / "cases").glob("*.yaml")):
        content = yaml.safe_load(path.read_text())
        for case in content["cases"]:
            found.append(Case(graph=content["graph"], **case))
    return found


CASES = read_cases()


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Shape], Snapshot]:
    """Graphs by name and shape, each written once."""

    @cache
    def make(name: str, shape: Shape) -> Snapshot:
        content = yaml.safe_load((HERE / "graphs" / f"{name}.yaml").read_text())
        catalog = compile_schema(content["schema"])
        data = typed_data(catalog, content["data"])
        return write_graph(tmp_path_factory.mktemp(name), catalog, data, shape)

    return make


@pytest.fixture(scope="module")
def engines() -> Callable[[str], Engine]:
    return cache(lambda name: ENGINES[name]())


def ask(engine: Engine, snapshot: Snapshot, case: Case) -> Result:
    query = gq.compile_query(case.query, snapshot.catalog).query
    assert isinstance(query, ReadQuery)
    query = with_edge_filters(query, snapshot.catalog, case.edges)
    plan = plan_query(query, snapshot.catalog, engine.statistics(snapshot))
    return engine.run(plan, snapshot, gq.bind_params(query, case.params))


def shown(result: Result) -> list[dict[str, Any]]:
    return [{name: plain_value(value) for name, value in row.items()} for row in result.rows()]


# ledger: Q01, Q02, Q06, Q07, I03
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_rows(
    engine: str,
    case: Case,
    snapshots: Callable[[str, Shape], Snapshot],
    engines: Callable[[str], Engine],
    request: pytest.FixtureRequest,
) -> None:
    if case.name in NOT_YET.get(engine, frozenset()):
        request.applymarker(pytest.mark.xfail(reason=f"{engine} cannot do this yet"))
    found = shown(ask(engines(engine), snapshots(case.graph, PLAIN), case))
    assert_same_rows(found, case.rows, case.query)


# ledger: I01, I02
@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("shape", SHAPES[1:], ids=str)
def test_rows_do_not_depend_on_how_they_are_stored(
    engine: str,
    shape: Shape,
    snapshots: Callable[[str, Shape], Snapshot],
    engines: Callable[[str], Engine],
) -> None:
    for case in CASES:
        found = shown(ask(engines(engine), snapshots(case.graph, shape), case))
        assert_same_rows(found, case.rows, f"{shape}: {case.query}")


def test_case_names_are_unique() -> None:
    names = [case.name for case in CASES]
    assert sorted(set(names)) == sorted(names)
