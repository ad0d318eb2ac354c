"""Equal inserts of one group, evaluated at once: the same as one after another, or not at all."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.engines.embedded import sharedinserts
from omnigraph.errors import OmniGraphError
from omnigraph.graph import Graph
from omnigraph.history.refs import MAIN
from omnigraph.operations import mutate
from omnigraph.operations.mutate import MutationRequest
from omnigraph.storage.root import GraphRoot
from omnigraph.writes import attempt, rowgroup
from omnigraph.writes.request import Conditions, Ticket

SCHEMA = """
node Person { name: String @key
    age: I32?
    email: String? @unique
    born: DateTime?
    @range(age, 0..150) }
node Note { text: String }
node Job { code: I64 @key }
edge Knows: Person -> Person { since: Date? }
edge Holds: Person -> Job @card(0..1)
"""
PERSON = (
    "query i($n: String, $a: I32?, $e: String?) "
    "{ insert Person { name: $n, age: $a, email: $e, born: now() } }"
)
NOTE = "query i($n: String) { insert Note { text: $n } }"
EDGE = "query i($n: String, $o: String) { insert Knows { from: $n, to: $o } }"
HELD = "query i($n: String, $c: I64) { insert Holds { from: $n, to: $c } }"
PAIR = (
    "query i($n: String, $o: String) "
    "{ insert Person { name: $n } insert Person { name: $o } insert Note { text: $n } }"
)
FRIEND = (
    "query i($n: String, $o: String) "
    "{ insert Person { name: $n } insert Knows { from: $n, to: $o } }"
)
TEXTS = (PERSON, NOTE, EDGE, HELD, PAIR, FRIEND)
VALUES = "match { $p: Person } return { $p.name, $p.age, $p.email } order { $p.name }"


def new_graph(folder: Path) -> Graph:
    graph = omnigraph.init(str(folder), SCHEMA, actor="act-anna")
    rows = [{"type": "Person", "data": {"name": f"old{n}", "email": f"e{n}"}} for n in range(4)]
    rows += [{"type": "Job", "data": {"code": n}} for n in range(3)]
    graph.ingest(rows)
    return graph


def group(graph: Graph, text: str, several: Iterable[dict[str, Any]]) -> list[Any]:
    """The outcomes of one group: what each changed, or the words of its error."""
    tickets = [
        Ticket(MutationRequest(text, Conditions("act-anna"), None, params, inserts_only=True))
        for params in several
    ]
    writer = attempt.BranchWriter(GraphRoot.at(graph.uri), MAIN)
    while waiting := [ticket for ticket in tickets if not ticket.is_done]:
        writer.write(waiting)
    return [_shown(ticket) for ticket in tickets]


def _shown(ticket: Ticket) -> Any:
    try:
        return {name: a.to_json() for name, a in ticket.outcome().affected.items()}
    except OmniGraphError as error:
        return type(error).__name__, error.message


def content(graph: Graph) -> list[Any]:
    asked = (
        VALUES,
        "match { $n: Note } return { $n.text } order { $n.text }",
        "match { $a: Person $a knows $b } return { $a.name as a, $b.name as b }",
        "match { $a: Person $a holds $b } return { $a.name as a, $b.code as b }",
    )
    found = [graph.query("query q() { " + text + " }").rows() for text in asked]
    return [sorted(rows, key=repr) for rows in found]


def params(chance: random.Random, text: str) -> dict[str, Any]:
    def name() -> str:
        return chance.choice(["old0", "old1", *(f"new{n}" for n in range(12))])

    if text == PERSON:
        age = chance.choice([None, 5, 30, 30, 30, 999])
        return {"n": name(), "a": age, "e": chance.choice([None, None, None, "e0", "f1", "f2"])}
    if text == NOTE:
        return {"n": name()}
    if text == HELD:
        return {"n": chance.choice(["old0", "old1", "old2", "gone"]), "c": chance.randrange(4)}
    return {"n": name(), "o": name()}


@pytest.mark.parametrize("text", TEXTS, ids=["node", "keyless", "edge", "card", "pair", "friend"])
def test_groups_come_to_the_same_as_one_after_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    chance = random.Random(text)
    at_once, singly = new_graph(tmp_path / "at-once"), new_graph(tmp_path / "singly")
    for _ in range(12):
        several = [params(chance, text) for _ in range(chance.choice([2, 3, 5]))]
        found = group(at_once, text, several)
        with monkeypatch.context() as patch:
            patch.setattr(rowgroup, "_leading_equals", lambda tickets: [])
            expected = group(singly, text, several)
        assert found == expected, several
        assert content(at_once) == content(singly), several


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether the groups that were tried could be evaluated at once."""
    seen: list[bool] = []

    def watched(*arguments: Any) -> sharedinserts.Shared | None:
        found = sharedinserts.insert_together(*arguments)
        seen.append(found is not None)
        return found

    monkeypatch.setattr(mutate, "insert_together", watched)
    return seen


def test_new_rows_are_evaluated_at_once(tmp_path: Path, shared: list[bool]) -> None:
    graph = new_graph(tmp_path / "graph")
    group(graph, PERSON, [{"n": f"p{n}", "a": n, "e": f"p{n}"} for n in range(5)])
    group(graph, NOTE, [{"n": "same"}] * 3)
    group(graph, EDGE, [{"n": f"p{n}", "o": "old0"} for n in range(5)])
    group(graph, PAIR, [{"n": f"a{n}", "o": f"b{n}"} for n in range(3)])
    assert shared == [True] * 4
    assert len(content(graph)[0]) == 4 + 5 + 6


@pytest.mark.parametrize(
    ("text", "several"),
    [
        (PERSON, [{"n": "a", "a": 1, "e": None}, {"n": "a", "a": 2, "e": None}]),
        (PERSON, [{"n": "a", "a": 1, "e": "x"}, {"n": "b", "a": 2, "e": "x"}]),
        (PERSON, [{"n": "a", "a": 1, "e": None}, {"n": "old0", "a": 2, "e": None}]),
        (PERSON, [{"n": "a", "a": 1, "e": None}, {"n": "b", "a": 999, "e": None}]),
        (EDGE, [{"n": "old0", "o": "old1"}, {"n": "old0", "o": "gone"}]),
        (HELD, [{"n": "old0", "c": 1}, {"n": "old1", "c": 1}]),
        (FRIEND, [{"n": "a", "o": "b"}, {"n": "b", "o": "old0"}]),
    ],
    ids=["key", "unique", "replaces", "range", "endpoint", "cardinality", "order"],
)
def test_what_may_fail_or_depends_on_order_is_not(
    tmp_path: Path, shared: list[bool], text: str, several: list[dict[str, Any]]
) -> None:
    group(new_graph(tmp_path / "graph"), text, several)
    assert shared
    assert not any(shared)
