"""Long queries: the work grows with their length, and what is too long is refused.

Work is counted in calls of Python functions and in bytes that storage is handed, never in time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import LimitExceededError, QueryError
from omnigraph.lang import gq
from omnigraph.lang.gq import size
from omnigraph.lang.pg import compile_schema

SCHEMA = """
node Person {
    name: String @key
    age: I32?
    nick: String?
}
edge Knows: Person -> Person
"""
CATALOG = compile_schema(SCHEMA)
CALL = 'lower("P#")'


def read(clauses: str) -> str:
    return f"query q() {{ match {{ $p: Person {clauses} }} return {{ count(*) as n }} }}"


def _query(params: str = "", stages: str = "", returned: str = "$p.name") -> str:
    return f"query q({params}) {{ match {{ $p: Person }} {stages} return {{ {returned} }} }}"


def repeated(part: str, count: int, joined: str = "\n") -> str:
    return joined.join(part.replace("#", str(number)) for number in range(count))


FORMS: dict[str, Callable[[int], str]] = {
    "and": lambda n: read(repeated("$p.age != #", n, " and ")),
    "or": lambda n: read(repeated("$p.age = #", n, " or ")),
    "or of texts": lambda n: read(repeated('$p.nick contains "a#"', n, " or ")),
    "and of or": lambda n: read(repeated('($p.age = # or $p.nick = "x")', n, " and ")),
    "or of and": lambda n: read(repeated('($p.age < # and $p.nick != "x#")', n, " or ")),
    "clauses": lambda n: read(repeated("$p.age != #", n)),
    "list": lambda n: read(f"$p.age in [{repeated('#', n, ', ')}]"),
    "list of calls": lambda n: read(f"$p.name in [{repeated(CALL, n, ', ')}]"),
    "coalesce": lambda n: read(f"coalesce({repeated('$p.age', n, ', ')}) >= 0"),
    "columns": lambda n: _query(returned=repeated("$p.age as c#", n, ", ")),
    "parameters": lambda n: _query(repeated("$a#: I64?", n, ", ")),
    "walks": lambda n: read(repeated("$p knows $q#", min(n, 60))),
    "chain": lambda n: read("$a0: Person " + repeated("$a# knows $b# $b# knows $a0", min(n, 30))),
    "optionals": lambda n: read(repeated("optional { $p knows $q# }", min(n, 60))),
    "negations": lambda n: read(repeated("not { $p knows $q# $q#.age > 90 }", min(n, 60))),
}
TOO_LONG: dict[str, str] = {
    "stages": _query(stages=repeated("with { $p }", 1000)),
    "walks": read(repeated("$p knows $q#", 1000)),
    "chain of walks": read("$q0: Person " + repeated("$q# knows{1,3} $r#", 1000)),
    "optionals": read(repeated("optional { $p knows $q# }", 1000)),
    "negations": read(repeated("not { $p knows $q# }", 1000)),
    "bindings": read(repeated("$q#: Person", 1000)),
    "terms": read(repeated("$p.age != #", 10_000, " and ")),
    "calls": read(f"$p.name in [{repeated(CALL, 10_000, ', ')}]"),
}
TOO_DEEP: dict[str, str] = {
    "parentheses": read("(" * 5_000 + "$p.age = 1" + ")" * 5_000),
    "not": read("not " * 5_000 + "$p.age = 1"),
    "minus": read("$p.age = " + "- " * 5_000 + "1"),
    "plus": read("$p.age = " + repeated("1", 5_000, " + ")),
    "calls": read("$p.name = " + "lower(" * 5_000 + "$p.name" + ")" * 5_000),
    "blocks": read("not { $p knows $q " * 5_000 + "}" * 5_000),
    "brackets": read("$p.age in " + "[" * 5_000 + "]" * 5_000),
}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    path: Path = tmp_path_factory.mktemp("size")
    made = og.init(str(path / "g"), SCHEMA)
    made.ingest([{"type": "Person", "data": {"name": f"p{n}", "age": n}} for n in range(5)])
    made.ingest([{"edge": "Knows", "from": "p0", "to": "p1"}])
    return made


def calls(work: Callable[[], object]) -> int:
    """How many functions some work calls."""
    count = 0

    def note(frame: Any, event: str, arg: Any) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def steps(graph: og.Graph, text: str) -> dict[str, Callable[[], object]]:
    return {
        "format": lambda: gq.format_queries(text),
        "lint": lambda: gq.lint(text, CATALOG),
        "explain": lambda: graph.explain(text).to_text(),
        "query": lambda: graph.query(text).rows(),
    }


@pytest.mark.parametrize("form", ["and", "or", "or of texts", "and of or", "or of and", "clauses"])
def test_18_17_work_doubles_with_the_number_of_terms(graph: og.Graph, form: str) -> None:
    for name in steps(graph, ""):
        small, large = (calls(steps(graph, FORMS[form](terms))[name]) for terms in (100, 200))
        assert large < 2.3 * small, f"{form}, {name}: {small} calls, then {large}"


@pytest.mark.parametrize("form", ["list", "list of calls", "coalesce", "columns", "parameters"])
def test_18_17_work_doubles_with_the_length_of_lists(graph: og.Graph, form: str) -> None:
    for name in steps(graph, ""):
        small, large = (calls(steps(graph, FORMS[form](items))[name]) for items in (150, 300))
        assert large < 2.3 * small, f"{form}, {name}: {small} calls, then {large}"


@pytest.mark.parametrize("form", FORMS)
def test_18_17_every_accepted_form_has_an_answer(graph: og.Graph, form: str) -> None:
    found = graph.query(FORMS[form](400)).rows()
    assert found


@pytest.mark.parametrize("form", TOO_LONG)
def test_18_17_what_is_too_long_is_refused(graph: og.Graph, form: str) -> None:
    text = TOO_LONG[form]
    assert gq.format_queries(text)
    for name, step in steps(graph, text).items():
        if name != "format":
            with pytest.raises(LimitExceededError) as raised:
                step()
            assert raised.value.resource.startswith("query_")


@pytest.mark.parametrize("form", TOO_DEEP)
def test_18_17_what_is_too_deep_is_refused(graph: og.Graph, form: str) -> None:
    for name, step in steps(graph, TOO_DEEP[form]).items():
        if name == "lint":
            assert any(each.diagnostic.code == "Q005" for each in step().findings)  # type: ignore[attr-defined]
        else:
            with pytest.raises(QueryError, match="Q005"):
                step()


def test_18_17_the_largest_query_of_every_kind_has_an_answer(graph: og.Graph) -> None:
    """All limits reached at once."""
    stages = size.MOST_STAGES - 1  # and one that returns
    each = size.MOST_WALKS // stages
    body = ""
    for number in range(stages):
        walks = repeated(f"$p knows{{1,2}} $a{number}x#", each - 1)
        body += f"match {{ $p: Person {walks} optional {{ $p knows $c{number} }} }} with {{ $p }}\n"
    text = (
        f"query q() {{ {body.removesuffix('with { $p }' + chr(10))} return {{ count(*) as n }} }}"
    )
    assert graph.query(text).rows() == [{"n": 1}]
    assert "Expand" in graph.explain(text).to_text()


@pytest.mark.parametrize("terms", [24, 48, 400])
def test_18_17_writes_with_many_terms(graph: og.Graph, terms: int) -> None:
    where = repeated('name = "z#"', terms, " or ")
    assert graph.mutate(f"query q() {{ delete Person where {where} }}").affected == {}
    where = repeated('(nick = "z#" and age > #)', terms, " or ")
    assert graph.mutate(f"query q() {{ delete Person where {where} }}").affected == {}
    where = "not (" * 24 + "age = -1" + ")" * 24
    assert graph.mutate(f"query q() {{ delete Person where {where} }}").affected == {}
