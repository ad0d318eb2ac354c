"""A graph of which a visibility shows a part, and a second graph that holds only that part."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.support.oracle import answer
from tests.support.resultequality import assert_same_rows

import omnigraph
from omnigraph.errors import QueryError
from omnigraph.graph import Graph
from omnigraph.ir.expr import Expr, Property
from omnigraph.ir.fold import replace_parts
from omnigraph.ir.query import TARGET, ReadQuery
from omnigraph.lang import gq
from omnigraph.model.catalog import Catalog
from omnigraph.model.visibility import Visibility

SCHEMA = """
node Person {
    name: String @key
    team: String
    salary: I32?
    photo: Blob?
    about: String? @index
    place: Vector(2)?
}
node Team { name: String @key }
edge Knows: Person -> Person { secret: Bool }
edge In: Person -> Team
"""
PEOPLE = [
    ("ann", "red", 10, "the quick fox", [1.0, 0.0]),
    ("bob", "blue", 20, "the lazy fox", [0.99, 0.1]),
    ("cat", "red", 30, "a quick dog", [0.9, 0.4]),
    ("dan", "blue", 40, "the fox again", [1.0, 0.05]),
    ("eve", "red", 50, "nothing", [0.0, 1.0]),
]
KNOWS = [
    ("k1", "ann", "bob", False),
    ("k2", "bob", "cat", False),
    ("k3", "ann", "cat", False),
    ("k4", "ann", "cat", True),
    ("k5", "cat", "eve", True),
    ("k6", "eve", "ann", False),
]
IN = [("ann", "red"), ("bob", "blue"), ("cat", "red"), ("dan", "blue"), ("eve", "red")]


def person(name: str, team: str, salary: int, about: str, place: list[float]) -> dict[str, Any]:
    values = {"name": name, "team": team, "salary": salary, "about": about, "place": place}
    return {"type": "Person", "data": {**values, "photo": f"base64:{'AAEC'}"}}


def edge(kind: str, src: str, dst: str, **more: Any) -> dict[str, Any]:
    return {"edge": kind, "from": src, "to": dst, **more}


def rows(keep: Callable[[str], bool]) -> list[dict[str, Any]]:
    """All rows, or those whose person satisfies `keep` and whose edges are not secret."""
    found = [person(*each) for each in PEOPLE if keep(each[1])]
    found += [{"type": "Team", "data": {"name": name}} for name in ("red", "blue")]
    teams = {name: team for name, team, *_ in PEOPLE}
    for id_, src, dst, secret in KNOWS:
        if keep(teams[src]) and keep(teams[dst]) and (keep("blue") or not secret):
            found.append(edge("Knows", src, dst, data={"id": id_, "secret": secret}))
    found += [edge("In", a, b, data={"id": f"i-{a}"}) for a, b in IN if keep(teams[a])]
    return found


def make(place: Path, keep: Callable[[str], bool]) -> Graph:
    graph = omnigraph.init(str(place), SCHEMA)
    text = "\n".join(json.dumps(row) for row in rows(keep))
    file = place.parent / f"{place.name}.jsonl"
    file.write_text(text)
    graph.load(str(file))
    return graph


def predicate(catalog: Catalog, pattern: str) -> tuple[Expr, ...]:
    query = gq.compile_query(f"query q() {{ match {{ {pattern} }} return {{ 1 as x }} }}", catalog)
    assert isinstance(query.query, ReadQuery)
    found = query.query.stages[0].pattern.predicates
    return tuple(replace_parts(p, _about_row) for p in found)


def _about_row(part: Expr) -> Expr | None:
    return replace(part, var=TARGET) if isinstance(part, Property) else None


def only_red(catalog: Catalog) -> Visibility:
    """People of the red team, edges that are not secret, and no salaries."""
    people, knows = catalog.node("Person"), catalog.edge("Knows")
    assert people is not None
    assert knows is not None
    return Visibility.of(
        {
            people.id: predicate(catalog, '$p: Person $p.team = "red"'),
            knows.id: predicate(catalog, "$a: Person $a $e:knows $b $e.secret = false"),
        },
        {people.id: frozenset({"salary"})},
    )


def restricted(graph: Graph, visibility: Visibility | None = None) -> Graph:
    """The graph as its visibility shows it: the internal seam that policy will use."""
    seen = only_red(graph.snapshot().catalog) if visibility is None else visibility
    return Graph(replace(graph._context, visibility=seen), graph.branch_name)


QUERIES = {
    "nodes": "match { $p: Person } return { $p.name as name, $p.team as team }",
    "count of nodes": "match { $p: Person } return { count($p) as n }",
    "by key": 'match { $p: Person $p.name = "bob" } return { $p.name as name }',
    "by predicate": 'match { $p: Person $p.team = "blue" } return { $p.name as name }',
    "neighbours": "match { $a: Person $a knows $b } return { $a.name as a, $b.name as b }",
    "edges": "match { $a: Person $a $k:knows $b } return { $k.id as id, $k.secret as s }",
    "walk": "match { $a: Person $a knows{1,4} $b } return { $a.name as a, $b.name as b }",
    "shortest": "match { $a: Person $a shortest knows{1,4} as $h $b } "
    "return { $a.name as a, $b.name as b, $h as h }",
    "counts by node": "match { $a: Person $a knows $b } return { $a.name as a, count($b) as n }",
    "from the other type": "match { $t: Team $t <-in $p } return { $t.name as t, count($p) as n }",
    "negation": "match { $a: Person not { $a knows $b } } return { $a.name as a }",
    "optional": "match { $a: Person optional { $a knows $b } } "
    "return { $a.name as a, $b.name as b }",
    "groups": "match { $p: Person } return { $p.team as team, count($p) as n }",
    "nearest": "match { $p: Person } return { $p.name as name } "
    "order { nearest($p.place, [1.0, 0.0]) } limit 2",
    "text": 'match { $p: Person search($p.about, "fox") } return { $p.name as name }',
}


# What the nested loops of the oracle can answer.
_ASKED = tuple(name for name in QUERIES if name not in ("nearest", "text"))
_ROUNDS, _QUESTIONS = 6, 5


def check_visibility(seed: int, folder: Path) -> None:
    """Random visibilities of one graph, one after the other: rows are those of nested loops over
    the visible rows, and hidden properties do not exist, whatever caches hold of the others."""
    rng = random.Random(seed)
    graph = make(folder / f"visibility-{seed}", lambda team: True)
    graph.query(SALARIES).rows()
    catalog = graph.snapshot().catalog
    for _ in range(_ROUNDS):
        team, salary = rng.choice(["red", "blue"]), rng.choice([0, 15, 35])
        seen = restricted(graph, _visibility(catalog, team, salary))
        data = _visible_data(team, salary)
        for name in rng.sample(_ASKED, _QUESTIONS):
            text = f"query q() {{ {QUERIES[name]} }}"
            query = gq.compile_query(text, catalog).query
            assert isinstance(query, ReadQuery)
            expected = answer(query, catalog, data, {}, text=text)
            assert_same_rows(seen.query(text).rows(), expected, f"{team} {salary}: {text}")
        assert_refused(seen)


SALARIES = "query q() { match { $p: Person } return { $p.salary as salary } }"


def assert_refused(seen: Graph) -> None:
    """A hidden property cannot be asked for."""
    try:
        seen.query(SALARIES)
    except QueryError:
        return
    raise AssertionError("a hidden property was returned")


def _visibility(catalog: Catalog, team: str, salary: int) -> Visibility:
    people = catalog.node("Person")
    assert people is not None
    pattern = f'$p: Person $p.team = "{team}" $p.salary > {salary}'
    return Visibility.of(
        {people.id: predicate(catalog, pattern)}, {people.id: frozenset({"salary"})}
    )


def _visible_data(team: str, salary: int) -> dict[str, list[dict[str, Any]]]:
    names = {name for name, of, earned, *_ in PEOPLE if of == team and earned > salary}
    people = [{"name": name, "team": of} for name, of, *_ in PEOPLE if name in names]
    knows = [
        {"id": id_, "from": src, "to": dst, "secret": secret}
        for id_, src, dst, secret in KNOWS
        if {src, dst} <= names
    ]
    return {
        "Person": people,
        "Team": [{"name": "red"}, {"name": "blue"}],
        "Knows": knows,
        "In": [{"id": f"i-{a}", "from": a, "to": b} for a, b in IN if a in names],
    }
