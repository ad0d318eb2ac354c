"""Random histories on two branches, against a plain model.

What is shown: a diff applied to its base gives its target, between any two states; a merge without
conflict equals doing both sides' changes; it is symmetric in content and finds the same conflicts
either way; merging twice is up to date; a revert undoes its commit exactly. # ledger: B02 B03
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.branchgraphs import content, new_graph, put
from tests.support.rowmerge import alike, combine_rows

from omnigraph.errors import MergeConflictError
from omnigraph.history.resolve import Target
from omnigraph.model.change import ChangeOp
from omnigraph.operations.context import Context
from omnigraph.operations.merge import Outcome
from omnigraph.operations.requests import (
    CherryPick,
    CreateBranch,
    Diff,
    ListCommits,
    Merge,
    PreviewMerge,
    Revert,
)
from omnigraph.operations.verbs import run

State = dict[str, dict[str, dict[str, Any]]]
PEOPLE = ("anna", "bob", "cy")
COMPANIES = ("acme", "bolt")
NAN = float("nan")
_names = count()


def _optional(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


people = st.fixed_dictionaries(
    {
        "age": _optional(st.integers(0, 3)),
        "city": _optional(st.sampled_from(["Rome", "Oslo"])),
        "email": _optional(st.sampled_from(["a@x", "b@x", "c@x", "d@x"])),
        "score": _optional(st.sampled_from([0.0, 1.5, NAN])),
        "tags": _optional(st.lists(st.sampled_from(["x", "y"]), max_size=2)),
        "face": _optional(st.sampled_from([[0.0, 1.0], [1.0, NAN]])),
        "photo": _optional(st.sampled_from([b"", b"\x00\x01"])),
    }
)
steps = st.one_of(
    st.tuples(st.just("person"), st.sampled_from(PEOPLE), people),
    st.tuples(st.just("set"), st.sampled_from(PEOPLE), people, st.sampled_from(["age", "city"])),
    st.tuples(st.just("remove"), st.sampled_from(PEOPLE)),
    st.tuples(
        st.just("knows"),
        st.sampled_from(["k1", "k2", "k3"]),
        st.sampled_from(PEOPLE),
        st.sampled_from(PEOPLE),
    ),
    st.tuples(
        st.just("works"),
        st.sampled_from(["w1", "w2"]),
        st.sampled_from(PEOPLE),
        st.sampled_from(COMPANIES),
    ),
    st.tuples(st.just("unlink"), st.sampled_from(["k1", "k2", "k3", "w1", "w2"])),
)
histories = st.lists(steps, max_size=4)


def start() -> State:
    return {"Person": {}, "Company": {}, "Knows": {}, "WorksAt": {}}


def allowed(state: State) -> bool:
    """The rules of the schema that a step may break."""
    emails = [row["email"] for row in state["Person"].values() if "email" in row]
    sources = [row["src"] for row in state["WorksAt"].values()]
    ends = {"Knows": ("Person", "Person"), "WorksAt": ("Person", "Company")}
    dangling = any(
        row["src"] not in state[src] or row["dst"] not in state[dst]
        for edge, (src, dst) in ends.items()
        for row in state[edge].values()
    )
    return len(set(emails)) == len(emails) and len(set(sources)) == len(sources) and not dangling


def apply(state: State, step: tuple[Any, ...]) -> State:
    """A step on plain values. One that would break a rule changes nothing."""
    after = copy.deepcopy(state)
    match step:
        case ("person", name, values):
            after["Person"][name] = {"name": name, **_given(values)}
        case ("set", name, values, key):
            if name in after["Person"]:
                row = {k: v for k, v in after["Person"][name].items() if k != key}
                after["Person"][name] = {**row, **_given({key: values[key]})}
        case ("remove", name):
            after["Person"].pop(name, None)
            for edge in ("Knows", "WorksAt"):
                rows = after[edge].items()
                after[edge] = {k: r for k, r in rows if name not in (r["src"], r["dst"])}
        case ("knows", key, src, dst):
            after["Knows"][key] = {"src": src, "dst": dst}
        case ("works", key, src, dst):
            after["WorksAt"][key] = {"src": src, "dst": dst}
        case ("unlink", key):
            after["Knows"].pop(key, None)
            after["WorksAt"].pop(key, None)
    return after if allowed(after) else state


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def write(context: Context, branch: str, before: State, after: State) -> bool:
    """Take a branch from one state to the next in one commit."""
    rows = {
        name: [
            {"id": key, **row}
            for key, row in table.items()
            if not alike(before[name].get(key), row)
        ]
        for name, table in after.items()
    }
    gone = {name: before[name].keys() - after[name].keys() for name in before}
    rows = {name: table for name, table in rows.items() if table}
    gone = {name: keys for name, keys in gone.items() if keys}
    if rows or gone:
        put(context, rows, branch, removed=gone)
    return bool(rows or gone)


def shown(state: State) -> str:
    return repr({name: dict(sorted(rows.items())) for name, rows in state.items() if rows})


def seen(context: Context, branch: str) -> str:
    found = content(context, branch)
    order = {name: found[name] for name in start() if name in found}
    return repr({name: {k: _ordered(r) for k, r in rows.items()} for name, rows in order.items()})


def _ordered(row: dict[str, Any]) -> dict[str, Any]:
    keys = ("name", "src", "dst", "age", "city", "email", "score", "tags", "face", "photo")
    return {key: row[key] for key in keys if key in row}


def ordered(state: State) -> State:
    return {n: {k: _ordered(r) for k, r in sorted(rows.items())} for n, rows in state.items()}


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Context:
    made = new_graph(str(tmp_path_factory.mktemp("histories") / "graph"))
    put(made, {"Company": [{"id": name, "name": name} for name in COMPANIES]})
    return made


def begin() -> State:
    return {**start(), "Company": {name: {"name": name} for name in COMPANIES}}


def play(context: Context, branch: str, state: State, history: list[tuple[Any, ...]]) -> State:
    for step in history:
        after = apply(state, step)
        write(context, branch, state, after)
        state = after
    return state


def combine(base: State, ours: State, theirs: State) -> tuple[State, bool]:
    """The three-way merge by its definition: property by property. Also whether it clashes."""
    merged, clash = start(), False
    for name in base:
        for key in base[name].keys() | ours[name].keys() | theirs[name].keys():
            row, bad = combine_rows(*(side[name].get(key) for side in (base, ours, theirs)))
            clash |= bad
            if row is not None:
                merged[name][key] = row
    return merged, clash or not allowed(merged)


def patched(context: Context, before: str, after: str) -> State:
    """The diff between two branches, applied to the first of them."""
    state = {**start(), **content(context, before)}
    for change in run(context, Diff(Target(before), Target(after))):
        table = state[change.type_name]
        if change.op is not ChangeOp.INSERT:
            image = _ordered(_given(dict(change.before or {})))
            assert alike(image, _ordered(table.pop(change.id)))
        if change.op is not ChangeOp.DELETE:
            assert change.id not in table
            table[change.id] = _given(dict(change.after or {}))
    return state


PROFILE = settings(
    max_examples=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
LONG = settings(PROFILE, max_examples=150)


def check_merge(context: Context, base: list[Any], left: list[Any], right: list[Any]) -> None:
    stem = f"b{next(_names)}"
    root, ours, theirs, mirror = (f"{stem}-{part}" for part in ("base", "ours", "theirs", "mirror"))
    run(context, CreateBranch(root))
    was = play(context, root, begin(), base)
    for branch in (ours, theirs, mirror):
        run(context, CreateBranch(branch, Target(root)))
    mine = play(context, ours, was, left)
    other = play(context, theirs, was, right)
    play(context, mirror, was, left)
    assert seen(context, ours) == shown(ordered(mine))
    assert shown(ordered(patched(context, ours, theirs))) == shown(ordered(other))
    assert shown(ordered(patched(context, theirs, root))) == shown(ordered(was))
    want, clash = combine(was, mine, other)
    preview = run(context, PreviewMerge(theirs, ours))
    mirrored = run(context, PreviewMerge(mirror, theirs))
    if preview.outcome is Outcome.MERGED:
        assert bool(preview.conflicts) == bool(mirrored.conflicts) == clash, preview.conflicts
    if preview.conflicts:
        with pytest.raises(MergeConflictError):
            run(context, Merge(theirs, ours))
        assert seen(context, ours) == shown(ordered(mine))
        return
    result = run(context, Merge(theirs, ours))
    assert seen(context, ours) == shown(ordered(want))
    assert run(context, Merge(theirs, ours)).outcome is Outcome.UP_TO_DATE
    run(context, Merge(mirror, theirs))
    assert seen(context, theirs) == shown(ordered(want))
    if result.outcome is Outcome.MERGED:
        run(context, Revert(result.commit.id, ours))
        assert seen(context, ours) == shown(ordered(mine))


@PROFILE
@given(base=histories, left=histories, right=histories)
def test_merging(context: Context, base: list[Any], left: list[Any], right: list[Any]) -> None:
    check_merge(context, base, left, right)


@pytest.mark.slow
@LONG
@given(base=histories, left=histories, right=histories)
def test_merging_at_length(
    context: Context, base: list[Any], left: list[Any], right: list[Any]
) -> None:
    check_merge(context, base, left, right)


@PROFILE
@given(base=histories, step=steps)
def test_reverting_and_picking(context: Context, base: list[Any], step: tuple[Any, ...]) -> None:
    branch = f"b{next(_names)}"
    run(context, CreateBranch(branch))
    was = play(context, branch, begin(), base)
    copy_ = f"{branch}-copy"
    run(context, CreateBranch(copy_, Target(branch)))
    now = apply(was, step)
    if not write(context, branch, was, now):
        return
    head = next(iter(_log(context, branch)))
    picked = run(context, CherryPick(head, copy_))
    assert picked.commit is not None
    assert seen(context, copy_) == shown(ordered(now))
    assert run(context, CherryPick(head, copy_)).commit is None
    undone = run(context, Revert(head, branch))
    assert undone.commit is not None
    assert seen(context, branch) == shown(ordered(was))


def _log(context: Context, branch: str) -> Iterator[str]:

    return (commit.id for commit in run(context, ListCommits(branch)))
