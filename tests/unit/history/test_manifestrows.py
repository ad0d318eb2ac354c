"""Manifest rows and names: what was encoded is decoded again, and nothing collides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import InvalidArgumentError, InvariantViolationError
from omnigraph.history import manifestrows as rows
from omnigraph.history.manifestrows import (
    TAIL_COMMITS,
    BranchState,
    Fork,
    advance,
    commit_from_json,
    decode_checkpoint,
    decode_commit,
    decode_state,
    encode_checkpoint,
    encode_commit,
    encode_state,
)
from omnigraph.history.refs import (
    Branch,
    Tag,
    check_name,
    decode_branch,
    decode_tag,
    encode_name,
)
from omnigraph.model.commit import Commit, CommitKind
from omnigraph.model.snapshot import TableVersion

FIRST = Commit("01", 1, (), "main", "anna", CommitKind.INIT, "", 1000, "hash")


def version(table_id: int, number: int) -> TableVersion:
    return TableVersion(table_id, f"nodes/{table_id}", None, number, number, 0)


def after(commit: Commit, *changes: TableVersion, dropped: tuple[int, ...] = ()) -> Commit:
    return replace(
        commit,
        id=f"{commit.sequence + 1:02d}",
        sequence=commit.sequence + 1,
        parents=(commit.id,),
        created_at_us=commit.created_at_us + 1,
        changes=changes,
        dropped=dropped,
    )


VERSIONS = st.builds(
    TableVersion,
    table_id=st.integers(1, 50),
    path=st.text(),
    fork=st.none() | st.text(),
    version=st.integers(1, 2**40),
    logical=st.integers(0, 2**40),
    rows=st.integers(0, 2**40),
    epoch=st.integers(0, 5),
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
COMMITS = st.builds(
    Commit,
    id=TEXT,
    sequence=st.integers(1, 2**40),
    parents=st.lists(TEXT).map(tuple),
    branch=TEXT,
    actor=TEXT,
    kind=st.sampled_from(CommitKind),
    message=TEXT,
    created_at_us=st.integers(0, 2**60),
    schema_hash=TEXT,
    changes=st.lists(VERSIONS, max_size=4).map(tuple),
    dropped=st.lists(st.integers(1, 50), max_size=3).map(tuple),
    idempotency_key=st.none() | TEXT,
    details=st.dictionaries(TEXT, st.none() | st.booleans() | st.integers(-(2**60), 2**60) | TEXT),
)


@given(COMMITS)
def test_a_commit_is_decoded_as_it_was(commit: Commit) -> None:
    row = encode_commit(commit)
    assert decode_commit(row) == commit
    assert (row.sequence, row.actor, row.kind) == (commit.sequence, commit.actor, commit.kind)


@given(
    st.lists(VERSIONS, unique_by=lambda each: each.table_id),
    st.none() | st.builds(Fork, TEXT, st.integers(1, 100), st.lists(TEXT).map(tuple)),
    st.integers(0, 2**50),
)
def test_a_state_is_decoded_as_it_was(
    versions: list[TableVersion], fork: Fork | None, fence: int
) -> None:
    tables = {each.table_id: each for each in versions}
    state = BranchState(tables, (FIRST,), (encode_checkpoint(1, "hash", tables),), fork, fence)
    assert decode_state(encode_state(state)) == state
    assert decode_checkpoint(state.checkpoints[0]) == tables


def test_what_two_tails_share_is_decoded_once_and_encoded_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    second = after(FIRST, version(7, 1))
    state = BranchState({7: version(7, 1)}, (FIRST, second), (), None, 0)
    decode_state(encode_state(state))
    moved, _ = advance(state, [replace(after(second), message="new in this test")], 0)
    decoded: list[str] = []

    def counting(value: Mapping[str, Any]) -> Commit:
        decoded.append(value["id"])
        return commit_from_json(value)

    monkeypatch.setattr(rows, "commit_from_json", counting)
    assert decode_state(encode_state(moved)).recent == moved.recent
    assert decoded == ["03"]
    # A publish that is repeated numbers its commits anew; their ids stay.
    again = BranchState(moved.tables, (FIRST, replace(second, sequence=9)), (), None, 0)
    assert decode_state(encode_state(again)).recent[-1].sequence == 9


def test_a_tail_without_its_head_is_loud() -> None:
    state = BranchState({}, (FIRST,), (), None, 0)
    with pytest.raises(InvariantViolationError):
        decode_state(encode_state(state)[1:])
    with pytest.raises(InvariantViolationError):
        decode_state(encode_state(state)[:-1])


@given(st.lists(st.integers(1, 200), min_size=1, max_size=12))
def test_however_commits_come_nothing_is_lost_and_checkpoints_are_near(sizes: list[int]) -> None:
    """Published in groups of any size, each commit is sealed or in the tail, once, in order."""
    state = BranchState({}, (FIRST,), (), None, 0)
    sealed = []
    last = FIRST
    for size in sizes:
        group = []
        for _ in range(size):
            last = after(last, version(1, last.sequence))
            group.append(last)
        state, left = advance(state, group, 0)
        sealed += left
    rows = [*sealed, *encode_state(state)]
    sequences = [row.sequence for row in rows if row.object_type == "commit"]
    assert sequences == list(range(1, last.sequence + 1))
    assert len(state.recent) <= 2 * TAIL_COMMITS
    near = [0, *(row.sequence or 0 for row in rows if row.object_type == "checkpoint")]
    for sequence in range(1, state.recent[0].sequence):
        before = max(each for each in near if each <= sequence)
        assert sequence - before <= 2 * TAIL_COMMITS
    assert state.tables[1] == last.changes[0]


def test_dropped_tables_leave_the_state() -> None:
    state = BranchState({}, (FIRST,), (), None, 0)
    second = after(FIRST, version(1, 1), version(2, 1))
    third = after(second, version(1, 2), dropped=(2,))
    state, _ = advance(state, [second, third], 7)
    assert set(state.tables) == {1}
    assert state.fence == 7


@given(st.lists(st.text(), min_size=2, max_size=6, unique=True))
def test_no_two_names_share_an_object(names: list[str]) -> None:
    usable = [name for name in names if max(name, default="") < "\ud800" or name.isprintable()]
    encoded = [encode_name(name).lower() for name in usable]
    assert len(set(encoded)) == len(usable)
    for text in encoded:
        assert len(text) <= 160
        assert text.isascii()
        assert not set(text) & set('/\\:*?"<>| \0')


@given(st.text(max_size=300))
def test_every_name_is_usable_or_refused_with_a_reason(name: str) -> None:
    try:
        check_name(name)
    except InvalidArgumentError:
        return
    assert name == name.strip()
    assert 0 < len(name.encode()) <= 255


def test_references_are_decoded_as_they_were() -> None:
    branch = Branch("a/b", "01x", "main", "01", 3, ("main",), 5, "anna", "c", "d")
    assert decode_branch(branch.to_bytes(), "a/b") == branch
    tag = Tag("v1", "main", "01", 3, 5, "anna", "first")
    assert decode_tag(tag.to_bytes(), "v1") == tag
