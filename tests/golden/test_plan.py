"""Golden plans: what each rule of the optimizer does to a plan.

`plan/<rule>.txt` holds cases of three parts: a query, the plan before the rule and the plan after
it; `plan/whole.txt` holds queries with their finished plans. A case begins with `## <title>`. With
OMNIGRAPH_UPDATE_GOLDEN=1 the plans are written anew; read the difference before keeping it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from omnigraph.ir.query import ReadQuery
from omnigraph.lang import gq
from omnigraph.lang.pg import compile_schema
from omnigraph.plan.estimate import Context
from omnigraph.plan.logical import build
from omnigraph.plan.planner import plan_query
from omnigraph.plan.plantext import to_text
from omnigraph.plan.rules import RULES
from omnigraph.plan.statistics import declared_indexes, from_counts

HERE = Path(__file__).parent / "plan"
CATALOG = compile_schema((HERE / "schema.pg").read_text())
STATISTICS = from_counts(
    {"Person": 100_000, "Company": 2_000, "City": 5_000, "Doc": 50_000},
    {"Knows": 2_000_000, "WorksAt": 90_000, "LivesIn": 100_000, "Cites": 300_000},
    declared_indexes(CATALOG),
)
CONTEXT = Context(CATALOG, STATISTICS)
WHOLE = "whole"


def read(name: str) -> list[tuple[str, str]]:
    """Titles and queries of a file."""
    found = []
    for block in (HERE / f"{name}.txt").read_text().split("## ")[1:]:
        title, _, rest = block.partition("\n")
        found.append((title, rest.partition("\n---")[0].strip()))
    return found


def compiled(text: str) -> ReadQuery:
    query = gq.compile_query(text, CATALOG).query
    assert isinstance(query, ReadQuery)
    return query


def one_rule(name: str, text: str) -> str:
    """The plan before and after one rule, with the rules before it applied."""
    root = build(compiled(text), CATALOG)
    for rule in RULES:
        if rule.__name__ == name:
            after = rule(root, CONTEXT)
            return f"--- before\n{to_text(root)}--- after\n{to_text(after)}"
        root = rule(root, CONTEXT)
    raise AssertionError(f"there is no rule {name}")


def whole_plan(text: str) -> str:
    return f"--- plan\n{to_text(plan_query(compiled(text), CATALOG, STATISTICS).root)}"


@pytest.mark.parametrize("name", [*(rule.__name__ for rule in RULES), WHOLE])
def test_golden_plans(name: str) -> None:  # ledger: Q02, Q03, Q05
    path = HERE / f"{name}.txt"
    parts = []
    for title, text in read(name):
        plans = whole_plan(text) if name == WHOLE else one_rule(name, text)
        parts.append(f"## {title}\n{text}\n{plans}")
    actual = "\n".join(parts)
    if os.environ.get("OMNIGRAPH_UPDATE_GOLDEN"):
        path.write_text(actual)
    assert actual == path.read_text(), f"{path.name} differs; see the head of this file"


def test_same_statistics_same_plan() -> None:  # ledger: Q02
    for _, text in read(WHOLE):
        plans = [plan_query(compiled(text), CATALOG, STATISTICS).root for _ in range(2)]
        assert plans[0] == plans[1]
        assert to_text(plans[0]) == to_text(plans[1])
