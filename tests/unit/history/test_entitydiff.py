"""Differences between versions of a table: forks, folded and compacted files, replaced rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from tests.support.branchgraphs import company, content, edge, new_graph, person, put
from tests.support.doorgraph import commit

from omnigraph.errors import HistoryReclaimedError
from omnigraph.history import entitydiff as differing
from omnigraph.history.entitydiff import diff_snapshots
from omnigraph.history.resolve import Target, resolve
from omnigraph.model.change import ChangeOp
from omnigraph.model.commit import CommitKind, Proposal
from omnigraph.model.snapshot import Snapshot
from omnigraph.operations.context import Context
from omnigraph.operations.requests import CreateBranch
from omnigraph.operations.verbs import run
from omnigraph.rows.checks import logical_schema
from omnigraph.storage import tableancestry, versiondiff
from omnigraph.storage.reclamation import drop_versions
from omnigraph.storage.stagedwrites import Stager
from omnigraph.storage.tableancestry import Point, meeting_of
from omnigraph.storage.tablehead import land, restore
from omnigraph.storage.versiondiff import delta_size, descends, row_delta

Brief = list[tuple[str, str]]


@pytest.fixture
def context(tmp_path: Path) -> Context:
    made = new_graph(str(tmp_path / "graph"))
    put(made, {"Person": [person(f"p{n:03d}", age=n % 90) for n in range(200)]})
    return made


def state(context: Context, branch: str = "main") -> Snapshot:
    return resolve(context.root, Target(branch))


def people(snapshot: Snapshot) -> Any:
    table = snapshot.catalog.node("Person")
    assert table is not None
    return snapshot.tables[table.id]


def changes(context: Context, before: Snapshot, after: Snapshot) -> Brief:
    return [(str(c.op), c.id) for c in diff_snapshots(context.root, before, after)]


def check(context: Context, before: Snapshot, after: Snapshot) -> None:
    """The diff is exactly the difference of the contents, both ways."""
    for old, new in ((before, after), (after, before)):
        was = content(context, old).get("Person", {})
        now = content(context, new).get("Person", {})
        expected = [
            ("insert" if key not in was else "delete" if key not in now else "update", key)
            for key in sorted(was.keys() | now.keys())
            if was.get(key) != now.get(key)
        ]
        assert changes(context, old, new) == expected


def test_only_what_changed_is_read(context: Context) -> None:
    before = state(context)
    put(context, {"Person": [person("p001", age=1), person("p002", age=99), person("new")]})
    after = state(context)
    delta = row_delta(context.root, people(before), people(after), ["id"])
    assert delta is not None
    assert (delta.older.num_rows, delta.written.num_rows) == (2, 3)
    assert delta_size(context.root, people(before), people(after)) == 5
    assert changes(context, before, after) == [("insert", "new"), ("update", "p002")]
    check(context, before, after)


def test_versions_that_grew_apart_meet(context: Context) -> None:
    base = state(context)
    for branch in ("a", "b"):
        run(context, CreateBranch(branch))
    put(context, {"Person": [person("p001", age=5), person("p002", age=5)]}, "a")
    put(context, {"Person": [person("p002", age=5), person("p003", age=6)]}, "b")
    put(context, {}, "b", removed={"Person": ["p004"]})
    run(context, CreateBranch("c", Target("b")))
    put(context, {"Person": [person("p005", age=7)]}, "c", removed={"Person": ["p001"]})
    one, two = state(context, "a"), state(context, "c")
    meeting = meeting_of(context.root, people(one), people(two))
    assert meeting is not None
    assert meeting.point == Point.of(people(base))
    assert len(meeting.to_after) == 2
    delta = row_delta(context.root, people(one), people(two), ["id"])
    assert delta is not None
    assert delta.older.num_rows <= 6
    for other in (base, two, state(context, "b")):
        check(context, one, other)
    assert descends(context.root, people(base), people(two))
    assert not descends(context.root, people(one), people(two))


def test_a_fork_whose_file_says_something_else(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then Lance is asked."""
    run(context, CreateBranch("a"))
    put(context, {"Person": [person("p001", age=1)]}, "a")
    base, one = people(state(context)), people(state(context, "a"))
    ask = context.root.objects.get
    for told in (b"{}", b"[]", b"no json"):
        monkeypatch.setattr(tableancestry, "_parents", tableancestry._Parents())
        monkeypatch.setattr(
            context.root.objects,
            "get_or_none",
            lambda path, told=told: replace(ask(path), data=told),
        )
        meeting = meeting_of(context.root, base, one)
        assert meeting is not None
        assert meeting.point == Point.of(base)


def test_versions_between_may_be_gone(context: Context) -> None:
    base = people(state(context))
    for branch in ("a", "b"):
        run(context, CreateBranch(branch))
        put(context, {"Person": [person("p001", age=len(branch)), person(branch)]}, branch)
    put(context, {"Person": [person("p009")]}, "b")
    one, two = state(context, "a"), state(context, "b")
    whole = changes(context, one, two)
    path = Path(context.root.location.path) / base.path / "_versions"
    (path / f"{2**64 - 1 - base.version:020d}.manifest").unlink()
    assert row_delta(context.root, people(one), people(two), ["id"]) is None
    assert changes(context, one, two) == whole
    check(context, one, two)


def test_many_small_commits_fold_files_and_nobody_notices(context: Context) -> None:
    before = state(context)
    for n in range(80):
        put(context, {"Person": [person(f"q{n % 40:03d}", age=n)]})
    after = state(context)
    check(context, before, after)
    run(context, CreateBranch("f", Target(version=10)))
    check(context, state(context, "f"), after)


def test_compaction_moves_rows_without_changing_them(context: Context) -> None:
    before = state(context)
    for n in range(10):
        put(context, {"Person": [person(f"p{n:03d}", age=n + 100)]})
    newest = state(context)
    uri = str(Path(context.root.location.path) / people(newest).path)
    lance.dataset(uri).optimize.compact_files()
    version = lance.dataset(uri).version
    compacted = replace(people(newest), version=version)
    after = replace(newest, tables={**newest.tables, compacted.table_id: compacted})
    assert changes(context, newest, after) == []
    delta = row_delta(context.root, people(newest), compacted, ["id"])
    assert delta is not None
    assert (delta.older.num_rows, delta.written.num_rows) == (0, 0)
    check(context, before, after)


def test_replaced_rows_are_compared_whole(context: Context) -> None:

    before = state(context)
    table = before.catalog.node("Person")
    assert table is not None
    rows = pa.Table.from_pylist(
        [person("p001", age=1), person("new")], schema=logical_schema(table)
    )
    staged = Stager(context.root, "main").overwrite(table, people(before), rows)
    commit(context.root, Proposal(before, (staged,), "act", CommitKind.LOAD))
    after = state(context)
    assert row_delta(context.root, people(before), people(after), ["id"]) is None
    assert len(changes(context, before, after)) == 200
    check(context, before, after)
    put(context, {"Person": [person("newer")]})
    check(context, before, state(context))


def test_a_table_that_was_put_back(context: Context) -> None:
    """A roll-back puts old rows on top of what it undoes; writing goes on from there."""
    before = state(context)
    old = people(before)
    table = before.catalog.node("Person")
    assert table is not None
    land(context.root, Stager(context.root, "main").delete(table, old, ["p001", "p002"]))
    back = replace(old, version=restore(context.root, old.path, old.fork, old.version))
    assert back.version == old.version + 2
    after = replace(before, tables={**before.tables, old.table_id: back})
    assert changes(context, before, after) == []
    staged = Stager(context.root, "main").delete(table, back, ["p003"])
    newest = replace(before, tables={**before.tables, old.table_id: land(context.root, staged)})
    check(context, before, newest)
    check(context, after, newest)


def test_large_differences_come_in_pieces(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = state(context)
    put(
        context,
        {"Person": [person(f"p{n:03d}", age=50) for n in range(0, 200, 3)] + [person("zz")]},
        removed={"Person": [f"p{n:03d}" for n in range(1, 200, 7)]},
    )
    after = state(context)
    whole = list(diff_snapshots(context.root, before, after))
    assert len(whole) > 80
    monkeypatch.setattr(differing, "PIECE_ROWS", 16)
    assert list(diff_snapshots(context.root, before, after)) == whole
    check(context, before, after)
    empty = resolve(context.root, Target(version=1))
    assert [c.op for c in diff_snapshots(context.root, empty, after)] == [ChangeOp.INSERT] * people(
        after
    ).rows


def test_the_order_is_nodes_edges_type_id(context: Context) -> None:
    before = resolve(context.root, Target(version=1))
    put(
        context,
        {
            "Knows": [edge("b", "p001", "p002"), edge("a", "p001", "p003")],
            "Company": [company("x")],
        },
    )
    found = list(diff_snapshots(context.root, before, state(context)))
    keys = [(c.kind == "edge", c.type_id, c.id) for c in found]
    assert keys == sorted(keys)
    assert len(keys) == 203


def test_history_that_goes_while_it_is_compared(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lance says `RuntimeError` when the version that a delta begins with is gone."""
    before = state(context)
    put(context, {"Person": [person("p001", age=91)]}, removed={"Person": ["p002"]})
    after = state(context)
    version, read = people(before), versiondiff._written

    def trimmed(*args: Any) -> Any:
        drop_versions(context.root, version.path, version.fork, [version.version])
        return read(*args)

    monkeypatch.setattr(versiondiff, "_written", trimmed)
    with pytest.raises(HistoryReclaimedError):
        changes(context, before, after)
