"""Planning: cached by query, catalog and statistics; statistics rounded; explanations complete."""

from __future__ import annotations

import json

from omnigraph.ir.query import ReadQuery
from omnigraph.lang import gq
from omnigraph.lang.pg import compile_schema
from omnigraph.plan.operators import Limit, Match, Operator, Sort, TopK
from omnigraph.plan.planner import Planner, plan_query
from omnigraph.plan.plantext import Actual, to_json, to_text
from omnigraph.plan.rules.order_joins import order_joins
from omnigraph.plan.statistics import from_counts, rounded
from omnigraph.plan.trees import operators

CATALOG = compile_schema(
    "node Person { name: String @key age: I32? }\nedge Knows: Person -> Person\n"
)
TEXT = """query q() { match { $a: Person $a knows $b not { $b knows $a } optional { $b knows $c } }
return { $a.name, count($c) as n } order { n desc } limit 3 }"""
STATISTICS = from_counts({"Person": 1000}, {"Knows": 9000})


def compiled(text: str) -> ReadQuery:
    query = gq.compile_query(text, CATALOG).query
    assert isinstance(query, ReadQuery)
    return query


def test_a_plan_is_made_once() -> None:
    planner, query = Planner(), compiled(TEXT)
    first = planner.plan(query, CATALOG, STATISTICS)
    assert planner.plan(query, CATALOG, STATISTICS) is first
    almost = from_counts({"Person": 1010}, {"Knows": 9100})
    assert planner.plan(query, CATALOG, almost) is first
    grown = from_counts({"Person": 4000}, {"Knows": 90_000})
    assert planner.plan(query, CATALOG, grown) is not first


def test_the_cache_forgets_the_oldest() -> None:
    planner = Planner(limit=1)
    query, other = compiled(TEXT), compiled(TEXT.replace("limit 3", "limit 4"))
    first = planner.plan(query, CATALOG, STATISTICS)
    planner.plan(other, CATALOG, STATISTICS)
    again = planner.plan(query, CATALOG, STATISTICS)
    assert again is not first
    assert again.root == first.root


def test_counts_are_rounded_to_few_numbers() -> None:  # ledger: Q02
    assert [rounded(n) for n in (0, 1, 2, 3, 1000)] == [0, 1, 2, 3, 1024]
    assert len({rounded(n) for n in range(1000, 1090)}) == 1
    assert all(abs(rounded(n) / n - 1) < 0.2 for n in range(8, 5000))


def test_no_logical_operator_survives() -> None:
    kinds = {type(o) for o in operators(plan_query(compiled(TEXT), CATALOG, STATISTICS).root)}
    assert Match not in kinds
    assert TopK in kinds
    assert not kinds & {Limit, Sort}


def test_joins_alone_make_a_plan() -> None:
    plan = plan_query(compiled(TEXT), CATALOG, STATISTICS, (order_joins,))
    assert Match not in {type(o) for o in operators(plan.root)}


def test_explanations_show_ir_plan_estimates_and_actuals() -> None:  # ledger: Q03
    plan = plan_query(compiled(TEXT), CATALOG, STATISTICS)
    actuals = {
        id(o): Actual(rows=n, seconds=0.001, requests=2, bytes=30, notes=["by index"])
        for n, o in enumerate(operators(plan.root))
    }
    shown = to_json(plan, actuals)
    assert json.loads(json.dumps(shown)) == shown
    assert shown["fields"] == [{"name": "a.name", "type": "String"}, {"name": "n", "type": "I64"}]
    assert shown["ir"][0]["node"] == "Stage"
    top = shown["plan"]
    assert top["operator"] == "project"
    assert top["rows"] == len(actuals) - 1
    assert top["milliseconds"] == 1.0
    assert top["inputs"][0]["estimated_rows"] == 3.0
    text = to_text(plan.root, actuals)
    assert len(text.splitlines()) == len(actuals)
    assert "rows; 1.00 ms; 2 reads, 30 bytes; by index]" in text


def test_every_operator_has_an_estimate() -> None:
    root: Operator = plan_query(compiled(TEXT), CATALOG, STATISTICS).root
    assert all(o.rows >= 0 for o in operators(root))
