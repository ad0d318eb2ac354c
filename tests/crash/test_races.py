"""Many processes on one graph: nothing is lost, nothing is half seen, branches do not meet."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.crash.nursery import Nursery, call
from tests.crash.sizes import FULL
from tests.support.doorgraph import audit_rows, branch, log_of, new_graph, pending, rows, write

from omnigraph.history.refs import list_branches, read_branch
from omnigraph.storage.root import GraphRoot

pytestmark = pytest.mark.crash

MANY = 300 if FULL else 100


@pytest.fixture
def root(tmp_path: Path) -> GraphRoot:
    root = new_graph(str(tmp_path / "g"))
    write(root, {"A": {"x": 0}, "B": {"y": 0}})
    return root


def check_increments(nursery: Nursery, root: GraphRoot, processes: int, times: int) -> None:
    endings = nursery.run_all([call("increment", root.uri, times)] * processes)
    for ending in endings:
        ending.result()
    fresh = GraphRoot.at(root.uri)
    assert rows(fresh)["A"] == {"x": processes * times}
    assert len(log_of(fresh)) == 2 + processes * times
    assert pending(fresh) == []
    assert audit_rows(fresh) == []


# ledger: C17 C10
def test_a_few_increments_add_up(nursery: Nursery, root: GraphRoot) -> None:
    check_increments(nursery, root, 3, 4)


# ledger: C17 C10
@pytest.mark.slow
def test_increments_by_eight_processes_add_up(nursery: Nursery, root: GraphRoot) -> None:
    check_increments(nursery, root, 8, 50)


# ledger: C17
@pytest.mark.parametrize("times", [3, pytest.param(25, marks=pytest.mark.slow)])
def test_branches_never_conflict(nursery: Nursery, root: GraphRoot, times: int) -> None:
    names = ["main", "f", "f/g", "h"]
    for name in names[1:]:
        branch(root, name)
    for ending in nursery.run_all([call("write_often", root.uri, name, times) for name in names]):
        ending.result()
    for name in names:
        assert rows(root, name) == {"A": {"x": times - 1}, "B": {"y": times - 1}}
        assert len(log_of(root, name)) == 2 + times


# ledger: B01
def test_of_several_creators_of_one_name_one_wins(nursery: Nursery, root: GraphRoot) -> None:
    endings = nursery.run_all([call("create_branch", root.uri, "f")] * 6)
    won = [ending.result() for ending in endings if ending.result()]
    assert won == [read_branch(root, "f").id]


# ledger: C01 C02
@pytest.mark.parametrize("times", [20, pytest.param(MANY, marks=pytest.mark.slow)])
def test_readers_see_whole_commits_only(nursery: Nursery, root: GraphRoot, times: int) -> None:
    calls = [
        call("write_often", root.uri, "main", times),
        call("read_often", root.uri, times - 1),
        call("read_often", root.uri, times - 1),
    ]
    _, *readers = [ending.result() for ending in nursery.run_all(calls)]
    assert all(1 <= seen <= times for seen in readers)


# ledger: B01 C17
@pytest.mark.slow
def test_one_name_made_and_deleted_by_many_at_once_stays_whole(
    nursery: Nursery, root: GraphRoot
) -> None:
    endings = nursery.run_all([call("churn", root.uri, "f", 12)] * 4)
    assert sum(ending.result() for ending in endings) >= 12
    left = [each.name for each in list_branches(root)]
    assert left in (["main"], ["main", "f"])
    if "f" not in left:
        branch(root, "f")
    write(root, {"A": {"x": 99}}, branch="f")
    assert rows(root, "f")["A"] == {"x": 99}
    assert rows(root)["A"] == {"x": 0}
    assert pending(root) == []


# ledger: C17 R06
@pytest.mark.slow
def test_killed_writers_among_live_ones_lose_nothing(nursery: Nursery, root: GraphRoot) -> None:
    """Some processes die after their tables have landed; the others finish it and go on."""
    dying = call("increment", root.uri, 10, faults="commit.before_publish=kill@7")
    calls = [dying, call("increment", root.uri, 20), dying, call("increment", root.uri, 20)]
    first, second, third, fourth = nursery.run_all(calls)
    assert first.killed
    assert third.killed
    second.result()
    fourth.result()
    write(root)
    # Six acknowledged by each of the dead, and a seventh that their successors published.
    assert rows(GraphRoot.at(root.uri))["A"] == {"x": 2 * 7 + 2 * 20}
    assert len(audit_rows(root)) == 2
    assert pending(root) == []
    log_of(root)
