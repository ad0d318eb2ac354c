"""Merges, rebases and cleanup follow the commit graph, whatever the order of times."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.branchgraphs import content, new_graph, person, put

from omnigraph.commit.garbage import find_litter
from omnigraph.commit.retention import Policy
from omnigraph.errors import MergeConflictError
from omnigraph.history.log import walk
from omnigraph.history.refs import read_branch
from omnigraph.history.resolve import Target
from omnigraph.model.conflict import ConflictKind
from omnigraph.operations.context import Context
from omnigraph.operations.merge import Outcome, options
from omnigraph.operations.requests import (
    ApplySchema,
    CleanUp,
    CreateBranch,
    DeleteBranch,
    Merge,
    PreviewMerge,
    Rebase,
)
from omnigraph.operations.verbs import run

EVERYTHING = Policy(keep=1, grace_s=0, litter_s=0)
SCHEMA = "node Person {\n  name: String @key\n  age: I32?\n  city: String?\n}\n"
WITHOUT_CITY = "node Person {\n  name: String @key\n  age: I32?\n}\n"


@pytest.fixture
def context(tmp_path: Path) -> Context:
    made = new_graph(str(tmp_path / "g"), SCHEMA)
    put(made, {"Person": [person("anna", age=1, city="Rome")]})
    return made


def give(context: Context, branch: str, name: str, **values: object) -> None:
    put(context, {"Person": [person(name, **values)]}, branch)


def remove(context: Context, branch: str, name: str) -> None:
    put(context, {}, branch, removed={"Person": [name]})


def people(context: Context, branch: str = "main") -> dict[str, dict[str, object]]:
    found = content(context, branch).get("Person", {})
    return {key: {k: v for k, v in row.items() if k != "name"} for key, row in found.items()}


def clean(context: Context) -> None:
    run(context, CleanUp(EVERYTHING, confirm=True))


def cross(context: Context, one: str, two: str, how: str | None = None) -> None:
    """Merge two branches into each other at the same time."""
    run(context, CreateBranch("before", Target(two)))
    run(context, Merge(one, two, options(how)))
    run(context, Merge("before", one, options(how)))
    run(context, DeleteBranch("before"))


def test_18_02_a_rebase_keeps_commits_older_than_the_merge_base(context: Context) -> None:
    run(context, CreateBranch("s"))
    give(context, "s", "xena", age=3)
    give(context, "main", "bob", age=4)
    run(context, Merge("main", "s"))
    give(context, "main", "cy", age=5)
    done = run(context, Rebase("s"))
    assert len(done.commits) == 1  # the merge brought nothing that main has not
    assert people(context, "s") == {
        "anna": {"age": 1, "city": "Rome"},
        "xena": {"age": 3},
        "bob": {"age": 4},
        "cy": {"age": 5},
    }


def test_18_02_a_rebase_keeps_what_a_merge_brought_and_what_it_decided(context: Context) -> None:
    for name in ("s", "t"):
        run(context, CreateBranch(name))
    give(context, "t", "tom", age=7)
    give(context, "s", "anna", age=2, city="Rome")
    give(context, "main", "anna", age=3, city="Rome")
    run(context, Merge("t", "s"))
    run(context, Merge("main", "s", options("ours")))
    give(context, "main", "cy")
    with pytest.raises(MergeConflictError):
        run(context, Rebase("s"))  # whether anna is 2 or 3 must be decided again
    run(context, Rebase("s", options=options("theirs")))
    assert people(context, "s") == {"anna": {"age": 2, "city": "Rome"}, "tom": {"age": 7}, "cy": {}}


def test_18_02_a_rebase_whose_states_are_gone_is_one_commit(context: Context) -> None:
    run(context, CreateBranch("s"))
    for age in (2, 3, 4):
        give(context, "s", "xena", age=age)
    give(context, "main", "bob")
    clean(context)
    done = run(context, Rebase("s"))
    assert len(done.commits) == 1
    assert people(context, "s").keys() == {"anna", "bob", "xena"}
    assert people(context, "s")["xena"] == {"age": 4}


@pytest.mark.parametrize("forget", [False, True])
def test_18_03_deleting_a_merged_branch_changes_no_later_merge(
    context: Context, forget: bool
) -> None:
    """`s` has a commit that is older than its merge base with `t`, and both merged it."""
    run(context, CreateBranch("s"))
    run(context, CreateBranch("t"))
    run(context, CreateBranch("u"))
    give(context, "s", "xena", age=3)
    run(context, Merge("s", "u"))
    give(context, "s", "sam")  # only `s` has this commit, and the record of its merge
    give(context, "u", "una")
    give(context, "main", "bob")
    run(context, Merge("main", "s"))
    run(context, Merge("main", "t"))
    give(context, "t", "tom")
    give(context, "s", "sue")
    run(context, Merge("s", "t"))
    remove(context, "t", "xena")
    if forget:
        run(context, DeleteBranch("s"))
        clean(context)
    preview = run(context, PreviewMerge("t", "u"))
    assert preview.conflicts == ()
    run(context, Merge("t", "u"))
    assert people(context, "u").keys() == {"anna", "bob", "sam", "sue", "tom", "una"}
    run(context, Merge("u", "t"))
    assert people(context, "t") == people(context, "u")


def test_18_03_records_that_only_a_record_names_are_kept(context: Context) -> None:
    for name in ("s", "t"):
        run(context, CreateBranch(name))
        give(context, name, name)
    run(context, Merge("s", "t"))
    give(context, "main", "bob")
    run(context, Merge("t", "main"))
    for name in ("s", "t"):
        run(context, DeleteBranch(name))
    clean(context)
    assert list(find_litter(context.root, EVERYTHING)) == []
    assert sum(1 for _ in context.root.objects.list("__merged")) == 2


def test_18_04_merging_both_ways_undoes_neither_side(context: Context) -> None:
    run(context, CreateBranch("s"))
    give(context, "main", "anna", age=2, city="Rome")
    give(context, "s", "anna", age=1, city="Oslo")
    cross(context, "main", "s")
    both = {"anna": {"age": 2, "city": "Oslo"}}
    assert people(context) == people(context, "s") == both
    give(context, "main", "bob")
    give(context, "s", "cy")
    preview = run(context, PreviewMerge("s", "main"))
    assert preview.conflicts == ()
    assert len(preview.base_commits) == 2
    assert {name: counts.updated for name, counts in preview.counts.items()} == {"Person": 0}
    run(context, Merge("s", "main"))
    assert people(context) == {**both, "bob": {}, "cy": {}}


def test_18_04_a_change_after_merging_both_ways_is_no_conflict(context: Context) -> None:
    run(context, CreateBranch("s"))
    give(context, "main", "anna", age=2, city="Rome")
    give(context, "s", "anna", age=1, city="Oslo")
    cross(context, "main", "s")
    give(context, "main", "anna", age=1, city="Oslo")  # the value of an older ancestor again
    remove(context, "s", "anna")
    with pytest.raises(MergeConflictError):
        run(context, Merge("s", "main"))
    give(context, "s", "anna", age=2, city="Oslo")
    assert run(context, Merge("s", "main")).outcome is Outcome.MERGED
    assert people(context) == {"anna": {"age": 1, "city": "Oslo"}}


def test_18_04_what_the_bases_disagree_about_is_a_conflict(context: Context) -> None:
    """Each branch decided the same conflict for itself: neither counts as unchanged."""
    run(context, CreateBranch("s"))
    give(context, "main", "anna", age=2, city="Rome")
    give(context, "s", "anna", age=3, city="Rome")
    cross(context, "main", "s", "ours")
    assert people(context)["anna"]["age"] != people(context, "s")["anna"]["age"]
    preview = run(context, PreviewMerge("s", "main"))
    assert [(c.kind, c.properties) for c in preview.conflicts] == [
        (ConflictKind.DIVERGENT_UPDATE, ("age",))
    ]
    assert preview.conflicts[0].base == {"name": "anna", "city": "Rome"}
    run(context, Merge("s", "main", options("theirs")))
    assert people(context) == people(context, "s")


def test_18_05_an_inserted_value_of_a_dropped_property_is_a_conflict(context: Context) -> None:
    run(context, CreateBranch("s"))
    run(context, ApplySchema(WITHOUT_CITY, "s", allow_data_loss=True))
    give(context, "main", "bob", city="Oslo")
    for source, into in (("main", "s"), ("s", "main")):
        (conflict,) = run(context, PreviewMerge(source, into)).conflicts
        assert (conflict.kind, conflict.properties) == (ConflictKind.SCHEMA, ("city",))
        assert "'bob'" in conflict.message
        with pytest.raises(MergeConflictError):
            run(context, Merge(source, into))
    give(context, "main", "bob")  # without the value there is nothing to lose
    run(context, Merge("main", "s"))
    assert people(context, "s") == {"anna": {"age": 1}, "bob": {}}


def test_18_05_both_may_drop_a_property(context: Context) -> None:
    run(context, CreateBranch("s"))
    for branch in ("main", "s"):
        run(context, ApplySchema(WITHOUT_CITY, branch, allow_data_loss=True))
    give(context, "s", "bob")
    run(context, Merge("s", "main"))
    assert people(context) == {"anna": {"age": 1}, "bob": {}}


@pytest.mark.parametrize("verb", ["merge", "rebase"])
def test_18_06_cleanup_keeps_the_merge_base_of_siblings(context: Context, verb: str) -> None:
    """Siblings last agreed where one took the other in, which is neither's beginning."""
    for name in ("s", "t"):
        run(context, CreateBranch(name))
        give(context, name, name)
    give(context, "t", "shared", age=1)
    run(context, Merge("t", "s"))
    give(context, "t", "shared", age=2)
    give(context, "t", "tom")
    give(context, "s", "sue")
    clean(context)
    clean(context)
    if verb == "merge":
        assert run(context, Merge("t", "s")).outcome is Outcome.MERGED
    else:
        assert run(context, Rebase("s", "t")).moved
    assert people(context, "s").keys() == {"anna", "s", "t", "shared", "sue", "tom"}
    assert people(context, "s")["shared"] == {"age": 2}


def test_a_row_inserted_on_both_sides_may_lack_a_new_property(context: Context) -> None:
    run(context, CreateBranch("s"))
    grown = SCHEMA.replace("  city", "  size: I32 @default(7)\n  city")
    give(context, "main", "bob", age=5)
    give(context, "s", "bob", age=5)
    run(context, ApplySchema(grown, "s"))
    give(context, "s", "bob", age=5, size=9)
    for source, into in (("main", "s"), ("s", "main")):
        run(context, Merge(source, into))
        assert people(context, into)["bob"] == {"age": 5, "size": 9}


def test_walks_of_first_parents_are_as_before(context: Context) -> None:
    run(context, CreateBranch("s"))
    give(context, "s", "sue")
    give(context, "main", "bob")
    run(context, Merge("s", "main"))
    assert len(list(walk(context.root, read_branch(context.root, "main").id))) == 4
