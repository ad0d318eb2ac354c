"""Ingest: modes, inputs of every kind, and what is refused before anything moves."""

from __future__ import annotations

import io
import itertools
import json
from datetime import UTC, date, datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from tests.support.writegraphs import heads, ids, new_graph, rows, values

from omnigraph.errors import (
    InvalidArgumentError,
    InvalidDataError,
    KeyConflictError,
    LimitExceededError,
    OmniGraphError,
    TypeNotFoundError,
)
from omnigraph.graph import Graph
from omnigraph.intake.inputforms import supply
from omnigraph.model.write import Affected
from omnigraph.operations.ingest import Mode
from omnigraph.operations.requests import Ingest
from omnigraph.operations.verbs import run


@pytest.fixture
def graph(tmp_path) -> Graph:
    return new_graph(tmp_path)


def lines(*records: dict) -> bytes:
    return b"\n".join(json.dumps(record).encode() for record in records)


def person(name: str, **data: object) -> dict:
    return {"type": "Person", "data": {"name": name, **data}}


def knows(src: str, dst: str, **data: object) -> dict:
    return {"edge": "Knows", "from": src, "to": dst, "data": data}


def violations(error: pytest.ExceptionInfo[InvalidDataError]) -> list[tuple]:
    return [(v.record, v.type_name, v.property, v.rule) for v in error.value.violations]


# Truth tables. The graph holds Ada (age 1, email e1) and Bob (age 2). The input holds one or two
# people, of whom the second may repeat the first; with a constraint, it also takes Ada's email.

KEYS = {
    "new": ["Cy"],
    "existing": ["Ada"],
    "both": ["Cy", "Ada"],
    "repeated new": ["Cy", "Cy"],
    "repeated existing": ["Ada", "Ada"],
}


def expected_people(mode: Mode, names: list[str]) -> dict[str, int] | type[OmniGraphError]:
    """What a plain reading of the modes says."""
    stored = {"Ada": 1, "Bob": 2}
    repeats = len(set(names)) < len(names)
    if mode is not Mode.MERGE and repeats:
        return InvalidDataError
    if mode is Mode.APPEND and stored.keys() & set(names):
        return KeyConflictError
    given = {name: 10 + place for place, name in enumerate(names)}
    return given if mode is Mode.OVERWRITE else {**stored, **given}


@pytest.mark.parametrize(("mode", "case"), list(itertools.product(Mode, KEYS)))
def test_modes_by_key(graph, mode, case):
    """ledger: C09"""
    graph.ingest(lines(person("Ada", age=1, email="e1"), person("Bob", age=2)))
    names = KEYS[case]
    data = lines(*(person(name, age=10 + place) for place, name in enumerate(names)))
    expected = expected_people(mode, names)
    before = graph.snapshot()
    if isinstance(expected, dict):
        result = graph.ingest(data, mode)
        assert values(graph, "Person", "age") == expected
        assert heads(graph)["Person"][0] == 2  # one version, whatever the mode
        assert result.commit is not None
        assert str(result.commit.kind) == "load"
    else:
        with pytest.raises(expected):
            graph.ingest(data, mode)
        assert graph.snapshot() == before


@pytest.mark.parametrize(("mode", "case"), list(itertools.product(Mode, KEYS)))
@pytest.mark.parametrize("taken", ["e1", "e2", None])
def test_modes_by_key_under_a_constraint(graph, mode, case, taken):
    """ledger: C09, T04"""
    graph.ingest(lines(person("Ada", age=1, email="e1"), person("Bob", age=2, email="e2")))
    names = KEYS[case]
    records = [person(name, age=10 + place) for place, name in enumerate(names)]
    records[-1]["data"]["email"] = taken
    stored = {"Ada": "e1", "Bob": "e2"}
    kept = {} if mode is Mode.OVERWRITE else {n: e for n, e in stored.items() if n not in names}
    expected = expected_people(mode, names)
    if isinstance(expected, dict) and taken is not None and taken in kept.values():
        expected = InvalidDataError
    before = graph.snapshot()
    if isinstance(expected, dict):
        graph.ingest(lines(*records), mode)
        assert values(graph, "Person", "age") == expected
        assert values(graph, "Person", "email")[names[-1]] == taken
    else:
        with pytest.raises(expected):
            graph.ingest(lines(*records), mode)
        assert graph.snapshot() == before


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("given", ["e1", "e2", "own"])
def test_modes_for_edges_with_ids(graph, mode, given):
    """ledger: C09"""
    graph.ingest(lines(person("Ada"), person("Bob"), knows("Ada", "Bob", id="e1")))
    data = {} if given == "own" else {"id": given}
    result = (mode, given)
    if result == (Mode.APPEND, "e1"):
        with pytest.raises(KeyConflictError) as error:
            graph.ingest(lines(knows("Bob", "Ada", **data)), mode)
        assert error.value.ids == ("e1",)
        return
    graph.ingest(lines(knows("Bob", "Ada", **data)), mode)
    ends = {row["id"]: row["src"] for row in rows(graph, "Knows")}
    replaced = mode is Mode.OVERWRITE or result == (Mode.MERGE, "e1")
    assert len(ends) == (1 if replaced else 2)
    assert ends.get("e1") == ("Ada" if not replaced else None if given != "e1" else "Bob")


def test_a_conflict_names_the_ids(graph):
    graph.ingest([person(f"p{n}") for n in range(5)])
    with pytest.raises(KeyConflictError) as error:
        graph.ingest([person("p1"), person("q"), person("p3")])
    assert set(error.value.ids) == {"p1", "p3"}
    assert error.value.type_name == "Person"


def test_merge_gives_the_whole_new_row_and_the_last_record_wins(graph):
    """ledger: C09"""
    graph.ingest(lines(person("Ada", age=1, email="e1")))
    result = graph.ingest(
        lines(person("Ada", age=5), person("Bob", age=1), person("Ada", email="e3")), "merge"
    )
    assert rows(graph, "Person")[0] == {"id": "Ada", "name": "Ada", "email": "e3", "mood": "glad"}
    assert result.affected == {"Person": Affected(inserted=1, updated=1)}


def test_edges_may_come_before_their_nodes(graph):
    result = graph.ingest(lines(knows("Ada", "Bob"), person("Bob"), person("Ada")))
    assert result.affected == {
        "Person": Affected(inserted=2),
        "Knows": Affected(inserted=1, is_edge=True),
    }


def test_overwrite_replaces_the_types_of_the_input_and_no_others(graph):
    """ledger: C09"""
    graph.ingest(lines(person("Ada"), person("Bob"), {"type": "Note", "data": {"text": "n"}}))
    result = graph.ingest(lines(person("Cy")), "overwrite")
    assert ids(graph, "Person") == ["Cy"]
    assert len(ids(graph, "Note")) == 1
    assert result.affected == {"Person": Affected(inserted=1, deleted=2)}


def test_an_empty_input_replaces_too(graph):
    """ledger: C09"""
    graph.ingest(lines(person("Ada"), {"type": "Note", "data": {"text": "n"}}))
    result = graph.ingest([], "overwrite", type="Person")
    assert ids(graph, "Person") == []
    assert result.affected == {"Person": Affected(deleted=1)}
    graph.ingest(b"", "overwrite", types=["Note", "Person"])
    assert heads(graph)["Note"][1] == 0
    head = graph.snapshot().commit_id
    assert graph.ingest(b"", "overwrite", types=["Note"]).commit is None
    assert graph.snapshot().commit_id == head
    with pytest.raises(InvalidArgumentError, match="no type to replace"):
        graph.ingest(b"", "overwrite")


def test_overwrite_leaves_no_edge_without_its_node(graph):
    """ledger: T05"""
    graph.ingest(lines(person("Ada"), person("Bob"), knows("Ada", "Bob", id="e")))
    before = graph.snapshot()
    with pytest.raises(InvalidDataError) as error:
        graph.ingest(lines(person("Ada")), "overwrite")
    assert violations(error) == [(None, "Knows", "to", "endpoint")]
    assert graph.snapshot() == before
    graph.ingest(lines(person("Ada")), "overwrite", types=["Knows"])
    assert (ids(graph, "Person"), ids(graph, "Knows")) == (["Ada"], [])
    graph.ingest(lines(knows("Ada", "Ada")), "overwrite")  # against the nodes that are kept
    with pytest.raises(InvalidDataError):
        graph.ingest(lines(knows("Ada", "Bob")), "overwrite")


def test_nothing_to_do_is_no_commit(graph):
    head = graph.snapshot().commit_id
    for mode in ("append", "merge"):
        result = graph.ingest(b"\n\n", mode)
        assert (result.commit, result.affected) == (None, {})
    assert graph.snapshot().commit_id == head


def test_cardinality_counts_every_edge_once(graph):
    note = {"type": "Note", "data": {"id": "n", "text": "x"}}
    graph.ingest(lines(person("Ada"), person("Bob"), note))

    def wrote(src: str, id_: str) -> dict:
        return {"edge": "Wrote", "from": src, "to": "n", "data": {"id": id_}}

    graph.ingest(lines(wrote("Ada", "w1"), wrote("Ada", "w2")))
    with pytest.raises(InvalidDataError) as error:
        graph.ingest(lines(wrote("Bob", "w3"), wrote("Ada", "w4"), wrote("Ada", "w5")))
    assert violations(error) == [(1, "Wrote", "from", "cardinality")]
    graph.ingest(lines(wrote("Ada", "w1"), wrote("Ada", "w2")), "merge")
    graph.ingest(lines(wrote("Bob", "w1"), wrote("Ada", "w3")), "merge")  # moved, then filled
    graph.ingest(lines(wrote("Ada", "x"), wrote("Bob", "x"), wrote("Bob", "x")), "merge")
    with pytest.raises(InvalidDataError):
        graph.ingest(lines(wrote("Ada", "x")), "merge")


def test_the_minimum_is_asked_of_nodes_whose_edges_change(graph):
    event = {"type": "Event", "data": {"day": "2024-01-01", "slot": 1}}
    graph.ingest(lines(person("Ada"), person("Bob"), event))
    (target,) = ids(graph, "Event")

    def attends(src: str, id_: str) -> dict:
        return {"edge": "Attends", "from": src, "to": target, "data": {"id": id_}}

    graph.ingest(lines(attends("Ada", "a")))
    with pytest.raises(InvalidDataError) as error:  # moving its only edge leaves Ada with none
        graph.ingest(lines(attends("Bob", "a")), "merge")
    assert violations(error) == [(None, "Attends", "from", "cardinality")]


def test_all_violations_are_counted_and_a_hundred_are_listed(graph):
    """ledger: T01"""
    with pytest.raises(InvalidDataError) as error:
        graph.ingest(lines(*(person(f"p{n}", age=-n) for n in range(251))))
    assert error.value.total == 250
    assert [v.record for v in error.value.violations] == list(range(1, 101))
    assert error.value.violations[0].line == 2
    assert error.value.violations[0].value == -1
    with pytest.raises(InvalidDataError) as error:
        graph.ingest(lines(*(knows("no", "body") for _ in range(150))))
    assert error.value.total == 300
    assert len(error.value.violations) == 100


def test_typed_keys_name_the_ends_of_edges(graph):
    graph.ingest([person("Ada"), {"type": "Counter", "data": {"number": 7}}])
    counts = {"edge": "Counts", "from": "Ada", "to": "7"}
    graph.ingest(lines(counts, {**counts, "to": 7}))
    graph.ingest([{"from": "Ada", "to": 7}], type="Counts")
    graph.ingest(pa.table({"from": ["Ada"], "to": [7]}), type="Counts")
    assert [row["dst"] for row in rows(graph, "Counts")] == ["7"] * 4


# Inputs.

FRAME = {"name": ["Ada", "Bob"], "age": [36, None], "email": ["e", None]}
STORED = [
    {"id": "Ada", "name": "Ada", "age": 36, "email": "e", "mood": "glad"},
    {"id": "Bob", "name": "Bob", "mood": "glad"},
]
ENVELOPES = [person("Ada", age=36, email="e"), person("Bob", age=None)]


def envelope_inputs(tmp_path) -> dict[str, object]:
    data = lines(*ENVELOPES)
    path = tmp_path / "people.jsonl"
    path.write_bytes(data)
    return {
        "bytes": data,
        "text": data.decode(),
        "memoryview": memoryview(data),
        "path": path,
        "path as text": str(path),
        "file": io.BytesIO(data),
        "text file": io.StringIO(data.decode()),
        "lines": data.splitlines(keepends=True),
        "text lines": iter(data.decode().splitlines()),
        "dicts": ENVELOPES,
        "generator": (record for record in ENVELOPES),
    }


def row_inputs(tmp_path) -> dict[str, object]:
    table = pa.table(FRAME)
    pq.write_table(table, tmp_path / "people.parquet")
    feather.write_feather(table, tmp_path / "people.arrow")
    return {
        "table": table,
        "batch": table.to_batches()[0],
        "reader": table.to_reader(),
        "pandas": pd.DataFrame(FRAME),
        "polars": pl.DataFrame(FRAME),
        "rows": table.to_pylist(),
        "row generator": iter(table.to_pylist()),
        "parquet": tmp_path / "people.parquet",
        "arrow": str(tmp_path / "people.arrow"),
    }


@pytest.mark.parametrize(
    "kind",
    ["bytes", "text", "memoryview", "path", "path as text", "file", "text file", "lines",
     "text lines", "dicts", "generator"],
)  # fmt: skip
def test_envelopes_come_in_many_forms(graph, tmp_path, kind):
    graph.ingest(envelope_inputs(tmp_path)[kind])
    assert rows(graph, "Person") == STORED


@pytest.mark.parametrize(
    "kind",
    ["table", "batch", "reader", "pandas", "polars", "rows", "row generator", "parquet", "arrow"],
)
def test_rows_come_in_many_forms(graph, tmp_path, kind):
    graph.ingest(row_inputs(tmp_path)[kind], type="Person")
    assert rows(graph, "Person") == STORED


def test_several_types_in_one_commit(graph):
    result = graph.ingest(
        {"Knows": pa.table({"from": ["Ada"], "to": ["Bob"]}), "Person": pd.DataFrame(FRAME)}
    )
    assert result.affected["Knows"].inserted == 1
    assert len(ids(graph, "Person")) == 2


def test_python_values_are_taken_as_they_are(graph):
    graph.ingest(
        [
            {"text": "x", "stars": np.float32(0.5), "photo": b"\x00\x01", "floor": np.int64(3)},
        ],
        type="Note",
    )
    moment = datetime(2024, 1, 31, 10, 20, 30, 123456, tzinfo=UTC)
    graph.ingest([{"day": date(2024, 1, 31), "slot": 1, "at": moment}], type="Event")
    (note,) = rows(graph, "Note")
    assert (note["photo"], note["stars"], note["floor"]) == (b"\x00\x01", 0.5, 3)
    (event,) = rows(graph, "Event")
    assert event["at"] == moment.replace(microsecond=123000)


@pytest.mark.parametrize(
    ("data", "options", "expected"),
    [
        (pa.table(FRAME), {}, InvalidArgumentError),
        (b"{}", {"type": "Person"}, InvalidArgumentError),
        ([{"name": "x"}], {"type": "Persn"}, TypeNotFoundError),
        ([{"name": "x", "nick": 1}], {"type": "Person"}, InvalidDataError),
        ([{"name": object()}], {"type": "Person"}, InvalidDataError),
        ([{"name": "x", "age": float("inf")}], {"type": "Person"}, InvalidDataError),
        ([{"name": "x"}, "y"], {"type": "Person"}, InvalidArgumentError),
        ([1], {}, InvalidArgumentError),
        (7, {}, InvalidArgumentError),
        ("no/such/file.jsonl", {}, InvalidArgumentError),
        ("people.xlsx", {}, InvalidArgumentError),
        (b"", {"mode": "replace"}, InvalidArgumentError),
        (pa.table({"name": ["x"], "nick": [1]}), {"type": "Person"}, InvalidDataError),
        (pa.table({"name": [1]}), {"type": "Person"}, InvalidDataError),
    ],
)
def test_inputs_that_make_no_sense_are_refused(graph, data, options, expected):
    head = graph.snapshot().commit_id
    with pytest.raises(expected):
        graph.ingest(data, **options)
    assert graph.snapshot().commit_id == head


def test_records_are_counted_over_all_parts(graph):
    with pytest.raises(InvalidDataError) as error:
        graph.ingest({"Person": [{"name": "a"}, {"name": "b"}], "Note": [{"text": None}, {}]})
    assert violations(error) == [(2, "Note", "text", "required"), (3, "Note", "text", "required")]
    assert error.value.violations[0].line is None


@pytest.mark.parametrize("kind", ["bytes", "dicts", "table", "reader", "path"])
def test_inputs_are_bounded(graph, tmp_path, kind):
    table = pa.table({"name": [f"p{n:06d}" for n in range(1000)]})
    path = tmp_path / "x.jsonl"
    path.write_bytes(lines(*(person(n) for n in table.column("name").to_pylist())))
    data = {
        "bytes": path.read_bytes(),
        "dicts": table.to_pylist(),
        "table": table,
        "reader": table.to_reader(),
        "path": path,
    }[kind]
    named = {} if kind in ("bytes", "path") else {"type": "Person"}
    with pytest.raises(LimitExceededError) as error:
        run(graph._context, Ingest(data, most_bytes=1000, **named))
    assert error.value.resource == "input_bytes"
    assert error.value.limit == 1000


def test_many_rows_meet_many_rows(graph):
    """Beyond what single lookups serve: passes over whole columns give the same verdicts."""
    names = [f"p{n:06d}" for n in range(30_000)]
    people = pa.table({"name": names, "email": names})
    graph.ingest(people, type="Person")
    edges = pa.table({"src": names, "dst": names[::-1]})
    graph.ingest(edges, type="Knows")
    with pytest.raises(InvalidDataError) as error:
        graph.ingest(pa.table({"src": names, "dst": ["x", *names[1:]]}), type="Knows")
    assert violations(error) == [(0, "Knows", "to", "endpoint")]
    with pytest.raises(KeyConflictError) as conflict:
        graph.ingest(people, type="Person")
    assert conflict.value.details["total"] == 30_000
    other = pa.table({"name": [f"q{n}" for n in range(30_000)], "email": names})
    with pytest.raises(InvalidDataError) as error:
        graph.ingest(other, type="Person")
    assert error.value.total == 30_000
    result = graph.ingest(
        people.set_column(1, "email", pa.array(names[::-1])), "merge", type="Person"
    )
    assert result.affected == {"Person": Affected(updated=30_000)}
    assert heads(graph)["Person"] == (2, 30_000)


def test_a_file_is_read_again_while_it_stays_the_same(tmp_path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"type": "Person", "data": {"name": "Ada"}}\n')
    read = supply(path, None)
    assert read() == read()
    path.write_text('{"type": "Person", "data": {"name": "Augusta"}}\n')
    with pytest.raises(InvalidArgumentError, match="changed while it was ingested"):
        read()
    path.unlink()
    with pytest.raises(InvalidArgumentError, match="changed while it was ingested"):
        read()


def test_what_can_be_read_once_only_is_held() -> None:
    read = supply(iter(['{"type": "Person", "data": {"name": "Ada"}}']), None)
    assert read() == read() != ()
