"""Branches as people see them: ahead, behind, parent, age."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.doorgraph import ACTOR, branch, fast_forward, head, log_of, new_graph, write

from omnigraph.commit.branches import delete_branch, rename_branch
from omnigraph.history.branchlist import describe_branches
from omnigraph.model.commit import CommitKind
from omnigraph.storage.root import GraphRoot


@pytest.fixture
def root(tmp_path: Path) -> GraphRoot:
    return new_graph(str(tmp_path / "g"))


def distances(root: GraphRoot) -> dict[str, tuple[str | None, int, int]]:
    return {info.name: (info.parent, info.ahead, info.behind) for info in describe_branches(root)}


def move(root: GraphRoot, branch: str, count: int = 1) -> None:
    for _ in range(count):
        write(root, branch=branch)


def merge(root: GraphRoot, source: str, target: str) -> None:
    write(
        root,
        branch=target,
        kind=CommitKind.MERGE,
        merged_parent=head(root, source).commit_id,
    )


# ledger: B01
def test_branches_are_listed_with_their_distance_from_where_they_began(root: GraphRoot) -> None:
    move(root, "main", 2)
    branch(root, "b/one")
    branch(root, "a")
    branch(root, "two", "b/one")
    move(root, "main", 3)
    move(root, "b/one", 2)
    assert distances(root) == {
        "main": (None, 0, 0),
        "a": ("main", 0, 3),
        "b/one": ("main", 2, 3),
        "two": ("b/one", 0, 2),
    }
    infos = {info.name: info for info in describe_branches(root)}
    assert infos["a"].head.id == infos["two"].head.id
    assert infos["main"].head.id == head(root).commit_id
    assert infos["a"].branch.actor == ACTOR
    assert 0 < infos["a"].age_us < infos["main"].age_us


def test_merges_bring_branches_together(root: GraphRoot) -> None:
    branch(root, "f")
    move(root, "f", 3)
    move(root, "main", 2)
    assert distances(root)["f"] == ("main", 3, 2)
    merge(root, "f", "main")
    assert distances(root)["f"] == ("main", 0, 3)
    move(root, "f", 2)
    assert distances(root)["f"] == ("main", 2, 3)
    merge(root, "main", "f")
    assert distances(root)["f"] == ("main", 3, 0)
    move(root, "main")
    assert distances(root)["f"] == ("main", 3, 1)


def test_a_merge_of_a_third_branch_does_not_count(root: GraphRoot) -> None:
    branch(root, "f")
    branch(root, "g")
    move(root, "g")
    move(root, "f")
    merge(root, "g", "main")
    assert distances(root) == {"main": (None, 0, 0), "f": ("main", 1, 1), "g": ("main", 0, 1)}


def test_a_fast_forward_leaves_no_distance(root: GraphRoot) -> None:
    branch(root, "f")
    move(root, "f", 3)
    own = log_of(root, "f")[:3][::-1]
    fast_forward(root, "main", own, ACTOR)
    assert distances(root)["f"] == ("main", 0, 0)
    move(root, "f", 2)
    move(root, "main", 1)
    assert distances(root)["f"] == ("main", 2, 1)
    merge(root, "f", "main")
    assert distances(root)["f"] == ("main", 0, 2)


def test_a_parent_is_known_by_its_present_name(root: GraphRoot) -> None:
    branch(root, "p")
    move(root, "p")
    branch(root, "c", "p")
    rename_branch(root, "p", "q", ACTOR)
    assert distances(root)["c"] == ("q", 0, 0)
    delete_branch(root, "q", ACTOR, with_children=True)
    assert distances(root)["c"] == (None, 0, 0)


def test_distances_reach_back_over_sealed_history(root: GraphRoot) -> None:
    branch(root, "f")
    move(root, "f", 2)
    merge(root, "f", "main")
    move(root, "main", 150)
    move(root, "f", 70)
    assert distances(root)["f"] == ("main", 70, 151)
