"""Merges, on every engine: the rows and conflicts that the case files give.

A case is data (`merges/`): steps of `theirs` on a branch and of `ours` on main since the branch was
created, options of the merge, and its outcome. `rows` are the rows afterwards of the types that
differ from ours; after `conflicts` or an `error` main is as it was. Spark runs all of them in
`tests/spark/test_mergecases.py`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support import casesteps
from tests.support.casesteps import Case

import omnigraph
from omnigraph.errors import OmniGraphError

FIELDS = frozenset(
    {"ours", "theirs", "merge", "resolutions", "outcome", "rows", "conflicts", "error", "schema"}
)
CASES = casesteps.read_cases("merges", FIELDS)
ENGINES = ("embedded",)
BRANCH = "review"


def merge(graph: omnigraph.Graph, case: Case, engine: str) -> str:
    """Merge as the case says; its outcome."""
    options: Mapping[str, Any] = case.content.get("merge", {})
    lines = [json.dumps(entry) for entry in case.content.get("resolutions", ())]
    decided = "".join(f"{line}\n" for line in lines) or None
    result = graph.merge(BRANCH, engine=engine, resolutions=decided, **options)
    return str(result.outcome)


def check(case: Case, engine: str, folder: Path) -> None:
    graph = casesteps.new_graph(case.graph, folder)
    theirs = graph.create_branch(BRANCH)
    for target, side in ((theirs, "theirs"), (graph, "ours")):
        for step in case.content.get(side, ()):
            casesteps.carry_out(target, step, casesteps.by_ingest, folder)
    ours_before, theirs_before = casesteps.state(graph), casesteps.state(theirs)
    if "outcome" in case.content:
        assert merge(graph, case, engine) == case.content["outcome"]
    else:
        expected = case.content.get("error") or {
            "code": "merge_conflict",
            "conflicts": case.content["conflicts"],
        }
        with pytest.raises(OmniGraphError) as caught:
            merge(graph, case, engine)
        assert casesteps.failure(caught.value) == expected
    changed = case.content.get("rows", {})
    kept = {name: rows for name, rows in ours_before.items() if name not in changed}
    assert casesteps.state(graph) == kept | casesteps.ordered(changed)
    assert casesteps.state(theirs) == theirs_before
    for text in case.content.get("schema", ()):
        assert text in graph.schema()


# ledger: B02
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_merge(case: Case, engine: str, tmp_path: Path) -> None:
    check(case, engine, tmp_path)


def test_case_names_are_unique() -> None:
    names = [case.name for case in CASES]
    assert sorted(set(names)) == sorted(names)


def test_every_case_has_an_outcome() -> None:
    for case in CASES:
        assert len({"outcome", "conflicts", "error"} & set(case.content)) == 1, case.name
