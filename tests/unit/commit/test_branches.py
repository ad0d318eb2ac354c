"""Branches: made, renamed, deleted, raced for, and interrupted half-way."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from tests.support.doorgraph import (
    ACTOR,
    HaltError,
    branch,
    commit,
    head,
    log_of,
    new_graph,
    propose,
    rows,
    write,
)

from omnigraph import faults
from omnigraph.commit.branches import (
    DELETED,
    delete_branch,
    rename_branch,
    replace_branch,
    was_deleted,
)
from omnigraph.commit.tags import create_tag, delete_tag
from omnigraph.errors import (
    AlreadyExistsError,
    BranchNotFoundError,
    ConflictError,
    InvalidArgumentError,
    ReadSetChangedError,
    StorageConfigurationError,
    StorageTransientError,
    TagNotFoundError,
)
from omnigraph.history.log import BranchLog, commit_at
from omnigraph.history.refs import MAIN, branch_path, list_branches, list_tags, read_branch
from omnigraph.history.resolve import Target, resolve
from omnigraph.storage.locks import writer_lock
from omnigraph.storage.root import GraphRoot


@pytest.fixture
def root(tmp_path: Path) -> GraphRoot:
    root = new_graph(str(tmp_path / "g"))
    write(root, {"A": {"x": 1}, "B": {"y": 1}})
    return root


def names(root: GraphRoot) -> list[str]:
    return [each.name for each in list_branches(GraphRoot.at(root.uri))]


# ledger: B01
def test_a_branch_sees_its_start_and_goes_its_own_way(root: GraphRoot) -> None:
    branch(root, "f")
    write(root, {"A": {"x": 2}}, branch="f")
    write(root, {"B": {"y": 3}})
    assert rows(root) == {"A": {"x": 1}, "B": {"y": 3}}
    assert rows(root, "f") == {"A": {"x": 2}, "B": {"y": 1}}
    assert [c.branch for c in log_of(root, "f")] == ["f", "main", "main"]


def test_a_table_forks_on_its_first_write_and_not_again(root: GraphRoot) -> None:
    made = branch(root, "f")
    before = head(root, "f").tables
    assert before == head(root).tables
    write(root, {"A": {"x": 2}}, branch="f")
    first = head(root, "f").tables
    write(root, {"A": {"x": 3}}, branch="f")
    second = head(root, "f").tables
    a, b = 1, 3
    assert str(first[a].fork).startswith(made.id)
    assert second[a].fork == first[a].fork
    assert second[b] == before[b]


def test_branches_of_branches_fork_again(root: GraphRoot) -> None:
    branch(root, "f")
    write(root, {"A": {"x": 2}}, branch="f")
    branch(root, "g", "f")
    write(root, {"A": {"x": 3}}, branch="g")
    write(root, {"A": {"z": 4}}, branch="f")
    assert rows(root)["A"] == {"x": 1}
    assert rows(root, "f")["A"] == {"x": 2, "z": 4}
    assert rows(root, "g")["A"] == {"x": 3}


def test_a_table_may_be_born_on_a_branch(root: GraphRoot) -> None:
    branch(root, "f")
    branch(root, "g")
    write(root, {"Link": {"l": 1}}, branch="f")
    write(root, {"Link": {"l": 2}}, branch="g")
    assert "Link" not in rows(root)
    assert rows(root, "f")["Link"] == {"l": 1}
    assert rows(root, "g")["Link"] == {"l": 2}
    branch(root, "h", "f")
    write(root, {"Link": {"m": 3}}, branch="h")
    assert rows(root, "h")["Link"] == {"l": 1, "m": 3}
    assert rows(root, "f")["Link"] == {"l": 1}


def test_a_branch_begins_at_any_commit(root: GraphRoot) -> None:
    write(root, {"A": {"x": 5}})
    branch(root, "old", sequence=2)
    assert rows(root, "old")["A"] == {"x": 1}
    branch(root, "oldest", sequence=1)
    assert rows(root, "oldest") == {}
    branch(root, "again", "old")
    write(root, {"A": {"x": 6}}, branch="old")
    # The commit that `old` began at can still be named on `old` itself.
    line = BranchLog(root, read_branch(root, "old").id)
    assert commit_at(line, 2).sequence == 2
    assert rows(root, resolve(root, Target(branch="old", version=2)))["A"] == {"x": 1}
    assert rows(root, "again")["A"] == {"x": 1}


@pytest.mark.parametrize(
    "name", ["a", "a/b", "a/b/c", "A", "Ä/ß", "x" * 255, "𓀀" * 40, "..", "=41", "a b", "é", "CON"]
)
def test_any_name_stands_beside_any_other(root: GraphRoot, name: str) -> None:
    branch(root, "a-first")
    branch(root, name)
    for other in ("a", "a/b", "A"):
        if other != name:
            branch(root, other)
    write(root, {"A": {"x": 7}}, branch=name)
    assert rows(root, name)["A"] == {"x": 7}
    assert rows(root, "a-first")["A"] == {"x": 1}
    assert name in names(root)
    delete_branch(root, name, ACTOR)
    assert name not in names(root)
    assert "a-first" in names(root)
    branch(root, name)


@pytest.mark.parametrize(
    "name", ["", " a", "a ", "/a", "a/", "a//b", "__x", "x" * 256, "a\nb", "a\0b", "\ud800", "\t"]
)
def test_hostile_names_are_refused(root: GraphRoot, name: str) -> None:
    with pytest.raises(InvalidArgumentError, match="branch name"):
        branch(root, name)
    with pytest.raises(InvalidArgumentError):
        read_branch(root, name)


def test_main_is_neither_made_deleted_nor_renamed(root: GraphRoot) -> None:
    with pytest.raises(AlreadyExistsError):
        branch(root, MAIN)
    with pytest.raises(InvalidArgumentError):
        delete_branch(root, MAIN, ACTOR)
    branch(root, "f")
    for old, new in (("f", MAIN), (MAIN, "g")):
        with pytest.raises(InvalidArgumentError):
            rename_branch(root, old, new, ACTOR)


def test_a_name_is_used_again_at_once(root: GraphRoot) -> None:
    first = branch(root, "f")
    write(root, {"A": {"x": 2}}, branch="f")
    delete_branch(root, "f", ACTOR)
    assert was_deleted(root, first.id) is not None
    second = branch(root, "f")
    assert second.id != first.id
    assert rows(root, "f")["A"] == {"x": 1}
    write(root, {"A": {"x": 3}}, branch="f")
    assert rows(root, "f")["A"] == {"x": 3}


def test_the_second_of_two_equal_names_is_refused(root: GraphRoot) -> None:
    branch(root, "f")
    with pytest.raises(AlreadyExistsError):
        branch(root, "f")
    with pytest.raises(AlreadyExistsError):
        rename_branch(root, "f", "f", ACTOR)


def test_of_many_creators_one_wins(root: GraphRoot) -> None:
    won, lost = [], []
    start = threading.Barrier(8)

    def create() -> None:
        mine = GraphRoot.at(root.uri)
        start.wait()
        try:
            won.append(branch(mine, "f"))
        except AlreadyExistsError:
            lost.append(1)

    threads = [threading.Thread(target=create) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert (len(won), len(lost)) == (1, 7)
    assert read_branch(root, "f").id == won[0].id


# Deleting


def test_children_prevent_a_deletion_unless_told(root: GraphRoot) -> None:
    branch(root, "p")
    write(root, {"A": {"x": 2}}, branch="p")
    branch(root, "c", "p")
    with pytest.raises(
        ConflictError, match="'p' has branches that were created from it: c"
    ) as caught:
        delete_branch(root, "p", ACTOR)
    assert not caught.value.retryable
    delete_branch(root, "p", ACTOR, with_children=True)
    assert names(root) == ["main", "c"]
    assert rows(root, "c")["A"] == {"x": 2}
    assert len(log_of(root, "c")) == 3


def test_a_grandchild_keeps_its_history_when_all_elders_go(root: GraphRoot) -> None:
    for name, start in (("p", MAIN), ("c", "p"), ("g", "c")):
        branch(root, name, start)
        write(root, {"A": {name: 1}}, branch=name)
    assert read_branch(root, "g").ancestors[-1] == MAIN
    for name in ("c", "p"):
        delete_branch(root, name, ACTOR, with_children=True)
    fresh = GraphRoot.at(root.uri)
    assert [c.branch for c in log_of(fresh, "g")] == ["g", "c", "p", "main", "main"]
    assert rows(fresh, "g")["A"] == {"x": 1, "p": 1, "c": 1, "g": 1}
    assert rows(fresh, resolve(fresh, Target(branch="g", version=3)))["A"] == {"x": 1, "p": 1}


def test_a_tag_outlives_its_branch(root: GraphRoot) -> None:
    made = branch(root, "f")
    tag_at = BranchLog(root, made.id).state.head
    create_tag(root, "begun", BranchLog(root, made.id), tag_at, ACTOR)
    commit = write(root, {"A": {"x": 9}}, branch="f")
    create_tag(root, "v1", BranchLog(root, made.id), commit, ACTOR, "the first")
    write(root, {"A": {"x": 10}}, branch="f")
    delete_branch(root, "f", ACTOR)
    assert rows(root, resolve(root, Target(tag="v1")))["A"] == {"x": 9}
    assert rows(root, resolve(root, Target(tag="begun")))["A"] == {"x": 1}
    assert [tag.name for tag in list_tags(root)] == ["begun", "v1"]
    with pytest.raises(AlreadyExistsError):
        create_tag(root, "v1", BranchLog(root, made.id), commit, ACTOR)
    delete_tag(root, "v1")
    with pytest.raises(TagNotFoundError):
        resolve(root, Target(tag="v1"))


@pytest.mark.parametrize("with_child", [False, True])
def test_a_write_to_a_branch_that_was_deleted_is_refused(root: GraphRoot, with_child: bool) -> None:
    branch(root, "f")
    if with_child:
        branch(root, "c", "f")
    proposal = propose(root, {"A": {"x": 2}}, branch="f")
    delete_branch(root, "f", ACTOR, with_children=with_child)
    with pytest.raises(BranchNotFoundError):
        commit(root, proposal)


@pytest.mark.parametrize("with_child", [False, True])
def test_a_write_that_waited_while_its_branch_was_deleted_is_refused(
    root: GraphRoot, with_child: bool
) -> None:
    branch(root, "f")
    if with_child:
        branch(root, "c", "f")
    proposal = propose(root, {"A": {"x": 2}}, branch="f")
    go = threading.Event()
    errors: list[BaseException] = []

    def attempt() -> None:
        try:
            commit(GraphRoot.at(root.uri), proposal)
        except BaseException as error:  # noqa: BLE001  # handed to the test
            errors.append(error)

    with faults.armed("commit.before_lock", faults.Pause(go)) as point:
        writer = threading.Thread(target=attempt)
        writer.start()
        assert point.reached.wait(30)
        delete_branch(root, "f", ACTOR, with_children=with_child)
        go.set()
        writer.join()
    assert [type(error) for error in errors] == [BranchNotFoundError]


def test_a_write_prepared_for_an_earlier_branch_of_the_name_is_refused(root: GraphRoot) -> None:
    branch(root, "f")
    proposal = propose(root, {"A": {"x": 2}}, branch="f")
    delete_branch(root, "f", ACTOR)
    branch(root, "f")
    with pytest.raises(ReadSetChangedError, match="another branch"):
        commit(root, proposal)
    assert rows(root, "f")["A"] == {"x": 1}


def test_a_deletion_waits_for_the_writer(root: GraphRoot) -> None:
    made = branch(root, "f")
    done = threading.Event()

    def delete() -> None:
        delete_branch(GraphRoot.at(root.uri), "f", ACTOR)
        done.set()

    with writer_lock(root.objects, made.id, owner=ACTOR):
        deleter = threading.Thread(target=delete)
        deleter.start()
        assert not done.wait(0.2)
        assert "f" in names(root)
    deleter.join()
    assert names(root) == ["main"]


def test_a_deletion_never_takes_a_name_from_its_new_owner(root: GraphRoot) -> None:
    """A deleter that waited for the lock finds that the name means another branch by now."""
    made = branch(root, "f")
    waiting, errors = threading.Event(), []

    def delete() -> None:
        waiting.set()
        try:
            delete_branch(GraphRoot.at(root.uri), "f", ACTOR)
        except (ConflictError, BranchNotFoundError) as error:
            errors.append(error)

    with writer_lock(root.objects, made.id, owner=ACTOR):
        deleter = threading.Thread(target=delete)
        deleter.start()
        assert waiting.wait(10)
        # What a rename under this lock and a new branch of the name would leave.
        moved = read_branch(root, "f")
        root.objects.delete(branch_path("f"))
        while not deleter_waits(root, made.id):
            pass
        second = branch(root, "f")
        assert second.id != moved.id
    deleter.join()
    assert len(errors) <= 1
    assert read_branch(root, "f").id == second.id


def deleter_waits(root: GraphRoot, branch_id: str) -> bool:
    queue = Path(root.uri, "__locks", f"writer-{branch_id}.queue")
    return queue.exists()


# Renaming


def test_a_rename_keeps_the_branch(root: GraphRoot) -> None:
    made = branch(root, "old/name")
    write(root, {"A": {"x": 2}}, branch="old/name")
    rename_branch(root, "old/name", "new", ACTOR)
    assert names(root) == ["main", "new"]
    assert read_branch(root, "new").id == made.id
    assert rows(root, "new")["A"] == {"x": 2}
    write(root, {"A": {"x": 3}}, branch="new")
    assert [c.branch for c in log_of(root, "new")][:2] == ["new", "old/name"]
    branch(root, "old/name")
    with pytest.raises(AlreadyExistsError):
        rename_branch(root, "new", "old/name", ACTOR)
    assert names(root) == ["main", "new", "old/name"]
    assert read_branch(root, "new").renaming_to is None
    with pytest.raises(BranchNotFoundError):
        rename_branch(root, "nobody", "somebody", ACTOR)


RENAME_POINTS = [
    "branch.before_rename",
    "branch.after_rename_mark",
    "branch.after_rename_create",
    "branch.after_rename",
]


def interrupt_rename(root: GraphRoot, point: str) -> tuple[str, str]:
    """Stop a rename of `a` to `b` at a point; returns the name that counts and the other."""
    with faults.armed(point, faults.Raise(HaltError)), pytest.raises(HaltError):
        rename_branch(root, "a", "b", ACTOR)
    done = point in RENAME_POINTS[2:]
    return ("b", "a") if done else ("a", "b")


@pytest.mark.parametrize("point", RENAME_POINTS)
def test_an_interrupted_rename_leaves_one_name(root: GraphRoot, point: str) -> None:
    made = branch(root, "a")
    live, dead = interrupt_rename(root, point)
    assert names(root) == ["main", live]
    assert read_branch(root, live).id == made.id
    with pytest.raises(BranchNotFoundError):
        read_branch(root, dead)
    write(root, {"A": {"x": 2}}, branch=live)
    # The other name is free for a new branch, which is then a branch of its own.
    other = branch(root, dead)
    assert other.id != made.id
    assert names(root) == ["main", "a", "b"]
    delete_branch(root, live, ACTOR)
    assert names(root) == ["main", dead]
    assert read_branch(root, dead).id == other.id


@pytest.mark.parametrize("point", RENAME_POINTS)
def test_a_name_left_by_an_interrupted_rename_does_not_come_back(
    root: GraphRoot, point: str
) -> None:
    branch(root, "a")
    live, _ = interrupt_rename(root, point)
    delete_branch(root, live, ACTOR)
    assert names(root) == ["main"]


@pytest.mark.parametrize("point", RENAME_POINTS)
def test_an_interrupted_rename_may_be_followed_by_another(root: GraphRoot, point: str) -> None:
    made = branch(root, "a")
    live, dead = interrupt_rename(root, point)
    rename_branch(root, live, "c", ACTOR)
    assert names(root) == ["main", "c"]
    rename_branch(root, "c", dead, ACTOR)
    assert names(root) == ["main", dead]
    assert read_branch(root, dead).id == made.id


@pytest.mark.parametrize("point", RENAME_POINTS[2:])
def test_a_rename_may_go_back_to_the_name_it_left(root: GraphRoot, point: str) -> None:
    made = branch(root, "a")
    interrupt_rename(root, point)
    rename_branch(root, "b", "a", ACTOR)
    assert names(root) == ["main", "a"]
    assert read_branch(root, "a").id == made.id


def test_a_failed_registration_leaves_no_branch(root: GraphRoot) -> None:
    failing = faults.Raise(StorageTransientError)
    with faults.armed("branch.after_manifest_fork", failing), pytest.raises(StorageTransientError):
        branch(root, "f")
    assert names(root) == ["main"]
    branch(root, "f")


# ledger: B01
def test_a_rename_stands_when_the_old_reference_cannot_be_removed(
    root: GraphRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the new reference on the branch has its new name; an error would say otherwise."""
    branch(root, "f")
    write(root, {"A": {"x": 7}}, branch="f")

    def refuse(path: str) -> None:
        raise StorageConfigurationError(f"Could not delete {path!r}.")

    with monkeypatch.context() as patched:
        patched.setattr(root.objects, "delete", refuse)
        assert rename_branch(root, "f", "g", ACTOR).name == "g"
    assert [each.name for each in list_branches(root)] == ["main", "g"]
    assert rows(root, "g")["A"] == {"x": 7}
    branch(root, "f")
    assert [each.name for each in list_branches(root)] == ["main", "f", "g"]


# ledger: B01
def test_a_name_keeps_its_branch_when_the_deletion_cannot_be_recorded(
    root: GraphRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    branch(root, "f")
    by = branch(root, "new")
    write(root, {"A": {"x": 7}}, branch="new")
    put = root.objects.put

    def refuse(path: str, data: bytes) -> str:
        if path.startswith(DELETED):
            raise StorageConfigurationError(f"Could not write {path!r}.")
        return put(path, data)

    with monkeypatch.context() as patched:
        patched.setattr(root.objects, "put", refuse)
        with pytest.raises(StorageConfigurationError):
            replace_branch(root, "f", by, head(root, "f").commit_id, ACTOR)
    assert names(root) == ["main", "f", "new"]
    replace_branch(root, "f", by, head(root, "f").commit_id, ACTOR)
    assert names(root) == ["main", "f"]
    assert rows(root, "f")["A"] == {"x": 7}
