"""Undoing commits, repeating them elsewhere, and putting a branch on top of another."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.branchgraphs import SCHEMA, company, content, edge, new_graph, person, put

from omnigraph.errors import ConflictError, InvalidArgumentError, MergeConflictError
from omnigraph.history.refs import list_branches, read_branch
from omnigraph.history.resolve import Target, resolve
from omnigraph.merges.tablemerge import Choices
from omnigraph.model.commit import CommitKind
from omnigraph.model.conflict import Side
from omnigraph.operations.context import Context
from omnigraph.operations.merge import MergeOptions, Outcome
from omnigraph.operations.requests import (
    ApplySchema,
    CherryPick,
    CreateBranch,
    ListCommits,
    Merge,
    Rebase,
    Revert,
)
from omnigraph.operations.verbs import run


@pytest.fixture
def context(tmp_path: Path) -> Context:
    made = new_graph(str(tmp_path / "graph"))
    put(
        made,
        {
            "Person": [person("anna", age=30), person("bob", age=40)],
            "Knows": [edge("k1", "anna", "bob")],
        },
    )
    return made


def test_a_revert_undoes_one_commit_and_keeps_later_ones(context: Context) -> None:
    bad = put(context, {"Person": [person("anna", age=99), person("cy")]})
    put(context, {"Person": [person("anna", age=99, city="Oslo"), person("dora")]})
    undone = run(context, Revert(bad.id))
    assert undone.commit is not None
    assert undone.commit.kind is CommitKind.REVERT
    assert undone.commit.details["reverts"] == bad.id
    found = content(context)["Person"]
    assert found["anna"] == {"name": "anna", "age": 30, "city": "Oslo"}
    assert set(found) == {"anna", "bob", "dora"}
    assert run(context, Revert(bad.id)).commit is None
    # Undoing the undoing gives it back.
    run(context, Revert(undone.commit.id))
    assert set(content(context)["Person"]) == {"anna", "bob", "cy", "dora"}


def test_a_revert_of_a_deletion_brings_back_what_went(context: Context) -> None:
    gone = put(context, {}, removed={"Person": ["bob"], "Knows": ["k1"]})
    run(context, Revert(gone.id))
    assert content(context)["Knows"] == {"k1": {"src": "anna", "dst": "bob"}}
    assert "bob" in content(context)["Person"]


def test_what_changed_since_is_a_conflict(context: Context) -> None:
    bad = put(context, {"Person": [person("anna", age=99)]})
    put(context, {"Person": [person("anna", age=50)]})
    with pytest.raises(MergeConflictError, match="Revert"):
        run(context, Revert(bad.id))
    chosen = MergeOptions(Choices(strategy=Side.OURS))
    assert run(context, Revert(bad.id, options=chosen)).commit is None
    added = put(context, {"Person": [person("cy")]})
    put(context, {"Knows": [edge("k2", "anna", "cy")]})
    with pytest.raises(MergeConflictError, match="cy"):
        run(context, Revert(added.id))


def test_what_cannot_be_reverted(context: Context) -> None:
    with pytest.raises(InvalidArgumentError, match="first commit"):
        run(context, Revert(resolve(context.root, Target(version=1)).commit_id))
    run(context, ApplySchema(SCHEMA + "\nnode Pet { name: String @key }\n"))
    with pytest.raises(InvalidArgumentError, match="changed the schema"):
        run(context, Revert(resolve(context.root, Target()).commit_id))
    run(context, CreateBranch("f"))
    other = put(context, {"Person": [person("cy")]}, "f")
    with pytest.raises(InvalidArgumentError, match="not part of"):
        run(context, Revert(other.id))


def test_a_cherry_pick_does_one_commit_again(context: Context) -> None:
    run(context, CreateBranch("f"))
    put(context, {"Person": [person("cy")]}, "f")
    wanted = put(context, {"Person": [person("bob", age=41)]}, "f", message="older")
    put(context, {"Person": [person("anna", age=31)]})
    picked = run(context, CherryPick(wanted.id))
    assert picked.commit is not None
    assert (picked.commit.message, picked.commit.kind) == ("older", CommitKind.CHERRY_PICK)
    assert picked.commit.details["picked"] == wanted.id
    found = content(context)["Person"]
    assert {name: row["age"] for name, row in found.items()} == {"anna": 31, "bob": 41}
    assert run(context, CherryPick(wanted.id)).commit is None
    assert run(context, Merge("f")).outcome is Outcome.MERGED
    assert "cy" in content(context)["Person"]


def test_a_rebase_puts_a_branch_on_top(context: Context) -> None:
    run(context, CreateBranch("f"))
    put(context, {"Person": [person("cy")]}, "f", message="one")
    put(context, {"Person": [person("bob", age=41)]}, "f", message="two")
    old = read_branch(context.root, "f")
    put(context, {"Company": [company("acme")], "Person": [person("bob", age=41)]})
    done = run(context, Rebase("f"))
    assert done.moved
    # What main has already is left out.
    assert [commit.message for commit in done.commits] == ["one"]
    assert read_branch(context.root, "f").id != old.id
    assert content(context, "f")["Company"] == {"acme": {"name": "acme"}}
    assert [each.name for each in list_branches(context.root)] == ["main", "f"]
    assert [c.message for c in run(context, ListCommits("f"))][:1] == ["one"]
    assert run(context, Merge("f")).outcome is Outcome.FAST_FORWARD
    assert not run(context, Rebase("f")).moved


def test_a_rebase_that_does_not_fit_changes_nothing(context: Context) -> None:
    run(context, CreateBranch("f"))
    put(context, {"Person": [person("bob", age=41)]}, "f")
    put(context, {"Person": [person("bob", age=42)]})
    before, old = content(context, "f"), read_branch(context.root, "f")
    with pytest.raises(MergeConflictError):
        run(context, Rebase("f"))
    assert content(context, "f") == before
    assert read_branch(context.root, "f") == old
    assert [each.name for each in list_branches(context.root)] == ["main", "f"]
    for name, onto in (("main", "f"), ("f", "f")):
        with pytest.raises(InvalidArgumentError):
            run(context, Rebase(name, onto))
    with pytest.raises(InvalidArgumentError, match="~"):
        run(context, CreateBranch("~mine"))


def test_a_branch_that_goes_on_is_not_replaced(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(context, CreateBranch("f"))
    put(context, {"Person": [person("cy")]}, "f")
    put(context, {"Person": [person("dora")]})
    from omnigraph.commit import branches

    swap = branches.replace_branch

    def overtaken(*arguments: object) -> object:
        put(context, {"Person": [person("late")]}, "f")
        return swap(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(branches, "replace_branch", overtaken)
    with pytest.raises(ConflictError, match="got commits"):
        run(context, Rebase("f"))
    assert set(content(context, "f")["Person"]) == {"anna", "bob", "cy", "late"}


def test_a_rebase_over_schemas_that_grew_on_both_sides(context: Context) -> None:
    run(context, CreateBranch("f"))
    for branch, name in (("main", "left"), ("f", "right")):
        grown = SCHEMA.replace("  city: String?", f"  city: String?\n  {name}: I64 @default(7)")
        run(context, ApplySchema(grown, branch))
        put(context, {"Person": [person(f"by {name}", **{name: 1})]}, branch)
        put(context, {"Person": [person("anna", age=30, **{name: 2})]}, branch)
    assert run(context, Rebase("f")).moved
    found = content(context, "f")["Person"]
    assert {name: (row["left"], row["right"]) for name, row in found.items()} == {
        "anna": (2, 2),
        "bob": (7, 7),
        "by left": (1, 7),
        "by right": (7, 1),
    }
    assert run(context, Merge("f")).outcome is Outcome.FAST_FORWARD
