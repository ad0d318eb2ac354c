"""Visibility: each channel shows a restricted graph as if hidden rows and properties did not exist.

The reference is a second graph that holds only what is visible.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.querygraphs import PLAIN

import omnigraph
from omnigraph.engines.embedded import EmbeddedEngine
from omnigraph.errors import DeniedError, OmniGraphError, QueryError
from omnigraph.graph import Graph
from omnigraph.ir.expr import Expr, Property
from omnigraph.ir.fold import replace_parts
from omnigraph.ir.query import TARGET, ReadQuery
from omnigraph.lang import gq
from omnigraph.model.catalog import Catalog
from omnigraph.model.visibility import EVERYTHING, Visibility

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


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return make(tmp_path_factory.mktemp("whole") / "g", lambda team: True)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return make(tmp_path_factory.mktemp("visible") / "g", lambda team: team == "red")


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


@pytest.mark.parametrize("name", QUERIES)
def test_20_02_queries_see_visible_rows_only(whole: Graph, reference: Graph, name: str) -> None:
    text = f"query q() {{ {QUERIES[name]} }}"
    try:
        expected = reference.query(text).rows()
    except QueryError as error:  # a mistake in this file
        raise AssertionError(str(error)) from error
    assert restricted(whole).query(text).rows() == expected
    assert restricted(whole).query(text).rows() == expected  # from caches
    full = whole.query(text).rows()
    assert full == whole.query(text).rows()
    if name not in ("by key", "by predicate", "negation"):
        assert full != expected, "the case hides nothing"


def test_20_02_hidden_properties_do_not_exist(whole: Graph) -> None:
    seen = restricted(whole)
    with pytest.raises(QueryError, match="salary"):
        seen.query("query q() { match { $p: Person } return { $p.salary as s } }")
    with pytest.raises(QueryError, match="salary"):
        seen.query("query q() { match { $p: Person $p.salary > 1 } return { $p.name as n } }")
    objects = seen.query("query q() { match { $p: Person } return { $p as p } }").rows()
    assert all("salary" not in row["p"] for row in objects)
    assert "salary" not in str(seen.schema())


def test_20_02_exports_and_baselines(whole: Graph, reference: Graph, tmp_path: Path) -> None:
    found: dict[str, Any] = {}
    for name, graph in (("seen", restricted(whole)), ("reference", reference)):
        file = tmp_path / f"{name}.jsonl"
        counts = graph.export(str(file)).rows
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        for line in lines:
            line.get("data", {}).pop("salary", None)
        found[name] = (counts, lines)
    assert found["seen"] == found["reference"]
    assert "salary" not in (tmp_path / "seen.jsonl").read_text()


def test_20_02_statistics(whole: Graph, reference: Graph) -> None:
    seen = {each.type_name: each.rows for each in restricted(whole).stats().types}
    assert seen == {each.type_name: each.rows for each in reference.stats().types}


def test_20_02_blobs(whole: Graph) -> None:
    seen = restricted(whole)
    assert seen.blob("Person", "ann", "photo") == whole.blob("Person", "ann", "photo")
    with pytest.raises(OmniGraphError, match="no Person"):
        seen.blob("Person", "bob", "photo")


@pytest.fixture
def history(tmp_path: Path) -> Graph:
    graph = make(tmp_path / "g", lambda team: True)
    graph.mutate('query a() { update Person set { salary: 11 } where name = "ann" }')
    graph.mutate('query b() { update Person set { about: "x" } where name = "bob" }')
    graph.mutate('query c() { update Person set { team: "blue" } where name = "cat" }')
    graph.mutate('query d() { update Person set { team: "red" } where name = "dan" }')
    graph.mutate('query e() { delete Knows where from = "eve" }')
    return graph


def _shown(changes: Any) -> list[tuple[str, str, str]]:
    return [(change.type_name, change.id, str(change.op)) for change in changes]


EXPECTED = [("Person", "cat", "delete"), ("Person", "dan", "insert"), ("Knows", "k6", "delete")]


def test_20_02_diffs(history: Graph) -> None:
    seen = restricted(history)
    found = list(seen.diff("main@2", "main"))
    assert _shown(found) == EXPECTED
    assert all("salary" not in (c.before or c.after or {}) for c in found)


def test_20_02_feeds(history: Graph) -> None:
    seen = restricted(history)
    page = seen.poll_changes(start="beginning")
    blocks = [_shown(block.changes) for block in page.blocks]
    assert [change for block in blocks[2:] for change in block] == EXPECTED
    assert [c[1] for c in blocks[1] if c[0] == "Person"] == ["ann", "cat", "eve"]
    with pytest.raises(OmniGraphError):
        history.poll_changes(cursor=page.cursor)


DENIED: dict[str, Callable[[Graph], object]] = {
    "mutate": lambda g: g.mutate('query q() { delete Person where name = "bob" }'),
    "copy": lambda g: g.copy("/nowhere"),
    "query on spark": lambda g: g.query(QUERIES_TEXT, engine="spark"),
}
QUERIES_TEXT = f"query q() {{ {QUERIES['nodes']} }}"


@pytest.mark.parametrize("name", DENIED)
def test_20_02_what_cannot_be_restricted_is_refused(whole: Graph, name: str) -> None:
    with pytest.raises(DeniedError):
        DENIED[name](restricted(whole))


def test_20_02_visibilities_do_not_share_caches(whole: Graph) -> None:
    catalog = whole.snapshot().catalog
    person_type = catalog.node("Person")
    assert person_type is not None
    text = "query q() { match { $a: Person $a knows $b } return { $a.name as a, $b.name as b } }"
    answers = []
    for team in ("red", "blue"):
        rule = {person_type.id: predicate(catalog, f'$p: Person $p.team = "{team}"')}
        answers.append(restricted(whole, Visibility.of(rule, {})).query(text).rows())
    assert answers[0] != answers[1]
    assert restricted(whole, EVERYTHING).query(text).rows() == whole.query(text).rows()


def test_20_02_without_visibility_plans_and_reads_are_the_same(whole: Graph) -> None:
    snapshot = whole.snapshot()
    assert snapshot.seen_through(EVERYTHING) is snapshot
    engine = EmbeddedEngine()
    assert engine.statistics(snapshot.seen_through(EVERYTHING)) is engine.statistics(snapshot)
    assert PLAIN is not None
