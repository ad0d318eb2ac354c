"""The log: pages, filters, time travel, and readers that publishers overtake."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.doorgraph import age, branch, head, log_of, new_graph, rows, write

from omnigraph.errors import (
    BranchNotFoundError,
    CommitNotFoundError,
    GraphNotFoundError,
    InvalidArgumentError,
    InvariantViolationError,
)
from omnigraph.history.catalogs import schema_path
from omnigraph.history.log import (
    BranchLog,
    commit_at,
    filtered,
    find_before,
    find_by_prefix,
    walk,
)
from omnigraph.history.manifestrows import TAIL_COMMITS
from omnigraph.history.refs import branch_path, list_branches, read_branch
from omnigraph.history.resolve import Target, find_commit, resolve
from omnigraph.model.commit import Commit, CommitKind
from omnigraph.storage.root import GraphRoot

LONG = 3 * TAIL_COMMITS + 10


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> GraphRoot:
    """A graph with a long history: every tenth commit by ben, every fiftieth a load with rows."""
    root = new_graph(str(tmp_path_factory.mktemp("old") / "g"))
    base = head(root)
    for n in range(2, LONG + 1):
        actor = "act-ben" if n % 10 == 0 else "act-anna"
        if n % 50 == 0:
            write(root, {"A": {"x": n}}, actor=actor, kind=CommitKind.LOAD)
        else:
            write(root, base=base, actor=actor)
    return root


# ledger: B03
def test_the_whole_history_is_walked_newest_first(old: GraphRoot) -> None:
    commits = log_of(old)
    assert [commit.sequence for commit in commits] == list(range(LONG, 0, -1))
    assert commits[-1].kind is CommitKind.INIT


def test_a_recent_state_needs_no_history_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = new_graph(str(tmp_path / "g"))
    age(root, TAIL_COMMITS)
    write(root, {"A": {"x": 1}, "B": {"y": 1}, "Link": {"l": 1}})
    states = {BranchLog(root, "main").state.head.sequence: head(root).tables}
    steps: list[dict[str, Any]] = [
        {"tables": {"A": {"x": 2}}},
        {"dropped": (3,)},
        {"tables": {"B": {"y": 2}, "Link": {"l": 2}}},
        {"tables": {"A": {"x": 3}, "B": {"y": 3}}},
    ]
    for step in steps:
        made = write(root, **step)
        states[made.sequence] = head(root).tables
    line = BranchLog(root, "main")
    with monkeypatch.context() as patch:
        patch.setattr(BranchLog, "sealed", lambda *_: pytest.fail("it looked into history"))
        assert {sequence: line.tables_after(sequence) for sequence in states} == states
    assert line.tables_after(min(states) - 1) == {}  # which the newest commits do not tell


def test_the_newest_commits_need_no_history(
    old: GraphRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BranchLog, "sealed", None)
    newest = list(itertools.islice(walk(old, "main"), 5))
    assert [commit.sequence for commit in newest] == list(range(LONG, LONG - 5, -1))


@pytest.mark.parametrize("sequence", [1, 2, 49, 50, 51, 64, 65, 66, 128, 129, 130, LONG - 1, LONG])
def test_every_old_state_is_read_back(old: GraphRoot, sequence: int) -> None:
    snapshot = resolve(old, Target(version=sequence))
    assert snapshot.sequence == sequence
    expected = {"A": {"x": sequence // 50 * 50}} if sequence >= 50 else {}
    assert rows(old, snapshot) == expected


# ledger: B03
def test_commits_are_found_by_id_prefix_and_time(old: GraphRoot) -> None:
    commits = log_of(old)
    line = BranchLog(old, "main")
    for commit in commits[:: LONG // 9]:
        assert resolve(old, Target(commit=commit.id)).sequence == commit.sequence
        assert resolve(old, Target(commit=commit.id.lower())).commit_id == commit.id
        assert commit_at(line, commit.sequence) == commit
        at_that_time = resolve(old, Target(timestamp_us=commit.created_at_us))
        assert at_that_time.commit_id == commit.id
        if commit.sequence > 1:
            just_before = resolve(old, Target(timestamp_us=commit.created_at_us - 1))
            assert just_before.sequence == commit.sequence - 1


def test_what_is_not_there_is_said_so(old: GraphRoot) -> None:
    first = log_of(old)[-1]
    with pytest.raises(CommitNotFoundError):
        resolve(old, Target(timestamp_us=first.created_at_us - 1))
    for version in (0, -1, LONG + 1):
        with pytest.raises(CommitNotFoundError):
            resolve(old, Target(version=version))
    with pytest.raises(CommitNotFoundError):
        resolve(old, Target(commit="01ZZZZZZ"))
    with pytest.raises(InvalidArgumentError, match="at least 4"):
        resolve(old, Target(commit="01"))
    with pytest.raises(InvalidArgumentError, match="prefix of several"):
        resolve(old, Target(commit=first.id[:4]))
    with pytest.raises(InvalidArgumentError, match="not by several"):
        resolve(old, Target(commit=first.id, version=1))
    with pytest.raises(BranchNotFoundError):
        resolve(old, Target(branch="nobody"))


def test_a_unique_prefix_is_enough(tmp_path: Path) -> None:
    root = new_graph(str(tmp_path / "g"))
    done = write(root, {"A": {"x": 1}})
    line, commit = find_commit(root, done.id[:20])
    assert (line.branch_id, commit) == ("main", done)


# ledger: R05 C11
def test_the_log_is_filtered(old: GraphRoot) -> None:
    def sequences(**filters: Any) -> list[int]:
        return [commit.sequence for commit in filtered(old, "main", **filters)]

    everything = log_of(old)

    def expected(test: Callable[[Commit], bool]) -> list[int]:
        return [commit.sequence for commit in everything if test(commit)]

    assert sequences(actor="act-ben") == expected(lambda c: c.actor == "act-ben")
    assert sequences(kind="load") == expected(lambda c: c.kind is CommitKind.LOAD)
    assert sequences(kind="load", actor="act-anna") == []
    assert sequences(actor="nobody") == []
    middle = everything[100].created_at_us
    assert sequences(since_us=middle) == expected(lambda c: c.created_at_us >= middle)
    both = sequences(since_us=middle, actor="act-ben")
    assert both == expected(lambda c: c.created_at_us >= middle and c.actor == "act-ben")
    assert len(both) > 5


def test_a_branch_continues_its_parents_history(old: GraphRoot) -> None:
    branch(old, "f", sequence=100)
    base = head(old, "f")
    for _ in range(TAIL_COMMITS + 5):
        write(old, base=base, branch="f")
    branch(old, "g", "f", sequence=120)
    commits = log_of(old, "f")
    assert [c.branch for c in commits] == ["f"] * (TAIL_COMMITS + 5) + ["main"] * 100
    assert [c.branch for c in log_of(old, "g")] == ["f"] * 20 + ["main"] * 100
    assert resolve(old, Target(branch="g", version=99)).commit_id == commits[-99].id
    assert rows(old, resolve(old, Target(branch="g", version=120))) == {"A": {"x": 100}}
    fork = commits[-100]
    line = BranchLog(old, read_branch(old, "f").id)
    # The commit that it began at is stored with the branch and is still the parent's own.
    assert find_by_prefix(line, fork.id) == []
    assert find_before(line, 10**9, fork.created_at_us) is None
    assert resolve(old, Target(branch="f", timestamp_us=fork.created_at_us)).sequence == 100
    assert resolve(old, Target(branch="main", commit=commits[0].id)).sequence == 169


def test_a_reader_that_publishers_overtake_reads_on(tmp_path: Path) -> None:
    """Its segments are joined into others and its files trimmed while it reads."""
    root = new_graph(str(tmp_path / "g"))
    age(root, 2 * TAIL_COMMITS)
    reader = GraphRoot.at(root.uri)
    line = BranchLog(reader, "main")
    expected = [commit.id for commit in log_of(root)]
    walking = line.own_commits(line.state.head.sequence)
    begun = [next(walking)]
    # Enough for sixteen segments to be joined, and for the trim after that.
    age(root, 16 * TAIL_COMMITS)
    with pytest.raises(Exception, match=r"(?i)not found"):
        line.image.history()
    assert [commit.id for commit in [*begun, *walking]] == expected
    assert commit_at(line, 3).id == expected[-3]
    assert find_by_prefix(line, expected[-5])[0].sequence == 5
    assert line.tables_after(7) == {}
    assert len(log_of(root)) == 1 + 18 * TAIL_COMMITS


def test_no_graph_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(GraphNotFoundError):
        resolve(GraphRoot.at(str(tmp_path / "nothing")))


def test_damaged_references_are_loud(tmp_path: Path) -> None:
    root = new_graph(str(tmp_path / "g"))
    branch(root, "f")
    for content in (b"", b"[]", b"{", b'{"name": "f"}', b'{"name": "f", "id": "x", "new": 1}'):
        root.objects.put(branch_path("f"), content)
        with pytest.raises(InvariantViolationError, match="cannot be read"):
            read_branch(root, "f")
        with pytest.raises(InvariantViolationError):
            list_branches(root)


def test_a_schema_object_that_does_not_match_its_name_is_loud(tmp_path: Path) -> None:
    root = new_graph(str(tmp_path / "g"))
    first: Commit = log_of(root)[0]
    path = schema_path(first.schema_hash)
    text = root.objects.get(path).data.decode()
    root.objects.put(path, text.replace('"name":"A"', '"name":"Z"').encode())
    with pytest.raises(InvariantViolationError, match="does not hold the schema"):
        resolve(root)
