"""Compiling: which query is chosen, what is remembered, how much is reported."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from omnigraph.errors import QueryError
from omnigraph.ir import expr as ir
from omnigraph.ir import query as irq
from omnigraph.ir.fold import parts
from omnigraph.ir.irtext import render as render_ir
from omnigraph.lang import gq
from omnigraph.lang.gq import ast
from omnigraph.lang.gq.compile import CACHE_SIZE, cache
from omnigraph.lang.pg import compile_schema

GOLDEN = Path(__file__).parents[3] / "golden" / "gq"
CATALOG = compile_schema((GOLDEN / "schema.pg").read_text())
ONE = "query one($name: String) { match { $p: Person { name: $name } } return { $p.name } }"
TWO = ONE + "\nquery two() { match { $c: Company } return { $c.name } }"


@pytest.fixture(autouse=True)
def _empty_cache() -> None:
    cache.clear()


def codes(text: str) -> list[str]:
    with pytest.raises(QueryError) as caught:
        gq.compile_file(text, CATALOG)
    return [each.code for each in caught.value.diagnostics]


def test_a_query_is_chosen_by_name() -> None:
    assert gq.compile_query(TWO, CATALOG, "two").query.name == "two"
    assert list(gq.compile_file(TWO, CATALOG)) == ["one", "two"]


def test_the_name_may_be_left_out_where_there_is_one_query() -> None:
    assert gq.compile_query(ONE, CATALOG).query.name == "one"


def test_a_wrong_name_is_answered_with_a_guess() -> None:
    with pytest.raises(QueryError) as caught:
        gq.compile_query(TWO, CATALOG, "tow")
    (found,) = caught.value.diagnostics
    assert (found.code, found.hint) == ("Q006", "did you mean `two`?")


def test_of_two_queries_with_one_name_the_first_counts() -> None:
    text = ONE + "\nquery one() { match { $c: Company } return { $c.name } }"
    assert len(gq.compile_query(text, CATALOG, "one").query.params) == 1
    assert len(gq.compile_file(text, CATALOG)["one"].query.params) == 1


def test_only_the_chosen_query_is_checked_but_all_are_read() -> None:
    text = ONE + "query two() { match { $x: No } return { $x } }"
    assert gq.compile_query(text, CATALOG, "one").query.name == "one"
    with pytest.raises(QueryError):
        gq.compile_query(ONE + "query two() {", CATALOG, "one")


def test_what_was_compiled_is_remembered() -> None:
    first = gq.compile_query(ONE, CATALOG)
    assert gq.compile_query(ONE, CATALOG) is first
    assert gq.compile_query(ONE, CATALOG, "one") is not first


def test_another_catalog_is_another_query() -> None:
    first = gq.compile_query(ONE, CATALOG)
    assert gq.compile_query(ONE, replace(CATALOG, hash="other")) is not first


def test_without_a_hash_nothing_is_remembered() -> None:
    nameless = replace(CATALOG, hash="")
    assert gq.compile_query(ONE, nameless) is not gq.compile_query(ONE, nameless)
    assert len(cache) == 0


def test_mistakes_are_not_remembered() -> None:
    for _ in range(2):
        with pytest.raises(QueryError):
            gq.compile_query("query q() { match { $p: No } return { $p } }", CATALOG)
    assert len(cache) == 0


def test_the_cache_forgets_what_was_used_longest_ago() -> None:
    first = gq.compile_query(ONE, CATALOG)
    for number in range(CACHE_SIZE - 1):
        gq.compile_query(f"{ONE}// {number}", CATALOG)
    assert gq.compile_query(ONE, CATALOG) is first
    gq.compile_query(f"{ONE}// last", CATALOG)
    assert len(cache) == CACHE_SIZE
    assert gq.compile_query(ONE, CATALOG) is first
    gq.compile_query(f"{ONE}// 0", CATALOG)
    assert len(cache) == CACHE_SIZE


def test_findings_say_where() -> None:
    with pytest.raises(QueryError) as caught:
        gq.compile_query(
            "query q() {\n  match { $p: Persn }\n  return { $p }\n}", CATALOG, file="a.gq"
        )
    (found,) = caught.value.diagnostics
    assert str(found) == "a.gq:2:15: error[T1]: there is no node type `Persn`"
    assert found.excerpt == "2 |   match { $p: Persn }\n  |               ^^^^^"
    assert found.hint == "did you mean `Person`?"


def test_several_mistakes_are_reported_at_once() -> None:
    text = """
    query a() { match { $p: Persn  $q: Person  $q knos $r  $q.agee > 1 } return { $s } }
    query b() { update Person set { agee: 1 } where nam = "x" }
    """
    assert codes(text) == ["T1", "T4", "T6", "T25", "T11", "T11"]


def test_one_mistake_is_reported_once() -> None:
    text = """
    query q() {
        match { $p: Persn  $p knows $f  $p.name = "x"  $f.age > 1 }
        return { $p.name, lower($p.nam) as n, n, $p }
        order { n, $p.name }
    }
    """
    assert codes(text) == ["T1"]


def test_deletes_do_not_mix_with_other_writes() -> None:  # ledger: C05
    text = 'query q() { delete Person where name = "a" insert Note { text: "x" } }'
    with pytest.raises(QueryError) as caught:
        gq.parse(text)  # no catalog needed: nothing but the text is looked at
    (found,) = caught.value.diagnostics
    assert found.code == "Q001"
    assert found.hint is not None
    assert "split it into two queries" in found.hint


def test_the_ends_of_an_edge_hide_properties_of_their_name() -> None:
    schema = "node A {{}}\nedge E: A -> A {{ from: Date{} }}"
    optional, required = (compile_schema(schema.format(mark)) for mark in ("?", ""))
    deleted = gq.compile_query('query q() { delete E where from = "a" }', optional).query
    assert isinstance(deleted, irq.WriteQuery)
    assert '__target.src = "a"' in render_ir(deleted)
    inserted = 'query q() { insert E { from: "a", to: "b" } }'
    assert isinstance(gq.compile_query(inserted, optional).query, irq.WriteQuery)
    with pytest.raises(QueryError) as caught:
        gq.compile_query(inserted, required)
    assert "an insert cannot give the property `from` of `E`" in caught.value.message


def test_meaning_is_typed_not_spelled() -> None:  # ledger: Q01
    text = """
    query q($v: Vector(3), $q: String) {
        match { $d: Doc  search($d.title, $q)  not { $d cites $_ }  $p wrote $d }
        return { $p.name, count($d) as n }
        order { n desc }
    }
    """
    query = gq.compile_query(text, CATALOG).query
    assert isinstance(query, irq.ReadQuery)
    (stage,) = query.stages
    assert [type(p) for p in stage.pattern.predicates] == [ir.TextMatch]
    assert stage.pattern.negations[0].traversals[0].steps[0].direction is irq.Direction.OUT
    assert isinstance(stage.projections[1].expr, ir.Aggregate)
    every = (part for p in stage.projections for part in parts(p.expr))
    assert all(part.type is not None for part in every)


@pytest.mark.parametrize(
    ("clause", "steps"),
    [
        ("$x: Named  $x worksAt $y", ["WorksAt out", "WorksAt in"]),
        ("$x: Company  $x _ $y", ["WorksAt in"]),
        ("$x: Person  $x knows|wrote $y", ["Knows out", "Wrote out"]),
    ],
)
def test_many_types_are_one_union(clause: str, steps: list[str]) -> None:  # ledger: Q07
    query = gq.compile_query(f"query q() {{ match {{ {clause} }} return {{ $y }} }}", CATALOG).query
    assert isinstance(query, irq.ReadQuery)
    (walk,) = query.stages[0].pattern.traversals
    assert [f"{step.edge} {step.direction}" for step in walk.steps] == steps


@pytest.mark.parametrize("constant", ["true", "false", "null"])
def test_a_constant_before_a_parenthesis_is_no_function(constant: str) -> None:
    clauses = f'$p: Person  ($p.active) = {constant}  ($p.name) = "a"'
    text = f"query q() {{ match {{ {clauses} }} return {{ $p.name, {constant} as a }} }}"
    for spelled in (text, text.replace(f"{constant}  (", f"{constant}("), gq.format_queries(text)):
        body = gq.parse(spelled).queries[0].body
        assert isinstance(body, ast.Read)
        assert body.stages[0].match is not None
        assert len(body.stages[0].match.clauses) == 3


def test_importing_the_package_loads_none_of_its_parts() -> None:
    code = (
        "import sys, omnigraph.lang.gq;"
        "print([m for m in sys.modules if m.startswith('omnigraph.lang.gq.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_public_name_loads() -> None:
    assert all(callable(getattr(gq, name)) for name in gq.__all__)
    with pytest.raises(AttributeError, match="compile_qeury"):
        gq.compile_qeury  # noqa: B018
