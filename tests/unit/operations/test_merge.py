"""Merging branches: outcomes, conflicts and what decides them, schemas, what stays afterwards."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.dataset import LanceScanner
from tests.support.branchgraphs import SCHEMA, company, content, edge, new_graph, person, put

from omnigraph import faults, headroom
from omnigraph.commit.branches import was_deleted
from omnigraph.commit.retention import Policy
from omnigraph.errors import (
    BranchNotFoundError,
    HistoryReclaimedError,
    InvalidArgumentError,
    InvalidDataError,
    LimitExceededError,
    MergeConflictError,
    OmniGraphError,
    StoragePermanentError,
)
from omnigraph.graph import Graph
from omnigraph.history.ancestry import head_of, merge_bases
from omnigraph.history.log import BranchLog
from omnigraph.history.refs import read_branch
from omnigraph.history.resolve import Target, find_commit, find_record, resolve
from omnigraph.merges.resolutions import write_conflicts
from omnigraph.merges.tablemerge import Choices
from omnigraph.model.commit import Commit
from omnigraph.model.conflict import Side
from omnigraph.operations.context import Context
from omnigraph.operations.lifecycle import open_graph
from omnigraph.operations.merge import MergeOptions, Outcome
from omnigraph.operations.requests import (
    ApplySchema,
    CherryPick,
    CleanUp,
    CreateBranch,
    DeleteBranch,
    Diff,
    ListCommits,
    Merge,
    PreviewMerge,
)
from omnigraph.operations.verbs import run
from omnigraph.rows.threeway import Granularity


@pytest.fixture
def context(tmp_path: Path) -> Context:
    made = new_graph(str(tmp_path / "graph"))
    put(
        made,
        {
            "Person": [person("anna", age=30, photo=b"\x01"), person("bob", age=40)],
            "Company": [company("acme"), company("bolt")],
            "Knows": [edge("k1", "anna", "bob")],
        },
    )
    run(made, CreateBranch("f"))
    return made


def kinds(error: pytest.ExceptionInfo[MergeConflictError]) -> list[str]:
    return [found["kind"] for found in error.value.conflicts]


def choose(**choices: Any) -> MergeOptions:
    return MergeOptions(Choices(**choices))


def head(context: Context, branch: str = "main") -> Commit:
    return BranchLog(context.root, read_branch(context.root, branch).id).state.head


# ledger: B02
def test_a_fast_forward_takes_commits_over_as_they_are(context: Context) -> None:
    put(context, {"Person": [person("anna", age=31)]}, "f")
    last = put(context, {"Company": [company("coop")]}, "f")
    result = run(context, Merge("f"))
    assert result.outcome is Outcome.FAST_FORWARD
    assert result.commit.id == last.id
    assert head(context).id == last.id
    assert content(context) == content(context, "f")
    # The target points to the very files that the source wrote; its next write forks again.
    assert resolve(context.root, Target()).tables == resolve(context.root, Target("f")).tables
    put(context, {"Person": [person("anna", age=32)]})
    assert content(context, "f")["Person"]["anna"]["age"] == 31
    put(context, {"Person": [person("anna", age=33)]}, "f")
    assert content(context)["Person"]["anna"]["age"] == 32


def test_a_fast_forward_of_many_commits_keeps_every_state(context: Context) -> None:
    made = [put(context, {"Person": [person("cy", age=n)]}, "f") for n in range(150)]
    assert run(context, Merge("f")).outcome is Outcome.FAST_FORWARD
    for n in (0, 63, 64, 100, 149):
        state = resolve(context.root, Target(version=made[n].sequence))
        assert state.commit_id == made[n].id
        assert content(context, state)["Person"]["cy"]["age"] == n
    assert [c.id for c in run(context, ListCommits("main"))][:150] == [c.id for c in reversed(made)]


# ledger: B02
def test_a_merge_has_two_parents_and_takes_whole_tables_over(context: Context) -> None:
    put(context, {"Person": [person("anna", age=31, photo=b"\x01")]})
    theirs = put(context, {"Person": [person("bob", age=41)], "Company": [company("coop")]}, "f")
    ours = head(context)
    result = run(context, Merge("f", options=MergeOptions(message="together")))
    assert result.outcome is Outcome.MERGED
    assert result.commit.parents == (ours.id, theirs.id)
    assert result.commit.message == "together"
    assert result.commit.created_at_us > max(ours.created_at_us, theirs.created_at_us)
    found = content(context)
    assert found["Person"]["anna"] == {"name": "anna", "age": 31, "photo": b"\x01"}
    assert found["Person"]["bob"]["age"] == 41
    assert "coop" in found["Company"]
    catalog = resolve(context.root, Target()).catalog
    companies = catalog.node("Company")
    assert companies is not None
    taken = resolve(context.root, Target("f")).tables[companies.id]
    assert resolve(context.root, Target()).tables[companies.id] == taken


def test_merging_back_and_forth(context: Context) -> None:
    for n in range(4):
        put(context, {"Person": [person("anna", age=n, photo=b"\x01")]})
        put(context, {"Person": [person("bob", age=n)]}, "f")
        assert run(context, Merge("f")).outcome is Outcome.MERGED
        assert run(context, Merge("main", "f")).outcome in (Outcome.FAST_FORWARD, Outcome.MERGED)
        assert content(context) == content(context, "f")


def test_what_was_merged_is_not_brought_back(context: Context) -> None:
    """The base of the second merge is what the first one took in."""
    put(context, {"Person": [person("cy", age=1)]}, "f")
    put(context, {"Person": [person("anna", age=31, photo=b"\x01")]})
    run(context, Merge("f"))
    put(context, {}, removed={"Person": ["cy"]})
    put(context, {"Person": [person("bob", age=41)]}, "f")
    assert run(context, Merge("f")).outcome is Outcome.MERGED
    assert "cy" not in content(context)["Person"]
    assert content(context)["Person"]["bob"]["age"] == 41


def test_what_was_merged_is_known_when_its_branch_is_gone(context: Context) -> None:
    run(context, CreateBranch("g"))
    theirs = put(context, {"Person": [person("cy", age=1)]}, "f")
    for branch in ("main", "g"):
        put(context, {"Company": [company(f"{branch}-co")]}, branch)
        run(context, Merge("f", branch))
    source = read_branch(context.root, "f")
    run(context, DeleteBranch("f"))
    context.root.forget(source.id)
    context.root.objects.delete_prefix(f"__manifest/{source.id}")
    put(context, {}, removed={"Person": ["cy"]})
    put(context, {"Person": [person("bob", age=41)]}, "g")
    ids = [read_branch(context.root, name).id for name in ("main", "g")]
    places = [head_of(BranchLog(context.root, each)) for each in ids]
    (base,) = merge_bases(context.root, [places[0]], [places[1]]).places
    assert base.commit.id == theirs.id
    assert "cy" in content(context, base.snapshot(context.root, "main"))["Person"]
    run(context, Merge("g"))
    assert "cy" not in content(context)["Person"]
    # The commit can be shown, though not read.
    assert find_record(context.root, theirs.id).id == theirs.id
    with pytest.raises(HistoryReclaimedError, match="branch of that commit was deleted"):
        find_commit(context.root, theirs.id)


def test_the_source_may_be_deleted_afterwards(context: Context) -> None:
    put(context, {"Company": [company("coop")]}, "f")
    put(context, {"Person": [person("anna", age=31)]})
    source = read_branch(context.root, "f")
    result = run(context, Merge("f", options=MergeOptions(delete_source=True)))
    assert (result.source_deleted, result.delete_error) == (True, None)
    assert was_deleted(context.root, source.id)
    with pytest.raises(BranchNotFoundError):
        read_branch(context.root, "f")
    assert "coop" in content(context)["Company"]


def test_cleanup_keeps_what_was_taken_over(context: Context) -> None:
    put(context, {"Company": [company("coop")]}, "f")
    put(context, {"Person": [person("anna", age=31)]})
    run(context, Merge("f", options=MergeOptions(delete_source=True)))
    before = content(context)
    policy = Policy(keep=1, grace_s=0.0, litter_s=0.0)
    for _ in range(2):
        run(context, CleanUp(policy, confirm=True))
        assert content(open_graph(context.root.uri)) == before
    put(context, {"Company": [company("late")]})
    assert set(content(context)["Company"]) == {"acme", "bolt", "coop", "late"}


def test_a_deletion_that_is_refused_does_not_fail_the_merge(context: Context) -> None:
    put(context, {"Company": [company("coop")]}, "f")
    run(context, CreateBranch("child", Target("f")))
    result = run(context, Merge("f", options=MergeOptions(delete_source=True)))
    assert result.outcome is Outcome.FAST_FORWARD
    assert not result.source_deleted
    assert "child" in str(result.delete_error)
    with pytest.raises(InvalidArgumentError, match="itself"):
        run(context, Merge("f", "f"))


# Conflicts


def test_different_properties_combine_unless_told_otherwise(context: Context) -> None:
    put(context, {"Person": [person("anna", age=31, photo=b"\x01")]})
    put(context, {"Person": [person("anna", age=30, city="Oslo", photo=b"\x01")]}, "f")
    with pytest.raises(MergeConflictError) as caught:
        run(context, Merge("f", options=choose(granularity=Granularity.ENTITY)))
    assert kinds(caught) == ["DivergentUpdate"]
    run(context, Merge("f"))
    expected = {"name": "anna", "age": 31, "city": "Oslo", "photo": b"\x01"}
    assert content(context)["Person"]["anna"] == expected


def test_a_conflict_tells_all_three_values(context: Context) -> None:
    put(context, {"Person": [person("bob", age=41)]})
    put(context, {"Person": [person("bob", age=42)]}, "f")
    (conflict,) = run(context, PreviewMerge("f")).conflicts
    assert conflict.properties == ("age",)
    values = [dict(image or {})["age"] for image in (conflict.base, conflict.ours, conflict.theirs)]
    assert values == [40, 41, 42]


@pytest.mark.parametrize(
    ("strategy", "age"), [(Side.OURS, 41), (Side.THEIRS, 42)], ids=["ours", "theirs"]
)
def test_a_strategy_decides(context: Context, strategy: Side, age: int) -> None:
    put(context, {"Person": [person("bob", age=41, city="Rome")]})
    put(context, {"Person": [person("bob", age=42, score=1.0)]}, "f")
    run(context, Merge("f", options=choose(strategy=strategy)))
    expected = {"name": "bob", "age": age, "city": "Rome", "score": 1.0}
    assert content(context)["Person"]["bob"] == expected


def test_a_strategy_for_one_type(context: Context) -> None:
    for branch, n in (("main", 1), ("f", 2)):
        rows = {"Person": [person("bob", age=n)], "Knows": [edge("k1", "anna", "bob", since=n)]}
        put(context, rows, branch)
    with pytest.raises(MergeConflictError) as caught:
        run(context, Merge("f", options=choose(strategies={"Person": Side.OURS})))
    assert [found["type"] for found in caught.value.conflicts] == ["Knows"]
    run(context, Merge("f", options=choose(strategy=Side.OURS, strategies={"Knows": Side.THEIRS})))
    assert content(context)["Person"]["bob"]["age"] == 1
    assert content(context)["Knows"]["k1"]["since"] == 2


@pytest.mark.parametrize("deleting", ["main", "f"])
@pytest.mark.parametrize("winner", [Side.OURS, Side.THEIRS])
def test_an_orphan_is_decided_by_who_wins(context: Context, deleting: str, winner: Side) -> None:
    linking = "f" if deleting == "main" else "main"
    put(context, {}, deleting, removed={"Person": ["bob"], "Knows": ["k1"]})
    put(context, {"Knows": [edge("k2", "anna", "bob")]}, linking)
    with pytest.raises(MergeConflictError) as caught:
        run(context, Merge("f"))
    assert kinds(caught) == ["OrphanEdge"]
    run(context, Merge("f", options=choose(strategy=winner)))
    deleter_wins = (winner is Side.OURS) == (deleting == "main")
    found = content(context)
    assert ("bob" in found["Person"]) == (not deleter_wins)
    assert set(found.get("Knows", {})) == (set() if deleter_wins else {"k2"})


def test_a_value_that_must_be_unique(context: Context) -> None:
    put(context, {"Person": [person("cy", email="x@x")]})
    put(context, {"Person": [person("dora", email="x@x")]}, "f")
    with pytest.raises(MergeConflictError) as caught:
        run(context, Merge("f"))
    assert kinds(caught) == ["UniqueViolation"]
    assert caught.value.conflicts[0]["id"] == "dora"


def test_a_value_moves_on_one_side_and_is_taken_on_the_other(context: Context) -> None:
    put(context, {"Person": [person("bob", age=40, email="x@x")]})
    run(context, CreateBranch("g"))
    put(context, {"Person": [person("bob", age=40)]}, "g")
    put(context, {"Person": [person("cy", email="x@x")]}, "g")
    put(context, {"Person": [person("anna", age=31, photo=b"\x01")]})
    assert run(context, Merge("g")).outcome is Outcome.MERGED
    assert content(context)["Person"]["cy"]["email"] == "x@x"


def test_a_cardinality(context: Context) -> None:
    put(context, {"WorksAt": [edge("w1", "anna", "acme")]})
    put(context, {"WorksAt": [edge("w2", "anna", "bolt")]}, "f")
    with pytest.raises(MergeConflictError) as caught:
        run(context, Merge("f"))
    assert kinds(caught) == ["CardinalityViolation"]


def test_a_combined_row_that_breaks_a_rule(context: Context, tmp_path: Path) -> None:
    """Decided by hand, so that neither side's checks have seen it."""
    put(context, {"Person": [person("bob", age=41)]})
    put(context, {"Person": [person("bob", age=42)]}, "f")
    line = json.loads(write_conflicts(run(context, PreviewMerge("f")).conflicts))
    line["resolution"] = {"age": 999}
    with pytest.raises(MergeConflictError) as caught:
        run(context, Merge("f", options=MergeOptions(resolutions=json.dumps(line))))
    assert kinds(caught) == ["ValueConstraintViolation"]


def test_conflicts_go_out_and_decisions_come_back(context: Context) -> None:
    put(
        context,
        {"Person": [person("anna", age=1), person("bob", age=1), person("cy", age=1)]},
    )
    put(
        context,
        {"Person": [person("anna", age=2), person("bob", age=2), person("cy", age=2)]},
        "f",
    )
    text = write_conflicts(run(context, PreviewMerge("f")).conflicts)
    lines = [json.loads(line) for line in text.splitlines()]
    assert [line["id"] for line in lines] == ["anna", "bob", "cy"]
    # Nothing decided: the same conflicts.
    with pytest.raises(MergeConflictError):
        run(context, Merge("f", options=MergeOptions(resolutions=text)))
    for line, decision in zip(lines, ["theirs", "delete", {"age": 7}], strict=True):
        line["resolution"] = decision
    edited = "\n".join(json.dumps(line) for line in lines)
    # Bob still has an edge, so deleting him leaves it without an end.
    with pytest.raises(MergeConflictError) as caught:
        run(context, Merge("f", options=MergeOptions(resolutions=edited)))
    assert kinds(caught) == ["OrphanEdge"]
    put(context, {}, removed={"Knows": ["k1"]})
    run(context, Merge("f", options=MergeOptions(resolutions=edited)))
    found = content(context)["Person"]
    assert {name: row.get("age") for name, row in found.items()} == {"anna": 2, "cy": 7}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "Line 1 .* not JSON"),
        ("[]", "not a JSON object"),
        ('{"resolution": "ours"}', "names no entity"),
        ('{"type": "Nobody", "id": "x", "resolution": "ours"}', "no type 'Nobody'"),
        ('{"type": "Person", "id": "x", "resolution": "mine"}', "ours, theirs, delete"),
        ('{"type": "Person", "id": "x", "resolution": {"aged": 1}}', "no property 'aged'"),
        ('{"type": "Person", "id": "x", "resolution": {"age": "old"}}', "age"),
    ],
)
def test_decisions_that_make_no_sense(context: Context, line: str, why: str) -> None:
    put(context, {"Person": [person("bob", age=41)]})
    put(context, {"Person": [person("anna", age=42)]}, "f")
    with pytest.raises(InvalidArgumentError, match=why):
        run(context, Merge("f", options=MergeOptions(resolutions=line)))


# Schemas


def test_schemas_that_grow_on_both_sides(context: Context) -> None:
    run(context, ApplySchema(SCHEMA + "\nnode Pet { name: String @key }\n"))
    run(context, ApplySchema(SCHEMA.replace("node Company {", "node Company {\n  size: I64?"), "f"))
    put(context, {"Pet": [{"id": "rex", "name": "rex"}]})
    put(context, {"Company": [{**company("acme"), "size": 7}]}, "f")
    run(context, Merge("f"))
    found = content(context)
    assert found["Pet"] == {"rex": {"name": "rex"}}
    assert found["Company"]["acme"] == {"name": "acme", "size": 7}
    catalog = resolve(context.root, Target()).catalog
    ids = [t.id for t in catalog.tables()] + [p.id for t in catalog.tables() for p in t.properties]
    assert len(set(ids)) == len(ids)


def test_rows_meet_a_property_that_the_other_side_added(context: Context) -> None:
    wider = SCHEMA.replace("  city: String?", "  city: String?\n  rank: I64 @default(5)")
    run(context, ApplySchema(wider, "f"))
    put(context, {"Person": [person("anna", age=30, rank=9, photo=b"\x01")]}, "f")
    put(context, {"Person": [person("bob", age=41), person("cy", age=1)]})
    run(context, Merge("f"))
    found = content(context)["Person"]
    assert {name: (row["age"], row["rank"]) for name, row in found.items()} == {
        "anna": (30, 9),
        "bob": (41, 5),
        "cy": (1, 5),
    }
    # And the other way round: the branch takes main's rows into its wider table.
    put(context, {"Person": [person("bob", age=50, rank=1)]})
    run(context, CreateBranch("late", Target("main", version=2)))
    put(context, {"Person": [person("anna", age=77, photo=b"\x01")]}, "late")
    run(context, Merge("late"))
    assert content(context)["Person"]["anna"]["age"] == 77
    assert content(context)["Person"]["anna"]["rank"] == 9


def test_rows_that_break_a_rule_that_the_other_side_added(context: Context) -> None:
    run(
        context,
        ApplySchema(SCHEMA.replace("age: I32? @range(0..200)", "age: I32? @range(0..50)"), "f"),
    )
    put(context, {"Person": [person("bob", age=60)]})
    with pytest.raises(MergeConflictError) as caught:
        run(context, Merge("f"))
    assert kinds(caught) == ["ValueConstraintViolation"]
    put(context, {"Person": [person("bob", age=45)]})
    run(context, Merge("f"))


def grown(context: Context, branch: str, *properties: str) -> None:
    lines = "".join(f"\n  {item}" for item in properties)
    run(context, ApplySchema(SCHEMA.replace("  city: String?", f"  city: String?{lines}"), branch))


def test_both_sides_add_columns_and_rows(context: Context) -> None:
    grown(context, "main", "left: I64?", 'hue: String @default("red")')
    grown(context, "f", "right: I64?", "size: I64 @default(7)", "scan: Blob?")
    put(context, {"Person": [person("anna", age=30, left=1, hue="blue"), person("cy", hue="red")]})
    put(
        context,
        {
            "Person": [
                person("anna", age=31, right=2, size=8, scan=b"x"),
                person("dan", right=3, size=9),
            ]
        },
        "f",
    )
    before = content(context)
    assert run(context, PreviewMerge("f")).conflicts == ()
    assert content(context) == before
    run(context, Merge("f"))
    assert run(context, Merge("f")).outcome == "already_up_to_date"
    found = content(context)["Person"]
    assert found == {
        "anna": {
            "name": "anna", "age": 31, "left": 1, "hue": "blue", "right": 2, "size": 8, "scan": b"x"
        },
        "bob": {**before["Person"]["bob"], "size": 7},
        "cy": {"name": "cy", "hue": "red", "size": 7},
        "dan": {"name": "dan", "hue": "red", "right": 3, "size": 9},
    }  # fmt: skip
    graph = Graph(context)
    graph.optimize()
    assert content(context)["Person"] == found
    assert graph.verify().findings == []
    # The other side comes to the same.
    run(context, Merge("main", "f"))
    assert content(context, "f")["Person"] == found


def test_both_sides_add_columns_and_no_rows(context: Context) -> None:
    grown(context, "main", "left: I64?")
    grown(context, "f", "right: I64 @default(7)")
    run(context, Merge("f"))
    assert {row["right"] for row in content(context)["Person"].values()} == {7}
    put(context, {"Person": [person("cy", left=1, right=2)]})
    assert content(context)["Person"]["cy"] == {"name": "cy", "left": 1, "right": 2}
    assert Graph(context).verify().findings == []


def test_a_pick_brings_the_columns_of_its_rows(context: Context) -> None:
    grown(context, "main", "left: I64?")
    put(context, {"Person": [person("cy", left=1)]})
    grown(context, "f", "right: I64?")
    put(context, {"Person": [person("dan", right=2)]}, "f")
    for commit in list(run(context, ListCommits("f")))[1::-1]:
        run(context, CherryPick(commit.id))
    found = content(context)["Person"]
    assert (found["cy"], found["dan"]) == ({"name": "cy", "left": 1}, {"name": "dan", "right": 2})


def test_one_property_that_both_added_in_different_ways(context: Context) -> None:
    grown(context, "main", "rank: I64?")
    grown(context, "f", "rank: String?")
    with pytest.raises(MergeConflictError) as caught:
        run(context, Merge("f"))
    assert kinds(caught) == ["SchemaConflict"]


def widened(context: Context, branch: str, *properties: str) -> None:
    """`age` becomes wider, and properties come besides."""
    lines = "".join(f"\n  {item}" for item in properties)
    wide = SCHEMA.replace("age: I32? @range(0..200)", "age: I64?")
    run(context, ApplySchema(wide.replace("  city: String?", f"  city: String?{lines}"), branch))


# ledger: B02 T02
@pytest.mark.parametrize("wide", ["theirs", "ours"])
def test_a_wider_type_on_one_side_and_columns_on_both(context: Context, wide: str) -> None:
    here, there = ("main", "f") if wide == "theirs" else ("f", "main")
    grown(context, here, "left: I64?", 'hue: String @default("red")')
    widened(context, there, "right: I64 @default(7)")
    changed = [person("anna", age=30, left=1, hue="blue", photo=b"\x01"), person("cy", hue="red")]
    put(context, {"Person": changed}, here)
    put(
        context,
        {"Person": [person("dan", age=2**40, right=9), person("bob", age=2**33, right=7)]},
        there,
        removed={"Knows": ["k1"]},
    )
    assert run(context, PreviewMerge("f")).conflicts == ()
    run(context, Merge("f"))
    assert run(context, Merge("f")).outcome == "already_up_to_date"
    found = content(context)["Person"]
    assert found == {
        "anna": {
            "name": "anna", "age": 30, "left": 1, "hue": "blue", "right": 7, "photo": b"\x01"
        },
        "bob": {"name": "bob", "age": 2**33, "hue": "red", "right": 7},
        "cy": {"name": "cy", "hue": "red", "right": 7},
        "dan": {"name": "dan", "age": 2**40, "hue": "red", "right": 9},
    }  # fmt: skip
    graph = Graph(context)
    assert graph.verify().findings == []
    graph.optimize()
    assert content(context)["Person"] == found
    run(context, Merge("main", "f"))
    assert content(context, "f")["Person"] == found


def test_values_that_only_a_wider_type_holds(context: Context) -> None:
    """A difference is told in both directions; a pick to a narrower type is refused."""
    widened(context, "f")
    put(context, {"Person": [person("dan", age=7)]}, "f")
    fits = next(iter(run(context, ListCommits("f"))))
    put(context, {"Person": [person("eve", age=2**40)]}, "f")
    for before, after in (("main", "f"), ("f", "main")):
        found = {c.id: c for c in run(context, Diff(Target(before), Target(after)))}
        image = found["eve"].after or found["eve"].before
        assert image is not None
        assert image["age"] == 2**40
    assert run(context, CherryPick(fits.id)).commit is not None
    assert content(context)["Person"]["dan"] == {"name": "dan", "age": 7}
    with pytest.raises(InvalidDataError, match=r"Person\.age .* does not fit into I32"):
        run(context, CherryPick(next(iter(run(context, ListCommits("f")))).id))


def test_each_side_widens_another_column(tmp_path: Path) -> None:
    schema = "node Item {\n  name: String @key\n  age: I32?\n  size: F32?\n}\n"
    context = new_graph(str(tmp_path / "other"), schema)
    put(context, {"Item": [{"id": n, "name": n, "age": 1, "size": 0.1} for n in "abc"]})
    run(context, CreateBranch("f"))
    run(context, ApplySchema(schema.replace("I32", "I64")))
    run(context, ApplySchema(schema.replace("F32", "F64"), "f"))
    put(context, {"Item": [{"id": "a", "name": "a", "age": 2**40, "size": 0.1}]})
    put(context, {}, "f", removed={"Item": ["c"]})
    before = content(context)["Item"]
    run(context, Merge("f"))
    assert content(context)["Item"] == {key: before[key] for key in "ab"}
    assert Graph(context).verify().findings == []
    run(context, Merge("main", "f"))
    assert content(context, "f") == content(context)


@pytest.mark.parametrize("taken", [True, False])
def test_a_rule_over_a_column_that_is_being_widened(context: Context, taken: bool) -> None:
    """Keys of rows that nobody touched are compared as they will be spelled."""
    run(context, ApplySchema(SCHEMA.replace("since: I32?", "since: I32?\n  why: String?")))
    put(context, {"Knows": [edge("k1", "anna", "bob", since=5)]})
    run(context, ApplySchema(SCHEMA.replace("since: I32?", "since: I64? @unique"), "f"))
    added = edge("k2", "bob", "anna", since=5 if taken else 6)
    put(context, {"Knows": [added]}, "f")
    if taken:
        with pytest.raises(MergeConflictError) as caught:
            run(context, Merge("f"))
        assert kinds(caught) == ["UniqueViolation"]
    else:
        run(context, Merge("f"))
        assert Graph(context).verify().findings == []


def test_a_rule_over_a_column_that_ours_has_not_got_yet(context: Context) -> None:
    grown(context, "main", "left: I64?")
    put(context, {"Person": [person("cy", left=1)]})
    wide = SCHEMA.replace("  city: String?", "  city: String?\n  tag: String? @unique")
    run(context, ApplySchema(wide, "f"))
    put(context, {"Person": [person("dan", tag="x")]}, "f")
    run(context, Merge("f"))
    assert content(context)["Person"]["dan"] == {"name": "dan", "tag": "x"}
    assert Graph(context).verify().findings == []


def test_a_dropped_type_whose_rows_changed(context: Context) -> None:
    small = SCHEMA[: SCHEMA.index("edge WorksAt")]
    run(context, ApplySchema(small, "f"))
    put(context, {"WorksAt": [edge("w1", "anna", "acme")]})
    with pytest.raises(MergeConflictError) as caught:
        run(context, Merge("f"))
    assert kinds(caught) == ["SchemaConflict"]
    assert "dropped WorksAt" in str(caught.value)
    put(context, {}, removed={"WorksAt": ["w1"]})
    run(context, Merge("f"))
    assert resolve(context.root, Target()).catalog.edge("WorksAt") is None


# Interruptions and other writers


@pytest.fixture
def diverged(context: Context) -> Context:
    put(context, {"Person": [person("anna", age=31)], "Knows": [edge("k2", "bob", "anna")]})
    put(
        context,
        {
            "Person": [person("bob", age=41)],
            "Knows": [edge("k3", "bob", "bob")],
            "Company": [company("coop")],
        },
        "f",
    )
    return context


def test_more_changes_than_fit_into_memory_are_refused(
    diverged: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While they are read, not by the system when there is no memory left."""
    before = content(diverged)
    with monkeypatch.context() as patch:
        patch.setattr(headroom, "total_bytes", lambda: 400)
        with pytest.raises(LimitExceededError, match="would hold more rows than fit") as caught:
            run(diverged, Merge("f"))
    assert caught.value.limit == 100
    assert content(diverged) == before
    assert run(diverged, Merge("f")).outcome is Outcome.MERGED


# ledger: R02
@pytest.mark.parametrize(
    ("point", "forward"),
    [
        ("commit.after_sidecar", False),
        ("commit.after_table", False),
        ("commit.before_confirm", False),
        ("commit.after_confirm", True),
        ("commit.before_publish", True),
    ],
)
def test_an_interrupted_merge_is_finished_only_if_it_was_confirmed(
    diverged: Context, point: str, forward: bool
) -> None:
    before = content(diverged)
    uri = diverged.root.uri
    with (
        faults.armed(point, faults.Raise(StoragePermanentError)),
        pytest.raises(OmniGraphError),
    ):
        run(diverged, Merge("f"))
    assert content(diverged) == before
    again = open_graph(uri, actor="act-bob")
    if forward:
        shown = content(again)
        assert shown["Person"]["bob"]["age"] == 41
        assert set(shown["Knows"]) == {"k1", "k2", "k3"}
        assert "coop" in shown["Company"]
        assert len(head(again).parents) == 2
    else:
        assert content(again) == before
    assert run(again, Merge("f")).outcome is (Outcome.UP_TO_DATE if forward else Outcome.MERGED)
    assert content(again)["Person"]["anna"]["age"] == 31


def test_a_merge_that_is_overtaken_is_prepared_again(
    diverged: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    from omnigraph.merges.mergewrites import stage_plan as stage

    writers = [person("dora", age=1), person("bob", age=55)]

    def overtaken(plan: Any) -> Any:
        if writers:
            put(diverged, {"Person": [writers.pop()]})
        return stage(plan)

    monkeypatch.setattr("omnigraph.operations.merge.stage_plan", overtaken)
    with pytest.raises(MergeConflictError, match="bob"):
        run(diverged, Merge("f"))
    put(diverged, {"Person": [person("bob", age=40)]})
    assert run(diverged, Merge("f")).outcome is Outcome.MERGED
    assert content(diverged)["Person"]["dora"]["age"] == 1
    assert content(diverged)["Person"]["bob"]["age"] == 41


def test_a_preview_writes_nothing(diverged: Context) -> None:
    files = sorted(path for path in Path(diverged.root.location.path).rglob("*") if path.is_file())
    preview = run(replace(diverged, read_only=True), PreviewMerge("f"))
    assert preview.conflicts == ()
    assert {name: (c.inserted, c.updated, c.deleted) for name, c in preview.counts.items()} == {
        "Person": (0, 1, 0),
        "Company": (1, 0, 0),
        "Knows": (1, 0, 0),
    }
    after = sorted(path for path in Path(diverged.root.location.path).rglob("*") if path.is_file())
    assert after == files


# ledger: R02 R14
@pytest.mark.parametrize(
    ("point", "forward"),
    [
        ("stage.after_detached", None),
        ("commit.between_steps", False),
        ("commit.after_table", False),
        ("commit.after_confirm", True),
    ],
)
def test_an_interrupted_merge_of_columns_and_rows(
    context: Context, point: str, forward: bool | None
) -> None:
    """A table gets its columns and its rows in two steps, which are seen together or not at all."""
    grown(context, "main", "left: I64?")
    put(context, {"Person": [person("cy", left=1)]})
    grown(context, "f", "right: I64 @default(7)")
    put(context, {"Person": [person("dan", right=2)]}, "f")
    before = content(context)
    with (
        faults.armed(point, faults.Raise(StoragePermanentError)),
        pytest.raises(OmniGraphError),
    ):
        run(context, Merge("f"))
    assert content(context) == before
    again = open_graph(context.root.uri, actor="act-bob")
    if not forward:
        assert content(again) == before
    run(again, Merge("f"))
    found = content(again)["Person"]
    assert found["cy"] == {"name": "cy", "left": 1, "right": 7}
    assert found["dan"] == {"name": "dan", "right": 2}
    assert Graph(again).verify().findings == []


class _Counted:
    """How many rows Lance hands out."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rows = 0
        take, scan = lance.LanceDataset._take_rows, LanceScanner.to_reader

        def counted_take(*args: Any, **options: Any) -> pa.Table:
            found = take(*args, **options)
            self.rows += found.num_rows
            return found

        def counted_scan(scanner: LanceScanner) -> pa.RecordBatchReader:
            reader = scan(scanner)
            return pa.RecordBatchReader.from_batches(reader.schema, self._each(reader))

        monkeypatch.setattr(lance.LanceDataset, "_take_rows", counted_take)
        monkeypatch.setattr(LanceScanner, "to_reader", counted_scan)

    def _each(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            self.rows += batch.num_rows
            yield batch


def rows_read(context: Context, counted: _Counted) -> tuple[int, ...]:
    """By a preview, a diff and a merge."""
    seen = [counted.rows]
    run(context, PreviewMerge("f"))
    seen.append(counted.rows)
    assert len(list(run(context, Diff(Target("main"), Target("f"))))) == 120
    seen.append(counted.rows)
    run(context, Merge("f"))
    seen.append(counted.rows)
    return tuple(after - before for before, after in pairwise(seen))


def test_what_is_read_follows_the_change_and_not_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Merging, previewing and comparing 60 changed rows over tables of two sizes."""
    read: list[tuple[int, ...]] = []
    for size in (1_000, 20_000):
        context = new_graph(str(tmp_path / str(size)))
        people = [person(f"p{n:05d}", age=n % 90, email=f"{n}@x") for n in range(size)]
        knows = [edge(f"k{n:05d}", f"p{n:05d}", "p00000") for n in range(size)]
        put(context, {"Person": people, "Knows": knows})
        run(context, CreateBranch("f"))
        for branch, first in (("main", 0), ("f", 500)):
            numbers = range(first, first + 30)
            changed = [person(f"p{n:05d}", age=99, email=f"{branch}{n}@x") for n in numbers]
            removed = [f"k{n:05d}" for n in numbers]
            put(context, {"Person": changed}, branch, removed={"Knows": removed})
        with monkeypatch.context() as patched:
            read.append(rows_read(context, _Counted(patched)))
        assert len(content(context)["Knows"]) == size - 60
    small, large = read
    assert all(0 < rows < 1_000 for rows in small), small
    assert large == small
