"""Writes, by every way into a graph: the rows, counts and errors that the case files give.

A case is data (`writes/`): steps, of which the last is the one in question, and what it does.
`rows` are the rows afterwards of the types that change; all other types stay as they were, and so
does everything after an `error`. The cases of data run on Spark in
`tests/spark/test_writecases.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support import casesteps
from tests.support.casesteps import Case, Way

from omnigraph.errors import OmniGraphError

FIELDS = frozenset({"steps", "rows", "affected", "error", "unchanged"})
CASES = casesteps.read_cases("writes", FIELDS)
WAYS: dict[str, Way] = {
    "ingest": casesteps.by_ingest,
    "records": casesteps.by_records,
    "embedded load": casesteps.by_embedded_load,
    "load": casesteps.by_load,
}


def is_of_data(case: Case) -> bool:
    last = case.content["steps"][-1]
    return "data" in last or "text" in last


def ways_of(case: Case) -> list[str]:
    """The ways that differ for the last step of a case."""
    if not is_of_data(case):
        return ["ingest"]
    return [name for name in WAYS if name != "records" or "data" in case.content["steps"][-1]]


def check(case: Case, way: Way, folder: Path) -> None:
    graph = casesteps.new_graph(case.graph, folder)
    *before, last = case.content["steps"]
    for step in before:
        casesteps.carry_out(graph, step, casesteps.by_ingest, folder)
    was = casesteps.state(graph)
    head = graph.snapshot().commit_id
    expected = was | casesteps.ordered(case.content.get("rows", {}))
    if "error" in case.content:
        with pytest.raises(OmniGraphError) as caught:
            casesteps.carry_out(graph, last, way, folder)
        assert casesteps.failure(caught.value) == case.content["error"]
    else:
        result = casesteps.carry_out(graph, last, way, folder)
        assert result is not None
        assert casesteps.affected(result) == case.content.get("affected", {})
        assert result.changed == (not case.content.get("unchanged", False))
    gone = {name for name, rows in case.content.get("rows", {}).items() if not rows}
    left = {name: rows for name, rows in expected.items() if name not in gone}
    assert casesteps.state(graph) == left
    is_same = "error" in case.content or case.content.get("unchanged", False)
    assert (graph.snapshot().commit_id == head) == is_same


RUNS = [(case, way) for case in CASES for way in ways_of(case)]


# ledger: C03, C04, C06, C08, C09, T01, T04, T05
@pytest.mark.parametrize(("case", "way"), RUNS, ids=[f"{case}, {way}" for case, way in RUNS])
def test_a_write(case: Case, way: str, tmp_path: Path) -> None:
    check(case, WAYS[way], tmp_path)


def test_case_names_are_unique() -> None:
    names = [case.name for case in CASES]
    assert sorted(set(names)) == sorted(names)


def test_every_case_has_an_outcome() -> None:
    for case in CASES:
        outcomes = {"affected", "error", "unchanged"} & set(case.content)
        assert len(outcomes) == 1, case.name
