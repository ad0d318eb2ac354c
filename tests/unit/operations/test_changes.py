"""Following a graph: exact changes per commit, pages and cursors, baselines, gaps.

# ledger: B03
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.branchgraphs import SCHEMA, company, content, edge, new_graph, person, put

from omnigraph.errors import ChangeCursorError, ChangeFeedGapError, InvalidArgumentError
from omnigraph.history.resolve import Target, resolve
from omnigraph.model.catalog import TableKind
from omnigraph.model.change import Change, ChangeFilter, ChangeOp
from omnigraph.model.feed import FeedPage
from omnigraph.operations.context import Context
from omnigraph.operations.requests import (
    ApplySchema,
    CaptureBaseline,
    CreateBranch,
    DeleteBranch,
    FollowChanges,
    InstallBaseline,
    Merge,
    PollChanges,
    ReadCommitChanges,
    ReadCommitChangesPage,
    StreamBaseline,
)
from omnigraph.operations.verbs import run


@pytest.fixture
def context(tmp_path: Path) -> Context:
    made = new_graph(str(tmp_path / "graph"))
    put(
        made,
        {
            "Person": [person("anna", age=30), person("bob", age=40)],
            "Company": [company("acme")],
            "Knows": [edge("k1", "anna", "bob", since=1)],
        },
    )
    return made


def brief(changes: Any) -> list[tuple[str, str, str]]:
    return [(str(each.op), each.type_name, each.id) for each in changes]


def read_all(context: Context, limit: int, **start: Any) -> tuple[list[Change], str]:
    """Pages until the feed is caught up; also checks what every page promises."""
    found: list[Change] = []
    page = run(context, PollChanges(limit=limit, **start))
    while True:
        assert (page.cursor is None) != (page.next_page_token is None)
        changes = [change for block in page.blocks for change in block.changes]
        assert len(changes) <= limit
        found += changes
        if page.caught_up:
            assert page.cursor is not None
            return found, page.cursor
        more: dict[str, Any] = (
            {"cursor": page.cursor} if page.cursor else {"page_token": page.next_page_token}
        )
        page = run(context, PollChanges(limit=limit, **more))


def test_a_commit_tells_exact_images_in_order(context: Context) -> None:
    made = put(
        context,
        {
            "Person": [person("anna", age=31), person("cy")],
            "Knows": [edge("k1", "bob", "anna", since=1)],
        },
        removed={"Person": ["bob"]},
    )
    changes = list(run(context, ReadCommitChanges(made.id)))
    assert brief(changes) == [
        ("update", "Person", "anna"),
        ("delete", "Person", "bob"),
        ("insert", "Person", "cy"),
        ("update", "Knows", "k1"),
    ]
    anna, bob, cy, knows = changes
    assert (anna.before or {})["age"] == 30
    assert (anna.after or {})["age"] == 31
    assert (bob.after, cy.before) == (None, None)
    assert knows.before == {"src": "anna", "dst": "bob", "since": 1}
    assert knows.after == {"src": "bob", "dst": "anna", "since": 1}


def test_a_rewrite_of_the_same_values_is_no_change(context: Context) -> None:
    made = put(context, {"Person": [person("anna", age=30)]})
    assert list(run(context, ReadCommitChanges(made.id))) == []


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_pages_of_one_commit(context: Context, limit: int) -> None:
    made = put(context, {"Person": [person(f"p{n}") for n in range(5)]})
    found: list[Change] = []
    page: FeedPage = run(context, ReadCommitChangesPage(made.id, limit=limit))
    while True:
        assert page.cursor is None
        found += [change for block in page.blocks for change in block.changes]
        if page.next_page_token is None:
            break
        page = run(
            context, ReadCommitChangesPage(made.id, page_token=page.next_page_token, limit=limit)
        )
    assert brief(found) == brief(run(context, ReadCommitChanges(made.id)))
    with pytest.raises(InvalidArgumentError, match="no parent"):
        run(context, ReadCommitChangesPage(resolve(context.root, Target(version=1)).commit_id))


@pytest.mark.parametrize("limit", [1, 2, 7, 1000])
def test_the_feed_gives_everything_once_however_it_is_cut(context: Context, limit: int) -> None:
    put(context, {"Person": [person("cy"), person("anna", age=31)]})
    put(context, {}, removed={"Knows": ["k1"]})
    found, cursor = read_all(context, limit, start="beginning")
    whole = [
        change
        for block, _ in run(context, FollowChanges(start="beginning"))
        for change in block.changes
    ]
    assert found == whole
    assert len(found) == 7
    assert read_all(context, limit, cursor=cursor) == ([], cursor)
    put(context, {"Person": [person("dora")]})
    assert brief(read_all(context, limit, cursor=cursor)[0]) == [("insert", "Person", "dora")]


def test_where_a_feed_starts(context: Context) -> None:
    first = resolve(context.root, Target()).commit_id
    page = run(context, PollChanges())
    assert (page.blocks, page.caught_up) == ((), True)
    second = put(context, {"Person": [person("cy")]})
    assert page.cursor is not None
    assert brief(read_all(context, 10, cursor=page.cursor)[0]) == [("insert", "Person", "cy")]
    (block,) = run(context, PollChanges(start=f"after:{first}")).blocks
    assert block.cause.commit_id == second.id
    assert block.cause.parent_commit_id == first
    assert block.cause.actor == "act-anna"
    with pytest.raises(InvalidArgumentError, match="yesterday"):
        run(context, PollChanges(start="yesterday"))
    run(context, CreateBranch("f"))
    other = put(context, {"Person": [person("dora")]}, "f")
    with pytest.raises(InvalidArgumentError, match="not on the branch"):
        run(context, PollChanges(start=f"after:{other.id}"))
    # A branch's feed begins with what it inherited.
    assert [
        block.cause.authored_branch
        for block in run(context, PollChanges("f", start="beginning")).blocks
    ] == [
        "main",
        "main",
        "main",
        "f",
    ]


def test_a_poll_ends_where_the_branch_stood_when_it_began(context: Context) -> None:
    put(context, {"Person": [person(f"p{n}") for n in range(5)]})
    page = run(
        context,
        PollChanges(start=f"after:{resolve(context.root, Target(version=2)).commit_id}", limit=2),
    )
    assert page.next_page_token is not None
    put(context, {"Person": [person("late")]})
    page = run(context, PollChanges(page_token=page.next_page_token, limit=10))
    assert [change.id for block in page.blocks for change in block.changes] == ["p2", "p3", "p4"]
    assert not page.caught_up
    assert page.cursor is not None
    assert brief(read_all(context, 10, cursor=page.cursor)[0]) == [("insert", "Person", "late")]


def test_filters(context: Context) -> None:
    put(context, {"Person": [person("anna", age=31)], "Company": [company("bolt")]})
    wanted = [
        (ChangeFilter(kinds=frozenset({TableKind.EDGE})), ["k1"]),
        (ChangeFilter(types=frozenset({"Company"})), ["acme", "bolt"]),
        (ChangeFilter(ops=frozenset({ChangeOp.UPDATE})), ["anna"]),
    ]
    for filter_, ids in wanted:
        page = run(context, PollChanges(filter=filter_, start="beginning"))
        assert [change.id for block in page.blocks for change in block.changes] == ids
        assert len(page.blocks) == 3  # commits without such changes still move the feed


def test_a_merge_is_one_block_against_its_first_parent(context: Context) -> None:
    run(context, CreateBranch("f"))
    put(context, {"Person": [person("cy")]}, "f")
    put(context, {"Person": [person("dora")]})
    cursor = run(context, PollChanges()).cursor
    merged = run(context, Merge("f")).commit
    (block,) = run(context, PollChanges(cursor=cursor)).blocks
    assert brief(block.changes) == [("insert", "Person", "cy")]
    assert block.cause.merged_parent_commit_id == merged.parents[1]


def test_a_change_of_the_schema_is_a_block_without_changes(context: Context) -> None:
    cursor = run(context, PollChanges()).cursor
    run(context, ApplySchema(SCHEMA.replace("age: I32?", 'years: I32? @rename_from("age")')))
    (block,) = run(context, PollChanges(cursor=cursor)).blocks
    assert (block.changes, block.cause.schema_changed) == ((), True)
    put(context, {"Person": [person("anna", years=31)]})
    (_, block) = run(context, PollChanges(cursor=cursor)).blocks
    assert not block.cause.schema_changed
    assert (block.changes[0].before or {})["years"] == 30


def test_cursors_belong_to_graph_branch_and_filter(context: Context, tmp_path: Path) -> None:
    run(context, CreateBranch("f"))
    cursor = run(context, PollChanges("f")).cursor
    with pytest.raises(ChangeCursorError, match="another branch"):
        run(context, PollChanges(cursor=cursor))
    with pytest.raises(ChangeCursorError, match="another filter"):
        run(context, PollChanges("f", ChangeFilter(types=frozenset({"Person"})), cursor=cursor))
    run(context, DeleteBranch("f"))
    run(context, CreateBranch("f"))
    with pytest.raises(ChangeCursorError, match="another branch"):
        run(context, PollChanges("f", cursor=cursor))
    with pytest.raises(ChangeCursorError, match="another graph"):
        run(
            new_graph(str(tmp_path / "other")),
            PollChanges(cursor=run(context, PollChanges()).cursor),
        )
    with pytest.raises(ChangeCursorError, match=r"^change cursor rejected: it was not given"):
        run(context, PollChanges(cursor="nonsense"))
    with pytest.raises(ChangeCursorError, match="it is a cursor"):
        run(context, PollChanges(page_token=run(context, PollChanges()).cursor))
    token = run(context, PollChanges(start="beginning", limit=1)).next_page_token
    with pytest.raises(ChangeCursorError, match="it is a page token"):
        run(context, PollChanges(cursor=token))
    with pytest.raises(InvalidArgumentError, match="not both"):
        run(context, PollChanges(cursor="a", page_token="b"))


def test_a_baseline_and_the_feed_after_it_meet_exactly(context: Context, tmp_path: Path) -> None:
    records = list(run(context, StreamBaseline()))
    cursor = records.pop()["baseline"]["resume_cursor"]
    put(context, {"Person": [person("cy")]}, removed={"Knows": ["k1"]})
    state = {
        (record.get("type") or record["edge"], record["data"]["id"]): record for record in records
    }
    for change in read_all(context, 10, cursor=cursor)[0]:
        key = (change.type_name, change.id)
        if change.op is ChangeOp.DELETE:
            del state[key]
        else:
            assert key not in state
            state[key] = {}
    assert set(state) == {(t, key) for t, rows in content(context).items() for key in rows}


def test_a_baseline_is_installed_whole_or_not_at_all(
    context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state.jsonl"
    captured = run(context, InstallBaseline(path))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(lines) == 4
    assert captured.cursor == run(context, CaptureBaseline()).cursor
    from omnigraph.operations import baseline as module

    monkeypatch.setattr(module, "plain", lambda value: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run(context, InstallBaseline(path))
    assert [json.loads(line) for line in path.read_text().splitlines()] == lines
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".state")] == []


def test_a_gap_is_told_with_the_way_out(context: Context) -> None:
    made = put(context, {"Person": [person("anna", age=31)]})
    cursor = run(
        context,
        PollChanges(start=f"after:{resolve(context.root, Target(version=1)).commit_id}", limit=4),
    )
    people = resolve(context.root, Target(version=2)).catalog.node("Person")
    assert people is not None
    old = resolve(context.root, Target(version=2)).tables[people.id]
    folder = Path(context.root.location.path) / old.path / "_versions"
    for manifest in folder.glob("*.manifest"):
        if int(manifest.stem) == 2**64 - 1 - old.version:
            manifest.unlink()
    assert cursor.cursor is not None
    with pytest.raises(ChangeFeedGapError) as caught:
        run(context, PollChanges(cursor=cursor.cursor))
    assert caught.value.commit_id == made.id
    assert "baseline" in str(caught.value)
    with pytest.raises(ChangeFeedGapError):
        list(run(context, ReadCommitChanges(made.id)))
    assert run(context, PollChanges(cursor=run(context, CaptureBaseline()).cursor)).caught_up


def test_commits_of_one_group_have_changes_of_their_own(context: Context) -> None:
    """Several requests in one publish share their tables' versions."""
    import pyarrow as pa
    from tests.support.doorgraph import commit_all

    from omnigraph.history.refs import read_branch
    from omnigraph.model.commit import CommitKind, Proposal, Signature
    from omnigraph.storage.stagedwrites import Stager

    base = resolve(context.root, Target())
    table = base.catalog.node("Company")
    assert table is not None
    rows = pa.table({"id": ["x", "y", "z"], "name": ["x", "y", "z"]})
    staged = Stager(context.root, read_branch(context.root, "main").id).upsert(
        table, base.table(table.id), rows
    )
    own = [["x", "z"], ["y", "z"]]
    signatures = [
        Signature(
            "act",
            CommitKind.MUTATE,
            details={"group": {"place": n, "size": 2, "rows": {str(table.id): ids}}},
        )
        for n, ids in enumerate(own)
    ]
    first = signatures[0]
    cursor = run(context, PollChanges()).cursor
    commit_all(
        context.root,
        Proposal(
            base, (staged,), first.actor, first.kind, details=first.details, also=(signatures[1],)
        ),
    )
    blocks = run(context, PollChanges(cursor=cursor)).blocks
    assert [[change.id for change in block.changes] for block in blocks] == [["x"], ["y", "z"]]
