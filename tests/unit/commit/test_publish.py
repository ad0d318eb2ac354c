"""Publishing: fences, numbering, and several commits at once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.doorgraph import (
    ACTOR,
    HaltError,
    age,
    audit_rows,
    branch,
    commit_all,
    fast_forward,
    head,
    log_of,
    new_graph,
    pending,
    propose,
    rows,
    write,
)

from omnigraph import faults
from omnigraph.commit import door
from omnigraph.commit.branches import replace_branch
from omnigraph.commit.publish import Claim, claim, number, publish
from omnigraph.commit.recovery import sweep
from omnigraph.errors import (
    ConflictError,
    InvalidArgumentError,
    ReadSetChangedError,
    VersionConflictError,
)
from omnigraph.history.log import BranchLog
from omnigraph.history.manifestrows import TAIL_COMMITS
from omnigraph.history.refs import list_branches, read_branch
from omnigraph.model.commit import CommitKind, Proposal, Signature
from omnigraph.storage.locks import writer_lock
from omnigraph.storage.root import GraphRoot


@pytest.fixture
def root(tmp_path: Path) -> GraphRoot:
    root = new_graph(str(tmp_path / "g"))
    write(root, {"A": {"x": 1}})
    return root


def anything(_: BranchLog) -> None:
    """No further conditions."""


# ledger: C17
def test_a_greater_fence_keeps_a_late_publisher_out(root: GraphRoot) -> None:
    stale = BranchLog(GraphRoot.at(root.uri), "main")
    with writer_lock(root.objects, "main", owner=ACTOR) as token:
        mine = claim(stale, token)
        later = Claim(token, mine.fence + 10)
        publish(BranchLog(root, "main"), [replace(stale.state.head, id="01LATER")], later, anything)
        with pytest.raises(ReadSetChangedError, match="took over"):
            publish(stale, [replace(stale.state.head, id="01STALE")], mine, anything)
    assert log_of(root)[0].id == "01LATER"


# ledger: C17
def test_a_lock_that_was_lost_publishes_nothing(root: GraphRoot) -> None:
    line = BranchLog(root, "main")
    with writer_lock(root.objects, "main", owner=ACTOR) as token:
        mine = claim(line, token)
    with pytest.raises(ConflictError, match="released"):
        publish(line, [replace(line.state.head, id="01STALE")], mine, anything)
    with writer_lock(root.objects, "main", owner=ACTOR) as token:
        Path(root.uri, "__locks", "writer-main.lock").unlink()
        with pytest.raises(ConflictError, match="removed"):
            publish(line, [replace(line.state.head, id="01STALE")], claim(line, token), anything)
    assert len(log_of(root)) == 2


def test_a_graph_copied_without_its_locks_goes_on(root: GraphRoot) -> None:
    for lock in Path(root.uri, "__locks").iterdir():
        lock.unlink()
    write(GraphRoot.at(root.uri), {"A": {"x": 2}})
    assert rows(root) == {"A": {"x": 2}}


def test_numbers_parents_and_times_follow_from_the_head(root: GraphRoot) -> None:
    line = BranchLog(root, "main")
    head = line.state.head
    planned = [replace(head, id=f"01{n}", parents=("", "01OTHER")[: n + 1]) for n in range(3)]
    numbered = number(line, planned)
    assert [each.sequence for each in numbered] == [3, 4, 5]
    assert numbered[0].parents == (head.id,)
    assert numbered[1].parents == ("010", "01OTHER")
    assert head.created_at_us < numbered[0].created_at_us < numbered[1].created_at_us


# ledger: C01 C11
@pytest.mark.parametrize("others", [1, 2, 3 * TAIL_COMMITS])
def test_several_requests_share_one_publish(root: GraphRoot, others: int) -> None:
    also = tuple(
        Signature(f"act-{n}", CommitKind.MUTATE, f"number {n}", f"key {n}") for n in range(others)
    )
    before = BranchLog(root, "main").image.version
    made = commit_all(root, propose(root, {"A": {"x": 2}}, also=also, idempotency_key="k"))
    assert BranchLog(root, "main").image.version == before + 1
    assert len(made) == 1 + others
    assert [each.id for each in log_of(root)][: 1 + others] == [each.id for each in made][::-1]
    assert made[1].actor == "act-0"
    assert write(root, idempotency_key=f"key {others - 1}") == made[-1]
    # One of the group was done before: then the group is not what it was when it was put together.
    with pytest.raises(ReadSetChangedError):
        commit_all(root, propose(root, {"A": {"x": 3}}, also=also))
    assert rows(root) == {"A": {"x": 2}}


def test_an_interrupted_group_is_recovered_whole(root: GraphRoot) -> None:
    also = tuple(Signature(f"act-{n}", CommitKind.MUTATE) for n in range(3))
    proposal = propose(root, {"A": {"x": 2}}, also=also)
    with faults.armed("commit.before_publish", faults.Raise(HaltError)), pytest.raises(HaltError):
        commit_all(root, proposal)
    fresh = GraphRoot.at(root.uri)
    sweep(fresh)
    assert len(log_of(fresh)) == 2 + 4
    assert rows(fresh) == {"A": {"x": 2}}
    assert len(audit_rows(fresh)) == 1
    assert pending(fresh) == []


def test_a_proposal_may_be_prepared_under_the_lock(root: GraphRoot) -> None:
    def prepare(line: BranchLog) -> Proposal:
        assert line.state.head.sequence == head(root).sequence
        return propose(root, {"A": {"x": rows(root)["A"]["x"] + 1}})

    for _ in range(3):
        door.commit(root, "main", ACTOR, CommitKind.MUTATE, prepare)
    assert rows(root) == {"A": {"x": 4}}
    assert door.commit(root, "main", ACTOR, CommitKind.MUTATE, lambda line: None) == []
    with pytest.raises(InvalidArgumentError):
        door.commit(
            root, "main", ACTOR, CommitKind.MUTATE, lambda line: two_writes_to_one_table(root)
        )


def two_writes_to_one_table(root: GraphRoot) -> Proposal:
    proposal = propose(root, {"A": {"x": 2}})
    return replace(proposal, staged=proposal.staged * 2)


# ledger: B02
def test_versions_of_another_branch_are_taken_over_as_they_are(root: GraphRoot) -> None:
    branch(root, "f")
    write(root, {"A": {"x": 2}, "B": {"y": 2}}, branch="f")
    theirs = head(root, "f").tables
    proposal = propose(root, adopted=tuple(theirs.values()), kind=CommitKind.MERGE)
    write(root, {"A": {"z": 9}})
    with pytest.raises(VersionConflictError):
        commit_all(root, proposal)
    commit_all(root, propose(root, adopted=tuple(theirs.values()), kind=CommitKind.MERGE))
    assert head(root).tables == theirs
    # Each goes on alone afterwards.
    write(root, {"A": {"x": 3}})
    write(root, {"A": {"x": 4}}, branch="f")
    assert rows(root)["A"] == {"x": 3}
    assert rows(root, "f")["A"] == {"x": 4}


# ledger: B02
def test_a_fast_forward_takes_commits_over_or_nothing(root: GraphRoot) -> None:
    branch(root, "f")
    made = [write(root, {"A": {"x": n}}, branch="f") for n in (2, 3)]
    branch(root, "g")
    write(root, {"B": {"y": 1}}, branch="g")
    with pytest.raises(ReadSetChangedError, match="new commits"):
        fast_forward(root, "g", made, ACTOR)
    assert fast_forward(root, "main", made, ACTOR).id == made[-1].id
    assert rows(root) == rows(root, "f") == {"A": {"x": 3}}
    assert log_of(root)[:2] == made[::-1]
    write(root, {"A": {"x": 4}})
    assert rows(root, "f") == {"A": {"x": 3}}


def test_a_long_fast_forward_is_one_publish(root: GraphRoot) -> None:
    branch(root, "f")
    age(root, 3 * TAIL_COMMITS, "f")
    made = log_of(root, "f")[: 3 * TAIL_COMMITS][::-1]
    fast_forward(root, "main", made, ACTOR)
    assert [each.id for each in log_of(root)] == [each.id for each in log_of(root, "f")]
    for sequence in (2, 50, 100, 190):
        assert BranchLog(root, "main").tables_after(sequence) == head(root).tables


def test_a_name_may_be_given_to_another_branch(root: GraphRoot) -> None:
    branch(root, "f")
    write(root, {"A": {"x": 2}}, branch="f")
    old = read_branch(root, "f")
    other = branch(root, "rebased")
    write(root, {"A": {"x": 3}}, branch="rebased")
    with pytest.raises(ConflictError, match="got commits"):
        replace_branch(root, "f", other, "01NOTTHIS", ACTOR)
    stale = propose(root, {"A": {"x": 9}}, branch="f")
    replace_branch(root, "f", other, head(root, "f").commit_id, ACTOR)
    assert [each.name for each in list_branches(root)] == ["main", "f"]
    assert read_branch(root, "f").id == other.id != old.id
    assert rows(root, "f") == {"A": {"x": 3}}
    with pytest.raises(ConflictError):
        commit_all(root, stale)
    write(root, {"A": {"x": 4}}, branch="f")
