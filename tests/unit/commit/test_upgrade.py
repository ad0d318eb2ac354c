"""The format stamp: newer is refused, older is migrated once, step by step, whoever dies."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from tests.support.doorgraph import ACTOR, HaltError, branch, log_of, new_graph, rows, write

import omnigraph
from omnigraph import faults
from omnigraph.commit import upgrade
from omnigraph.commit.branches import delete_branch
from omnigraph.commit.upgrade import bring_up_to_date
from omnigraph.errors import FormatError, GraphNotFoundError
from omnigraph.history.refs import read_branch
from omnigraph.storage.manifest import FORMAT_VERSION
from omnigraph.storage.root import GraphRoot


@pytest.fixture
def root(tmp_path: Path) -> GraphRoot:
    root = new_graph(str(tmp_path / "g"))
    write(root, {"A": {"x": 1}})
    branch(root, "f")
    write(root, {"A": {"x": 2}}, branch="f")
    return root


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str]]:
    """Steps that only write down that they ran."""
    done: list[tuple[int, str]] = []

    def step(number: int) -> upgrade.Migration:
        return lambda root, branch_id: done.append((number, branch_id[:4]))

    monkeypatch.setattr(upgrade, "MIGRATIONS", {n: step(n) for n in range(4)})
    return done


def numbers(root: GraphRoot) -> set[int]:
    ids = ("main", read_branch(root, "f").id)
    return {GraphRoot.at(root.uri).manifest(each).format_version() for each in ids}


def stamp_all(root: GraphRoot, number: int) -> None:
    for each in ("main", read_branch(root, "f").id):
        root.manifest(each).stamp(number)


# ledger: S05
def test_the_present_format_needs_nothing(root: GraphRoot, ran: list[object]) -> None:
    assert numbers(root) == {FORMAT_VERSION}
    assert not bring_up_to_date(root, ACTOR)
    assert ran == []


# ledger: S05
@pytest.mark.parametrize("read_only", [True, False])
def test_a_newer_format_is_refused_in_both_modes(root: GraphRoot, read_only: bool) -> None:
    root.manifest("main").stamp(FORMAT_VERSION + 1)
    with pytest.raises(FormatError, match="Upgrade OmniGraph"):
        omnigraph.open(root.uri, read_only=read_only)


# ledger: S05
def test_an_old_format_is_migrated_by_a_read_write_open(root: GraphRoot) -> None:
    stamp_all(root, 0)
    with pytest.raises(FormatError, match="read-write once"):
        omnigraph.open(root.uri, read_only=True)
    assert numbers(root) == {0}
    omnigraph.open(root.uri)
    assert numbers(root) == {FORMAT_VERSION}
    fresh = GraphRoot.at(root.uri)
    assert rows(fresh) == {"A": {"x": 1}}
    assert rows(fresh, "f") == {"A": {"x": 2}}
    write(fresh, {"A": {"x": 3}}, branch="f")
    assert len(log_of(fresh, "f")) == 4


# ledger: S05
def test_steps_are_taken_one_by_one_and_once(root: GraphRoot, ran: list[tuple[int, str]]) -> None:
    stamp_all(root, 1)
    name = read_branch(root, "f").id[:4]
    assert bring_up_to_date(root, ACTOR, known=4)
    assert ran == [(n, each) for each in (name, "main") for n in (1, 2, 3)]
    assert numbers(root) == {4}
    assert not bring_up_to_date(root, ACTOR, known=4)
    assert len(ran) == 6


def test_a_format_that_no_step_leaves_is_refused(root: GraphRoot, ran: list[object]) -> None:
    stamp_all(root, 1)
    with pytest.raises(FormatError, match="cannot migrate format 4"):
        bring_up_to_date(root, ACTOR, known=6)
    assert len(ran) == 3


# ledger: S05
@pytest.mark.parametrize("nth", [1, 2, 3, 4])
@pytest.mark.parametrize(
    "point", ["upgrade.before_step", "upgrade.before_stamp", "upgrade.after_stamp"]
)
def test_an_interrupted_migration_is_taken_up_again(
    root: GraphRoot, ran: list[tuple[int, str]], point: str, nth: int
) -> None:
    stamp_all(root, 1)
    with faults.armed(point, faults.Raise(HaltError, nth=nth)), pytest.raises(HaltError):
        bring_up_to_date(root, ACTOR, known=3)
    bring_up_to_date(GraphRoot.at(root.uri), ACTOR, known=3)
    assert numbers(root) == {3}
    assert len(set(ran)) == 4
    assert len(ran) == 4 + (point == "upgrade.before_stamp")


# ledger: S05
def test_of_several_openers_one_migrates(root: GraphRoot, ran: list[tuple[int, str]]) -> None:
    stamp_all(root, 1)
    barrier = threading.Barrier(4)

    def open_it() -> None:
        mine = GraphRoot.at(root.uri)
        barrier.wait()
        bring_up_to_date(mine, ACTOR, known=3)

    threads = [threading.Thread(target=open_it) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(ran) == sorted(set(ran))
    assert len(ran) == 4
    assert numbers(root) == {3}


def test_deleted_branches_that_others_grew_from_are_migrated_too(
    root: GraphRoot, ran: list[object]
) -> None:
    branch(root, "child", "f")
    old = read_branch(root, "f").id
    stamp_all(root, 1)
    root.manifest(read_branch(root, "child").id).stamp(1)
    delete_branch(root, "f", ACTOR, with_children=True)
    bring_up_to_date(root, ACTOR, known=2)
    assert root.manifest(old).format_version() == 2
    assert len(ran) == 3


# ledger: S05
@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize(
    "point", ["upgrade.before_step", "upgrade.before_stamp", "upgrade.after_stamp"]
)
def test_18_07_a_graph_of_format_1_gets_one_stamp(root: GraphRoot, point: str, nth: int) -> None:
    ids = ("main", read_branch(root, "f").id)
    for each in ids:
        root.manifest(each).stamp(1, "")
    with faults.armed(point, faults.Raise(HaltError, nth=nth)), pytest.raises(HaltError):
        bring_up_to_date(GraphRoot.at(root.uri), ACTOR)
    bring_up_to_date(GraphRoot.at(root.uri), ACTOR)
    assert numbers(root) == {FORMAT_VERSION}
    fresh = GraphRoot.at(root.uri)
    stamps = {fresh.manifest(each).read().stamp for each in ids}
    assert len(stamps) == 1
    assert "" not in stamps
    write(fresh, {"A": {"x": 3}}, branch="f")
    assert rows(fresh, "f") == {"A": {"x": 3}}


def test_no_graph_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(GraphNotFoundError):
        bring_up_to_date(GraphRoot.at(str(tmp_path / "nothing")), ACTOR)
