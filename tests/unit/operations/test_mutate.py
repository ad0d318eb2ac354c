"""Mutations: statements, what they see of each other, what they touch, what they refuse."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest
from tests.support.writegraphs import SCHEMA, heads, ids, new_graph, rows, values

import omnigraph
from omnigraph.engines.embedded import mutation
from omnigraph.errors import (
    DeniedError,
    InvalidArgumentError,
    InvalidDataError,
    KeyConflictError,
    LimitExceededError,
    QueryError,
)
from omnigraph.graph import Graph
from omnigraph.graph import open as open_graph
from omnigraph.model.write import Affected, WriteResult


@pytest.fixture
def graph(tmp_path) -> Graph:
    return new_graph(tmp_path)


def run(graph: Graph, body: str, **params: tuple[str, Any]) -> WriteResult:
    declared = ", ".join(f"${name}: {kind}" for name, (kind, _) in params.items())
    text = f"query change({declared}) {{ {body} }}"
    return graph.mutate(text, params={name: value for name, (_, value) in params.items()})


def people(graph: Graph, *names: str) -> None:
    run(graph, " ".join(f'insert Person {{ name: "{name}", age: 30 }}' for name in names))


def violations(error: pytest.ExceptionInfo[InvalidDataError]) -> list[tuple]:
    return [(v.record, v.type_name, v.property, v.rule) for v in error.value.violations]


def test_inserts_fill_defaults_and_make_ids(graph):
    result = run(graph, 'insert Person { name: "Ada" } insert Note { text: "hi" }')
    assert rows(graph, "Person") == [{"id": "Ada", "name": "Ada", "mood": "glad"}]
    (note,) = rows(graph, "Note")
    assert len(note["id"]) == 26
    assert result.affected == {"Person": Affected(inserted=1), "Note": Affected(inserted=1)}
    assert (result.nodes, result.edges) == (2, 0)
    assert result.commit is not None
    assert result.commit.id == graph.snapshot().commit_id


def test_a_null_that_is_said_is_no_default(graph):
    with pytest.raises(InvalidDataError) as error:
        run(graph, "insert Counter { number: 1, value: $v }", v=("I64?", None))
    assert violations(error) == [(0, "Counter", "value", "required")]


def test_a_mutation_is_one_version_per_table_and_one_commit(graph):
    """ledger: C03"""
    people(graph, "Ada", "Bob")
    before, sequence = heads(graph), graph.snapshot().sequence
    run(
        graph,
        """insert Person { name: "Cy" } insert Person { name: "Di" }
           update Person set { age: 1 } where name = "Cy"
           update Person set { age: 2 } where name = "Ada"
           insert Knows { from: "Cy", to: "Di" } insert Knows { from: "Di", to: "Ada" }""",
    )
    after = heads(graph)
    assert after["Person"] == (before["Person"][0] + 1, 4)
    assert after["Knows"] == (1, 2)
    assert graph.snapshot().sequence == sequence + 1


def test_a_failing_statement_leaves_nothing(graph):
    people(graph, "Ada")
    before = graph.snapshot()
    with pytest.raises(InvalidDataError):
        run(graph, 'insert Person { name: "Bob" } insert Knows { from: "Bob", to: "Zoe" }')
    assert graph.snapshot() == before


def test_statements_see_those_before_them(graph):
    """ledger: C04"""
    result = run(
        graph,
        """insert Person { name: "Ada", age: 1 }
           update Person set { age: age + 10 } where name = "Ada"
           update Person set { age: age + 100 } where age = 11
           update Person set { mood: "sad" } where age = 111
           insert Knows { from: "Ada", to: "Ada" }""",
    )
    assert rows(graph, "Person") == [{"id": "Ada", "name": "Ada", "age": 111, "mood": "sad"}]
    assert result.affected["Person"] == Affected(inserted=1)
    run(
        graph,
        """update Person set { age: 5 } where name = "Ada"
           update Person set { age: age * 2 } where age = 5
           update Person set { age: 0 } where age = 111""",
    )
    assert values(graph, "Person", "age") == {"Ada": 10}


def test_inserts_and_deletes_do_not_mix(graph):
    """ledger: C05"""
    before = graph.snapshot()
    with pytest.raises(QueryError, match=r"split|separate|two"):
        run(graph, 'insert Person { name: "Ada" } delete Person where name = "Ada"')
    assert graph.snapshot() == before


def test_what_matches_nothing_moves_nothing(graph):
    """ledger: C06"""
    people(graph, "Ada")
    before, commit = heads(graph), graph.snapshot().commit_id
    for body in (
        'delete Person where name = "Zoe"',
        'update Person set { age: 3 } where name = "Zoe"',
        'delete Knows where from = "Ada"',
        'upsert Person { name: "Ada" } on conflict nothing',
    ):
        result = run(graph, body)
        assert (result.commit, result.changed, result.affected) == (None, False, {})
    assert (heads(graph), graph.snapshot().commit_id) == (before, commit)


def test_deletes_of_one_query_are_one_version(graph):
    """ledger: C06"""
    people(graph, "Ada", "Bob", "Cy", "Di")
    before = heads(graph)
    run(graph, 'delete Person where name = "Ada" delete Person where name = "Bob"')
    assert heads(graph)["Person"] == (before["Person"][0] + 1, 2)
    assert ids(graph, "Person") == ["Cy", "Di"]


def test_overlapping_deletes_count_rows_once_and_nulls_hide_nothing(graph):
    """ledger: C07"""
    run(
        graph,
        """insert Person { name: "Ada", age: 30 } insert Person { name: "Bob", age: 40 }
           insert Person { name: "Cy" }
           insert Knows { from: "Ada", to: "Bob", how: "work" }
           insert Knows { from: "Cy", to: "Ada" }
           insert Knows { from: "Bob", to: "Cy" }""",
    )
    result = run(
        graph,
        """delete Person where age > 20 delete Person where age > 35
           delete Knows where how = "work" delete Knows where how is null""",
    )
    assert result.affected == {
        "Person": Affected(deleted=2),
        "Knows": Affected(deleted=3, is_edge=True),
    }
    assert ids(graph, "Person") == ["Cy"]


def test_a_deleted_node_takes_its_edges_of_every_type(graph):
    """ledger: C08"""
    run(
        graph,
        """insert Person { name: "Ada" } insert Person { name: "Bob" }
           insert Counter { number: 7 }
           insert Event { day: date("2024-01-31"), slot: 1 }
           insert Knows { from: "Ada", to: "Bob" } insert Knows { from: "Bob", to: "Ada" }
           insert Knows { from: "Bob", to: "Bob" } insert Knows { from: "Ada", to: "Ada" }
           insert Counts { from: "Ada", to: 7 } insert Counts { from: "Bob", to: 7 }""",
    )
    commit = graph.snapshot().sequence
    result = run(graph, 'delete Person where name = "Ada"')
    assert result.affected == {
        "Person": Affected(deleted=1),
        "Knows": Affected(deleted=3, is_edge=True),
        "Counts": Affected(deleted=1, is_edge=True),
    }
    assert [(r["src"], r["dst"]) for r in rows(graph, "Knows")] == [("Bob", "Bob")]
    assert [r["src"] for r in rows(graph, "Counts")] == ["Bob"]
    assert graph.snapshot().sequence == commit + 1
    run(graph, "delete Counter where number = 7")
    assert rows(graph, "Counts") == []


def test_a_keyed_insert_replaces_the_row_that_is_there(graph):
    people(graph, "Ada")
    result = run(graph, 'insert Person { name: "Ada", mood: "sad" }')
    assert rows(graph, "Person") == [{"id": "Ada", "name": "Ada", "mood": "sad"}]
    assert result.affected == {"Person": Affected(updated=1)}


def test_keys_are_typed(graph):
    run(
        graph,
        """insert Event { day: date("1970-01-02"), slot: 1, title: "a" }
           insert Event { day: date("1970-01-02"), slot: 2, title: "b" }
           insert Counter { number: -5 }
           insert Person { name: "Ada" } insert Counts { from: "Ada", to: -5 }""",
    )
    assert ids(graph, "Event") == ['["1","1"]', '["1","2"]']
    assert ids(graph, "Counter") == ["-5"]
    run(graph, 'insert Event { day: date("1970-01-02"), slot: 2, title: "c" }')
    assert values(graph, "Event", "title") == {'["1","1"]': "a", '["1","2"]': "c"}


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("update", {"age": 9, "email": "old"}),
        ("update set { age: age + 1 }", {"age": 31, "email": "old"}),
        ("replace", {"age": 9, "email": None}),
        ("nothing", {"age": 30, "email": "old"}),
    ],
)
def test_upserts_follow_their_policy(graph, policy, expected):
    run(graph, 'insert Person { name: "Ada", age: 30, email: "old" }')
    text = f'upsert Person {{ name: "Ada", age: 9 }} on conflict {policy}'
    result = run(graph, text)
    (ada,) = rows(graph, "Person")
    assert {name: ada.get(name) for name in expected} == expected
    assert result.affected == ({} if policy == "nothing" else {"Person": Affected(updated=1)})
    run(graph, text.replace("Ada", "Bob"))
    assert values(graph, "Person", "age")["Bob"] == 9


def test_a_strict_insert_names_the_id(graph):
    people(graph, "Ada")
    with pytest.raises(KeyConflictError) as error:
        run(graph, 'upsert Person { name: "Ada" } on conflict error')
    assert (error.value.type_name, error.value.ids) == ("Person", ("Ada",))


def test_a_key_cannot_be_updated(graph):
    with pytest.raises(QueryError, match="key"):
        run(graph, 'update Person set { name: "B" } where name = "A"')


def test_now_is_one_instant_per_query(graph):
    before = datetime.now(UTC)
    run(
        graph,
        """insert Event { day: date("2024-01-01"), slot: 1, at: now() }
           insert Event { day: date("2024-01-01"), slot: 2, at: now() }
           update Event set { at: now() } where slot = 1""",
    )
    instants = set(values(graph, "Event", "at").values())
    assert len(instants) == 1
    assert instants.pop() >= before.replace(microsecond=before.microsecond // 1000 * 1000)


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ('insert Person { name: "B", age: 151 }', (0, "Person", "age", "range")),
        (
            'insert Person { name: "B" } insert Person { name: "C", age: -1 }',
            (1, "Person", "age", "range"),
        ),
        ('update Person set { age: age * 100 } where name = "Ada"', (0, "Person", "age", "range")),
        ('insert Person { name: "B", email: "a@x" }', (0, "Person", "email", "unique")),
        (
            'insert Person { name: "B", email: "n" } insert Person { name: "C", email: "n" }',
            (1, "Person", "email", "unique"),
        ),
        ('update Person set { email: "a@x" } where name = "Bo"', (0, "Person", "email", "unique")),
        ('insert Note { text: "x", place: "p", floor: 1 }', (0, "Note", "floor, place", "unique")),
        (
            'insert Knows { from: "Bo", to: "Ada", how: "work" }',
            (0, "Knows", "how", "unique"),
        ),
    ],
)
def test_constraints_are_held(graph, body, found):
    """ledger: T01, T04"""
    run(
        graph,
        """insert Person { name: "Ada", age: 30, email: "a@x" } insert Person { name: "Bo" }
           insert Note { text: "n", place: "p", floor: 1 }
           insert Note { text: "m", place: "p" } insert Note { text: "l", place: "p" }
           insert Knows { from: "Ada", to: "Bo", how: "work" }""",
    )
    before = graph.snapshot()
    with pytest.raises(InvalidDataError) as error:
        run(graph, body)
    assert violations(error) == [found]
    assert graph.snapshot() == before


def test_a_unique_value_may_move_within_one_mutation(graph):
    """ledger: T04"""
    run(graph, 'insert Person { name: "A", email: "x" } insert Person { name: "B", email: "y" }')
    run(
        graph,
        """update Person set { email: "y" } where name = "A"
           update Person set { email: "x" } where name = "B" """,
    )
    assert values(graph, "Person", "email") == {"A": "y", "B": "x"}
    run(graph, 'insert Person { name: "A", email: "y" }')  # its own value is no conflict


def test_an_edge_needs_both_of_its_nodes(graph):
    """ledger: T05"""
    people(graph, "Ada")
    with pytest.raises(InvalidDataError) as error:
        run(graph, 'insert Knows { from: "Zoe", to: "Ada" } insert Knows { from: "Ada", to: "Yo" }')
    assert violations(error) == [(0, "Knows", "from", "endpoint"), (1, "Knows", "to", "endpoint")]
    assert ids(graph, "Person") == ["Ada"]
    with pytest.raises(InvalidDataError):  # a type that was never written has no nodes at all
        run(graph, 'insert Counts { from: "Ada", to: 1 }')


def test_cardinality_holds_at_both_ends_of_its_range(graph):
    run(
        graph,
        """insert Person { name: "Ada" }
           insert Event { day: date("2024-01-01"), slot: 1 }
           insert Event { day: date("2024-01-01"), slot: 2 }""",
    )
    first, second = ids(graph, "Event")
    attend = "insert Attends { from: $p, to: $e }"
    for event in (first, second, first):
        run(graph, attend, p=("String", "Ada"), e=("String", event))
    with pytest.raises(InvalidDataError) as error:
        run(graph, attend, p=("String", "Ada"), e=("String", second))
    assert violations(error) == [(0, "Attends", "from", "cardinality")]
    run(graph, "delete Attends where to = $e", e=("String", first))
    with pytest.raises(InvalidDataError) as error:
        run(graph, 'delete Attends where from = "Ada"')
    assert error.value.violations[0].rule == "cardinality"
    run(graph, 'delete Person where name = "Ada"')  # its edges go with it, and it needs none
    assert rows(graph, "Attends") == []


def test_blobs_stay_through_updates_of_other_properties(graph):
    """ledger: S06"""
    insert = "insert Note { text: $t, photo: $p }"
    for text, photo in (("a", b"\x00\xff"), ("b", b""), ("c", None)):
        run(graph, insert, t=("String", text), p=("Blob?", photo))
    run(graph, "update Note set { stars: 4.5 } where stars is null")
    found = {row["text"]: row.get("photo") for row in rows(graph, "Note")}
    assert found == {"a": b"\x00\xff", "b": b"", "c": None}


def test_values_outside_their_type_are_refused(graph):
    people(graph, "Ada")
    with pytest.raises(InvalidDataError) as error:
        run(graph, 'update Person set { age: age * 100000000 } where name = "Ada"')
    assert violations(error)[0][:3] == (0, "Person", "age")
    assert "in Person 'Ada'" in error.value.violations[0].message
    with pytest.raises(InvalidDataError):
        run(graph, 'insert Note { text: "x", stars: $s }', s=("F64", 1e300))


def test_a_mutation_is_bounded(graph, monkeypatch):
    people(graph, *(f"p{n}" for n in range(20)))
    monkeypatch.setattr(mutation, "MOST_BYTES", 100)
    with pytest.raises(LimitExceededError) as error:
        run(graph, "update Person set { age: 1 } where age = 30")
    assert error.value.resource == "memory_bytes"


def test_a_read_query_is_no_mutation(graph):
    with pytest.raises(InvalidArgumentError, match="changes nothing"):
        graph.mutate("query q() { match { $p: Person } return { $p.name } }")


def test_a_read_only_graph_refuses(graph):
    with pytest.raises(DeniedError):
        open_graph(graph.uri, read_only=True).mutate('query q() { insert Note { text: "x" } }')


def test_who_and_why_are_recorded(graph):
    result = graph.mutate('query q() { insert Note { text: "x" } }', message="first words")
    assert result.commit is not None
    assert (result.commit.actor, result.commit.message) == ("act-anna", "first words")
    assert str(result.commit.kind) == "mutate"


def test_dates_of_events_are_read_back(graph):
    run(graph, "insert Event { day: $d, slot: 1 }", d=("Date", "2024-02-29"))
    assert list(values(graph, "Event", "day").values()) == [date(2024, 2, 29)]


def test_a_graph_on_s3_is_written_alike(s3_root):
    graph = omnigraph.init(f"{s3_root}/graph", SCHEMA, actor="act-anna")
    run(graph, 'insert Person { name: "Ada" } insert Knows { from: "Ada", to: "Ada" }')
    run(graph, 'update Person set { age: 3 } where name = "Ada"')
    result = graph.ingest([{"name": "Bob", "age": 4}], type="Person")
    assert result.affected == {"Person": Affected(inserted=1)}
    assert values(graph, "Person", "age") == {"Ada": 3, "Bob": 4}
    run(graph, 'delete Person where name = "Ada"')
    assert (ids(graph, "Person"), rows(graph, "Knows")) == (["Bob"], [])
