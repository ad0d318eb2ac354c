"""Ids, repeats, and which set checks a delta needs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from omnigraph.lang import pg
from omnigraph.rows.checks import check_rows
from omnigraph.rows.deltas import TableDelta, merged, no_rows, removal
from omnigraph.rows.findings import Findings, Origin
from omnigraph.rows.identities import identify, with_named_ends
from omnigraph.rows.setchecks import (
    Attached,
    Count,
    Endpoint,
    FreeId,
    Unique,
    distinct_ids,
    last_of_each,
    repeats,
    set_checks,
)

CATALOG = pg.compile_schema("""
node Person { name: String @key
    email: String? @unique }
node Event { day: Date
    slot: I32
    @key(day, slot) }
node Note { text: String? }
edge Knows: Person -> Person @card(0..2)
edge Wrote: Person -> Note
""")
PERSON, EVENT, NOTE = CATALOG.nodes
KNOWS, WROTE = CATALOG.edges


def shaped(table, data: pa.Table) -> tuple[pa.Table, list[tuple]]:
    findings = Findings()
    rows = check_rows(table, with_named_ends(table, data), Origin(), findings)
    if not findings:
        rows = identify(table, rows, Origin(), findings)
    return rows, [(v.record, v.property, v.rule) for v in findings.violations]


def test_a_key_spells_the_id():
    rows, found = shaped(PERSON, pa.table({"name": ["Ada"], "id": ["Ada"]}))
    assert (rows.column("id").to_pylist(), found) == (["Ada"], [])
    rows, found = shaped(EVENT, pa.table({"day": ["1970-01-02"], "slot": [3]}))
    assert (rows.column("id").to_pylist(), found) == (['["1","3"]'], [])


def test_an_id_that_came_along_must_be_the_one_that_the_key_spells():
    _, found = shaped(PERSON, pa.table({"name": ["Ada", "Bob"], "id": ["Ada", "bob"]}))
    assert found == [(1, "id", "id")]


def test_without_a_key_an_id_is_kept_or_made():
    rows, found = shaped(NOTE, pa.table({"id": ["n1", None, None]}))
    ids = rows.column("id").to_pylist()
    assert found == []
    assert ids[0] == "n1"
    assert len(ids[1]) == 26
    assert ids[1] < ids[2]


def test_edges_name_both_ends_by_id_or_typed_key():
    rows, found = shaped(KNOWS, pa.table({"from": [1, 2], "to": ["x", None]}))
    assert rows.column("src").to_pylist() == ["1", "2"]
    assert found == [(1, "to", "required")]


def test_repeats_name_the_first():
    later, firsts = repeats(pa.array(["a", None, "b", "a", None, "b", "a"]))
    assert later.tolist() == [3, 5, 6]
    assert firsts.tolist() == [0, 2, 0]
    assert repeats(pa.array(["a", None, None]))[0].tolist() == []


def test_repeated_ids_are_reported_with_both_records():
    findings = Findings()
    rows = pa.table({"id": ["a", "b", "a"]})
    distinct_ids(PERSON, rows, Origin(np.array([5, 6, 9])), findings)
    (violation,) = findings.violations
    assert (violation.record, violation.rule, violation.value) == (9, "key", "a")
    assert "record 5" in violation.message


def test_the_last_record_of_an_id_wins():
    """ledger: C09"""
    rows = pa.table({"id": ["a", "b", "a", "c"], "n": [1, 2, 3, 4]})
    kept, origin = last_of_each(rows, Origin(np.array([7, 1, 2, 0])))
    assert kept.to_pylist() == [{"id": "a", "n": 1}, {"id": "b", "n": 2}, {"id": "c", "n": 4}]
    assert origin.records is not None
    assert origin.records.tolist() == [7, 1, 0]


def rows_of(table, data: pa.Table) -> pa.Table:
    rows, found = shaped(table, data)
    assert found == []
    return rows


def test_what_a_delta_has_to_ask():
    people = TableDelta(PERSON, rows_of(PERSON, pa.table({"name": ["a"]})), strict=True)
    knows = TableDelta(KNOWS, rows_of(KNOWS, pa.table({"src": ["a"], "dst": ["a"]})), fresh=True)
    assert set_checks(CATALOG, {PERSON.id: people, KNOWS.id: knows}) == (
        FreeId(PERSON),
        Unique(PERSON, ("email",)),
        Endpoint(KNOWS, "src", PERSON),
        Endpoint(KNOWS, "dst", PERSON),
        Count(KNOWS, PERSON),
    )
    emptied = TableDelta(NOTE, no_rows(NOTE), replaces=True)
    assert set_checks(CATALOG, {NOTE.id: emptied}) == (Attached(NOTE, WROTE, "dst"),)
    gone = removal(PERSON, ["a"])
    assert set_checks(CATALOG, {PERSON.id: gone}) == (
        Attached(PERSON, KNOWS, "src"),
        Attached(PERSON, KNOWS, "dst"),
        Attached(PERSON, WROTE, "src"),
    )
    assert set_checks(CATALOG, {PERSON.id: removal(PERSON, ["a"], cascaded=True)}) == ()


def test_deltas_follow_each_other():
    first = TableDelta(PERSON, rows_of(PERSON, pa.table({"name": ["a", "b"], "email": ["1", "2"]})))
    then = TableDelta(PERSON, rows_of(PERSON, pa.table({"name": ["b", "c"], "email": ["3", "4"]})))
    both = merged(first, then)
    assert {r["id"]: r["email"] for r in both.rows.to_pylist()} == {"a": "1", "b": "3", "c": "4"}
    less = merged(both, removal(PERSON, ["a", "z"]))
    assert less.ids.to_pylist() == ["b", "c"]
    assert less.removed.to_pylist() == ["a", "z"]
    again = merged(less, first)
    assert sorted(again.ids.to_pylist()) == ["a", "b", "c"]
    assert again.removed.to_pylist() == ["z"]
