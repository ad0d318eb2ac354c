"""Schema changes on real data: every step of the planner, what it leaves alone, what it refuses."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.schemachanges import BASE, CHANGES, apply, content, new_graph

import omnigraph
from omnigraph import faults
from omnigraph.errors import (
    CommitOutcomeUnknownError,
    HistoryReclaimedError,
    InvalidDataError,
    SchemaError,
    StorageTransientError,
)
from omnigraph.graph import Graph
from omnigraph.lang.pg import codes
from omnigraph.storage.table import open_table


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return new_graph(str(tmp_path / "g"))


Content = dict[str, list[dict[str, Any]]]
Effect = Callable[[Content], object]


def added(type_name: str, **values: Any) -> Effect:
    return lambda held: [row.update(values) for row in held[type_name]]


def lost(type_name: str, name: str) -> Effect:
    return lambda held: [row.pop(name) for row in held[type_name]]


def renamed(type_name: str, old: str, new: str) -> Effect:
    return lambda held: [row.update({new: row.pop(old)}) for row in held[type_name]]


def dropped(*names: str) -> Effect:
    return lambda held: [held.pop(name) for name in names]


def moved(old: str, new: str) -> Effect:
    return lambda held: held.update({new: held.pop(old)})


# What a change does to what a graph shows; all others do nothing.
EFFECTS: dict[str, list[Effect]] = {
    "add a type": [lambda held: held.update({"Pet": []})],
    "add an optional property": [added("Person", motto=None)],
    "add an optional blob": [added("Person", scan=None)],
    "add a constraint on a new property": [added("Person", tag=None)],
    "add a required property with a default": [added("Person", kind="human")],
    "add a required property to no rows": [],
    "rename a type": [moved("Person", "Human")],
    "rename an edge type": [moved("Lives", "Dwells")],
    "rename a property": [renamed("Person", "nick", "alias")],
    "drop a type": [dropped("Spare", "Extra")],
    "drop a type for good": [dropped("Spare", "Extra")],
    "drop a property": [lost("Person", "nick")],
    "drop a property for good": [lost("Person", "nick")],
    "drop a vector": [lost("Person", "vec")],
    "several at once": [
        renamed("Person", "nick", "alias"),
        added("Person", born=None),
        added("City", country="DE"),
        dropped("Spare", "Extra"),
        moved("Person", "Human"),
    ],
}


def expected(before: Content, name: str) -> Content:
    """What a graph holds after a change, said without the code that makes it."""
    after = copy.deepcopy(before)
    for effect in EFFECTS.get(name, []):
        effect(after)
    return after


# One of each way to go; the others are slow only because they are many.
QUICK = {
    "add an optional blob",
    "widen a float",
    "make required",
    "add a required property with a default",
    "drop a type for good",
    "several at once",
}


# ledger: T01 T02
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[] if n in QUICK else pytest.mark.slow) for n in CHANGES],
)
def test_every_change_on_real_data(graph: Graph, name: str) -> None:
    change, before = CHANGES[name], content(graph)
    plan = graph.plan_schema(change.schema, allow_data_loss=change.allow_data_loss).plan
    assert sorted({step.code for step in plan.steps}) == sorted(set(change.codes))
    assert content(graph) == before, "planning changed something"
    old = graph.snapshot()

    done = graph.apply_schema(change.schema, allow_data_loss=change.allow_data_loss)
    assert done.commit is not None
    assert content(graph) == expected(before, name)
    assert done.commit.sequence == old.sequence + 1
    assert graph.verify().findings == []
    # Once more is nothing; and the graph takes rows under its new schema.
    again = graph.apply_schema(change.schema, allow_data_loss=change.allow_data_loss)
    assert again.commit is None
    assert graph.plan_schema(change.schema).plan.is_empty
    graph.ingest([{"type": "City", "data": {"id": "new", "title": "t"}}])
    assert graph.verify().findings == []
    if change.allow_data_loss:
        with pytest.raises(HistoryReclaimedError):
            content(graph, commit=old.commit_id)
    else:
        assert content(graph, commit=old.commit_id) == before, "the past has changed"


def test_every_code_that_can_be_applied_is_applied_here_and_killed_in_crash() -> None:
    refused = {"OG-DS-101", "OG-ED-102", "OG-MF-106", "OG-VE-101", "OG-VE-102"}
    shown = {code for change in CHANGES.values() for code in change.codes}
    assert shown | refused == set(codes.CHANGES)


# ledger: T02
@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("    email: String? @unique", "    email: String @unique", "required"),
        ("    mood: enum(glad, sad)", "    mood: enum(glad, sad) @unique", "unique"),
        ("@range(0..100)", "@range(0..5)", "range"),
        ('"^[0-9]+$"', '"^1000[0-3]$"', "check"),
        ("edge Lives: Person -> City", "edge Lives: Person -> City @card(2..)", "card"),
        ("edge Extra: Person -> Spare", "edge Extra: Person -> Spare @card(1..)", "card"),
        ("    nick", "    must: I64\n    nick", "must be empty"),
        ("node City { title: String @index", "node City { title: String @key", "key"),
    ],
)
def test_data_that_does_not_allow_it(graph: Graph, old: str, new: str, rule: str) -> None:
    assert old in BASE
    head, before = graph.snapshot().commit_id, content(graph)
    with pytest.raises(InvalidDataError) as caught:
        graph.apply_schema(BASE.replace(old, new))
    assert {violation.rule for violation in caught.value.violations} <= {rule}
    assert caught.value.total > 0
    assert (graph.snapshot().commit_id, content(graph)) == (head, before)


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("level: I64 @range", "level: F64 @range", "OG-MF-106"),
        ("Vector(4)", "Vector(5)", "OG-VE-102"),
        ("edge Lives: Person -> City", "edge Lives: City -> City", "OG-ED-102"),
    ],
)
def test_changes_that_cannot_be_made(graph: Graph, old: str, new: str, code: str) -> None:
    before = content(graph)
    with pytest.raises(SchemaError) as caught:
        graph.apply_schema(BASE.replace(old, new))
    assert code in {each.code for each in caught.value.diagnostics}
    assert content(graph) == before


# ledger: T03
def test_a_rename_keeps_ids_data_indexes_and_history(graph: Graph) -> None:
    graph.optimize()
    old = graph.snapshot()
    table = old.catalog.node("Person")
    assert table is not None
    version = old.tables[table.id]
    indexes = open_table(old.location, version).indexes()
    assert indexes
    graph.apply_schema(CHANGES["rename a type"].schema)
    graph.apply_schema(
        CHANGES["rename a type"].schema.replace(
            "    nick: String?", '    alias: String? @rename_from("nick")'
        )
    )
    new = graph.snapshot()
    renamed = new.catalog.node("Human")
    assert renamed is not None
    assert renamed.id == table.id
    assert new.tables[table.id] == version, "a rename moved a table"
    assert open_table(new.location, new.tables[table.id]).indexes() == indexes
    said = "query q() { match { $p: Human { name: 'p03' } } return { $p.alias } }"
    assert graph.query(said.replace("'", '"')).rows() == [{"p.alias": "nick 3"}]
    past = 'query q() { match { $p: Person { name: "p03" } } return { $p.nick } }'
    assert graph.query(past, commit=old.commit_id).rows() == [{"p.nick": "nick 3"}]
    assert graph.query(past, version=old.sequence).rows() == [{"p.nick": "nick 3"}]


# ledger: T03
def test_dropping_and_adding_again_is_a_new_life(graph: Graph) -> None:
    without = BASE.replace("    nick: String?\n", "")
    graph.apply_schema(without)
    graph.apply_schema(BASE)
    assert {row["nick"] for row in content(graph)["Person"]} == {None}
    graph.ingest(
        [
            {
                "type": "Person",
                "data": {"name": "p03", "nick": "again", "mood": "sad", "level": 1, "zip": "1"},
            }
        ],
        "merge",
    )
    assert {row["nick"] for row in content(graph)["Person"]} == {None, "again"}
    assert graph.verify().findings == []


def test_a_branch_carries_its_own_schema(graph: Graph) -> None:
    other = graph.create_branch("try")
    other.apply_schema(CHANGES["rename a type"].schema)
    other.apply_schema(CHANGES["several at once"].schema)
    assert "Human" in content(other)
    assert "Person" in content(graph)
    graph.ingest([{"type": "City", "data": {"id": "m", "title": "main"}}])
    other.ingest([{"type": "City", "data": {"id": "t", "title": "try"}}])
    assert graph.verify().findings == []


def test_a_hard_drop_spares_what_others_still_show(graph: Graph) -> None:
    before = content(graph)
    graph.create_branch("old")
    graph.create_tag("v1")
    drop = CHANGES["drop a property for good"]
    graph.apply_schema(drop.schema, allow_data_loss=True)
    assert content(graph.on("old")) == before
    assert content(graph, tag="v1") == before
    graph.on("old").ingest([{"type": "City", "data": {"id": "t", "title": "x"}}])
    assert graph.verify().findings == []


def test_a_hard_drop_leaves_no_byte_behind(tmp_path: Path) -> None:
    graph = new_graph(str(tmp_path / "g"), BASE)
    secret = b"nick 11"
    assert any(secret in file.read_bytes() for file in tmp_path.rglob("*.lance"))
    graph.apply_schema(CHANGES["drop a property for good"].schema, allow_data_loss=True)
    assert not any(secret in file.read_bytes() for file in tmp_path.rglob("*.lance"))


def test_what_an_interrupted_hard_drop_left_is_removed_by_applying_again(tmp_path: Path) -> None:
    graph = new_graph(str(tmp_path / "g"))
    schema = CHANGES["drop a property for good"].schema
    with faults.armed("cleanup.before_reclaim", faults.Raise(StorageTransientError)):
        graph.apply_schema(schema, allow_data_loss=True)
    assert any(b"nick 11" in file.read_bytes() for file in tmp_path.rglob("*.lance"))
    assert graph.apply_schema(schema, allow_data_loss=True).commit is None
    assert not any(b"nick 11" in file.read_bytes() for file in tmp_path.rglob("*.lance"))


# ledger: T02
def test_concurrent_applies_serialize(tmp_path: Path) -> None:
    graph = new_graph(str(tmp_path / "g"))
    names = ["add a type", "add an optional property", "widen a float", "several at once"]
    results: dict[str, object] = {}

    def run(name: str) -> None:
        try:
            results[name] = apply(graph.uri, name)
        except Exception as error:  # noqa: BLE001 - looked at below
            results[name] = error

    threads = [threading.Thread(target=run, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Each applied its whole schema, so the last one stands; those that would undo renames of
    # another may be refused, but nothing is half done.
    assert all(isinstance(each, Graph | SchemaError) for each in results.values()), results
    assert graph.verify().findings == []
    kinds = [str(commit.kind) for commit in graph.commits()]
    assert kinds.count("schema") >= 1


def test_writers_that_are_always_faster_wait_in_the_end(tmp_path: Path) -> None:
    graph = new_graph(str(tmp_path / "g"))
    overtaken: list[str] = []

    class _Write(faults.Action):
        def perform(self, point: str) -> None:
            if threading.current_thread() is threading.main_thread() and len(overtaken) < 9:
                overtaken.append(point)
                data = {"id": f"w{len(overtaken)}", "title": "x"}
                thread = threading.Thread(
                    target=graph.ingest, args=([{"type": "City", "data": data}],)
                )
                thread.start()
                thread.join()

    schema = BASE.replace("size: I64?", 'size: I64?\n    country: String @default("DE")')
    with faults.armed("commit.before_lock", _Write()):
        assert graph.apply_schema(schema).commit is not None
    assert len(overtaken) > 1
    assert {row["country"] for row in content(graph)["City"]} == {"DE"}
    assert len(content(graph)["City"]) == 3 + len(overtaken)
    assert graph.verify().findings == []


# ledger: R07
def test_a_handle_sees_the_schema_that_recovery_published(tmp_path: Path) -> None:
    graph = new_graph(str(tmp_path / "g"))
    schema = CHANGES["add a required property with a default"].schema
    lost = faults.Raise(StorageTransientError("lost"))
    with (
        faults.armed("commit.before_publish", lost),
        pytest.raises(CommitOutcomeUnknownError),
    ):
        omnigraph.open(graph.uri).apply_schema(schema)
    # The old handle heals on its next write, and knows the new schema from then on.
    graph.mutate('query c() { insert City { title: "t" } }')
    graph.mutate(
        'query i() { insert Person { name: "new", mood: "sad", level: 1, zip: "1", kind: "x" } }'
    )
    kinds = {row["id"]: row["kind"] for row in content(graph)["Person"]}
    assert kinds["new"] == "x"
    assert kinds["p00"] == "human"
    assert graph.recoveries().pending == ()


# ledger: R08
def test_a_live_apply_is_not_healed_from_under_itself(tmp_path: Path) -> None:
    graph = new_graph(str(tmp_path / "g"))
    release = threading.Event()
    with faults.armed("commit.after_table", faults.Pause(release, nth=1)) as paused:
        worker = threading.Thread(target=apply, args=(graph.uri, "several at once"))
        worker.start()
        assert paused.reached.wait(60)
        reader = omnigraph.open(graph.uri, read_only=True)
        assert "Person" in content(reader)
        opener = threading.Thread(target=omnigraph.open, args=(graph.uri,))
        opener.start()  # waits for the lock instead of recovering
        opener.join(0.3)
        assert len(graph.recoveries().pending) == 1
        release.set()
        worker.join()
        opener.join()
    assert "Human" in content(graph)
    assert graph.recoveries().audit == ()
    assert graph.verify().findings == []


# ledger: R12
def test_apply_and_reopen_at_once_never_conflict(tmp_path: Path) -> None:
    graph = new_graph(str(tmp_path / "g"))
    lost = faults.Raise(StorageTransientError("lost"))
    with faults.armed("commit.before_disarm", lost):
        graph.apply_schema(CHANGES["several at once"].schema)
    assert len(graph.recoveries().pending) == 1  # the manifest is past the pin of this one
    opened = omnigraph.open(graph.uri)
    assert opened.recoveries().pending == ()
    assert [row["outcome"] for row in opened.recoveries().audit] == ["finished"]
    assert opened.apply_schema(CHANGES["several at once"].schema).commit is None
    assert graph.verify().findings == []


# ledger: T02
def test_a_change_stands_when_its_copy_for_people_cannot_be_written(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    from omnigraph.errors import StorageConfigurationError
    from omnigraph.storage.objects import ObjectStore

    put = ObjectStore.put

    def refuse(store: ObjectStore, path: str, data: bytes) -> str:
        if path == "_schema.pg":
            raise StorageConfigurationError(f"Could not write {path!r}.")
        return put(store, path, data)

    monkeypatch.setattr(ObjectStore, "put", refuse)
    changed = graph.apply_schema(CHANGES["add an optional property"].schema)
    assert changed.commit is not None
    assert "motto" in graph.schema()
