"""Visibility: each channel shows a restricted graph as if hidden rows and properties did not exist.

The reference is a second graph that holds only what is visible.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.mutants.catalogue import applied
from tests.support.visiblegraphs import QUERIES, check_visibility, make, predicate, restricted

from omnigraph.engines.embedded import EmbeddedEngine
from omnigraph.engines.snapshotreader import SnapshotReader, visible_ids, visible_table
from omnigraph.errors import DeniedError, KeyConflictError, OmniGraphError, QueryError
from omnigraph.graph import Graph
from omnigraph.ir.query import ReadQuery
from omnigraph.lang import gq
from omnigraph.model.visibility import EVERYTHING, Visibility
from omnigraph.plan.planner import plan_query
from omnigraph.storage.table import IoCounters, forget_tables, open_table


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return make(tmp_path_factory.mktemp("whole") / "g", lambda team: True)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return make(tmp_path_factory.mktemp("visible") / "g", lambda team: team == "red")


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
    assert b"".join(seen.blob("Person", "ann", "photo"))
    assert b"".join(whole.blob("Person", "bob", "photo"))
    with pytest.raises(OmniGraphError, match="no Person"):
        b"".join(seen.blob("Person", "bob", "photo"))


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
    "merge": lambda g: g.merge("other"),
    "copy": lambda g: g.copy("/nowhere"),
}


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


def test_20_02_without_visibility_nothing_is_added(
    whole: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same snapshot object, statistics and table handles, and no test of any row."""
    snapshot = whole.snapshot()
    assert snapshot.seen_through(EVERYTHING) is snapshot
    for table in snapshot.catalog.tables():
        version = snapshot.table(table.id)
        assert version is not None
        assert visible_table(snapshot, table) is open_table(snapshot.location, version)
        assert visible_ids(snapshot, table) is None

    def fail(*args: object) -> object:
        raise AssertionError("visible rows were looked for")

    monkeypatch.setattr(SnapshotReader, "_find", fail)
    for body in QUERIES.values():
        whole.query(f"query q() {{ {body} }}").rows()
    assert list(whole.diff("main@1", "main"))
    assert whole.stats().rows == 18


def _cost(graph: Graph, body: str) -> tuple[object, int, int]:
    """The plan of a query on cold caches, and the requests and bytes that it reads."""
    forget_tables()
    snapshot = graph._context.snapshot()
    engine = EmbeddedEngine()
    query = gq.compile_query(f"query q() {{ {body} }}", snapshot.catalog).query
    assert isinstance(query, ReadQuery)
    plan = plan_query(query, snapshot.catalog, engine.statistics(snapshot))
    tables = [visible_table(snapshot, table) for table in snapshot.catalog.tables()]
    before = sum((t.io() for t in tables if t is not None), IoCounters())
    engine.run(plan, snapshot, {}).rows()
    cost = sum((t.io() for t in tables if t is not None), IoCounters()) - before
    return plan.root, cost.requests, cost.bytes


@pytest.mark.parametrize("name", QUERIES)
def test_20_02_types_without_restrictions_cost_the_same(whole: Graph, name: str) -> None:
    """A visibility that hides nothing of the types at hand changes neither plans nor reads."""
    team = whole.snapshot().catalog.node("Team")
    assert team is not None
    rule = predicate(whole.snapshot().catalog, '$t: Team $t.name != "none"')
    elsewhere = restricted(whole, Visibility.of({team.id: rule}, {}))
    if name != "from the other type":
        assert _cost(elsewhere, QUERIES[name]) == _cost(whole, QUERIES[name])


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_20_02_random_visibilities(seed: int, tmp_path: Path) -> None:
    check_visibility(seed, tmp_path)


@pytest.mark.parametrize("name", ["visibility without its hash", "plans without the visibility"])
def test_20_02_a_cache_that_ignores_the_visibility_is_found(name: str, tmp_path: Path) -> None:
    with applied(name), pytest.raises(AssertionError):
        check_visibility(1, tmp_path)


def test_20_02_mutations_change_visible_rows_only(tmp_path: Path) -> None:
    graph = make(tmp_path / "g", lambda team: True)
    seen = restricted(graph)
    seen.mutate('query q() { update Person set { about: "new" } where name != "nobody" }')
    texts = {row["n"]: row["a"] for row in graph.query(ABOUT).rows()}
    assert {name for name, about in texts.items() if about == "new"} == {"ann", "cat", "eve"}
    seen.mutate("query q() { delete Knows where secret = true }")
    assert _edges(graph) == ["k1", "k2", "k3", "k4", "k5", "k6"]
    seen.mutate("query q() { delete Knows where secret = false }")
    assert _edges(graph) == ["k1", "k2", "k4", "k5"]
    seen.mutate('query q() { delete Person where name = "bob" }')
    assert "bob" in {row["n"] for row in graph.query(ABOUT).rows()}
    with pytest.raises(KeyConflictError):
        seen.mutate('query q() { insert Person { name: "bob", team: "red" } }')
    with pytest.raises(QueryError, match="salary"):
        seen.mutate('query q() { update Person set { salary: 1 } where name = "ann" }')
    with pytest.raises(QueryError, match="salary"):
        seen.mutate("query q() { delete Person where salary > 1 }")


ABOUT = "query q() { match { $p: Person } return { $p.name as n, $p.about as a } }"


def _edges(graph: Graph) -> list[str]:
    text = "query q() { match { $a: Person $a $k:knows $b } return { $k.id as id } }"
    return sorted(row["id"] for row in graph.query(text).rows())
