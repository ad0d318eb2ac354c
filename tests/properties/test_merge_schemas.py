"""Both sides give one type properties, widen others and change its rows, at random, against a
plain model.

In the model every row has all properties from the beginning: those that a side does not know have
their defaults there. The merge is then property by property, whatever was added by whom.
# ledger: B02 T03
"""

from __future__ import annotations

import copy
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.support.branchgraphs import content, new_graph, put

from omnigraph.errors import MergeConflictError
from omnigraph.graph import Graph
from omnigraph.history.resolve import Target
from omnigraph.operations.context import Context
from omnigraph.operations.requests import ApplySchema, CreateBranch, Merge, PreviewMerge
from omnigraph.operations.verbs import run

SCHEMA = """
node Person {
  name: String @key
  age: I32?
  weight: F32?
%s}
"""
WIDER = {"wide age": ("age: I32?", "age: I64?"), "wide weight": ("weight: F32?", "weight: F64?")}
BEGIN = ("age", "weight")
KNOWN = {
    "left": ("left: I64?", None),
    "hue": ('hue: String @default("red")', "red"),
    "right": ("right: I64?", None),
    "size": ("size: I64 @default(7)", 7),
    "scan": ("scan: Blob?", None),
}
OURS, THEIRS = ("left", "hue", "wide weight"), ("right", "size", "scan", "wide age")
VALUES: dict[str, Any] = {
    "age": st.none() | st.integers(0, 2),
    "weight": st.sampled_from([0.5, 1.5]),
    "wide age": st.just(2**40),
    "wide weight": st.just(1e300),
    "left": st.none() | st.integers(0, 2),
    "hue": st.sampled_from(["red", "blue"]),
    "right": st.none() | st.integers(0, 2),
    "size": st.sampled_from([7, 8]),
    "scan": st.none() | st.sampled_from([b"", b"x"]),
}
Rows = dict[str, dict[str, Any]]
_names = count()


def sides(own: tuple[str, ...], newcomer: str) -> st.SearchStrategy[Any]:
    """Which properties a side adds, and what it then does to its people."""
    chosen = st.lists(st.sampled_from(own), min_size=1, unique=True)
    return chosen.flatmap(lambda added: st.tuples(st.just(added), steps(added, newcomer)))


def steps(added: list[str], newcomer: str) -> st.SearchStrategy[Any]:
    one = st.sampled_from([*BEGIN, *added]).flatmap(
        lambda name: st.tuples(
            st.sampled_from(["anna", "bob", newcomer]),
            st.just(name.removeprefix("wide ")),
            VALUES[name],
        )
    )
    gone = st.tuples(st.sampled_from(["anna", "bob"]), st.just("gone"), st.none())
    return st.lists(one | gone, max_size=3)


def whole(row: dict[str, Any]) -> dict[str, Any]:
    begun = dict.fromkeys(BEGIN)
    return {**begun, **{name: default for name, (_, default) in KNOWN.items()}, **row}


def start() -> Rows:
    return {name: whole({"name": name, "age": 1}) for name in ("anna", "bob", "cy")}


def play(rows: Rows, history: list[Any]) -> Rows:
    rows = copy.deepcopy(rows)
    for name, what, value in history:
        if what == "gone":
            rows.pop(name, None)
        else:
            rows.setdefault(name, whole({"name": name}))[what] = value
    return rows


def write(context: Context, branch: str, known: list[str], before: Rows, after: Rows) -> None:
    changed = [
        {"id": name, **{key: row[key] for key in ("name", *BEGIN, *known)}}
        for name, row in after.items()
        if before.get(name) != row
    ]
    gone = before.keys() - after.keys()
    if changed or gone:
        put(context, {"Person": changed}, branch, removed={"Person": gone} if gone else None)


def combine(base: Rows, ours: Rows, theirs: Rows) -> Rows | None:
    """The merge by its definition, None when it clashes."""
    merged: Rows = {}
    for name in base.keys() | ours.keys() | theirs.keys():
        was, mine, other = (side.get(name) for side in (base, ours, theirs))
        if mine == other or was == other:
            row = mine
        elif was == mine:
            row = other
        elif was is None or mine is None or other is None:
            return None
        else:
            row = {}
            for key, old in was.items():
                if len({repr(v) for v in (old, mine[key], other[key])}) == 3:
                    return None
                row[key] = other[key] if mine[key] == old else mine[key]
        if row is not None:
            merged[name] = row
    return merged


def seen(context: Context, branch: str, known: list[str]) -> Rows:
    found = content(context, branch).get("Person", {})
    keys = ("name", *BEGIN, *known)
    return {name: {key: row.get(key) for key in keys} for name, row in found.items()}


def shown(rows: Rows, known: list[str]) -> Rows:
    return {n: {key: row[key] for key in ("name", *BEGIN, *known)} for n, row in rows.items()}


def schema(added: list[str]) -> str:
    text = SCHEMA % "".join(f"  {KNOWN[name][0]}\n" for name in added if name in KNOWN)
    for name in added:
        old, new = WIDER.get(name, ("", ""))
        text = text.replace(old, new) if old else text
    return text


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Context:
    made = new_graph(str(tmp_path_factory.mktemp("schemas") / "graph"), SCHEMA % "")
    people = [{"id": name, "name": name, "age": 1} for name in start()]
    put(made, {"Person": people})
    return made


@settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],  # a failure is small already; shrinking takes minutes
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(left=sides(OURS, "by ours"), right=sides(THEIRS, "by theirs"))
def test_properties_and_rows_from_both_sides(context: Context, left: Any, right: Any) -> None:
    stem, base = f"b{next(_names)}", start()
    ours, theirs = f"{stem}-ours", f"{stem}-theirs"
    states = []
    fresh = [[name for name in added if name in KNOWN] for added, _ in (left, right)]
    for branch, (chosen, history), added in ((ours, left, fresh[0]), (theirs, right, fresh[1])):
        run(context, CreateBranch(branch, Target("main")))
        run(context, ApplySchema(schema(chosen), branch))
        after = play(base, history)
        write(context, branch, added, base, after)
        assert seen(context, branch, added) == shown(after, added)
        states.append(after)
    want, known = combine(base, *states), [*fresh[0], *fresh[1]]
    preview = run(context, PreviewMerge(theirs, ours))
    assert bool(preview.conflicts) == (want is None), preview.conflicts
    if want is None:
        with pytest.raises(MergeConflictError):
            run(context, Merge(theirs, ours))
        assert seen(context, ours, fresh[0]) == shown(states[0], fresh[0])
        return
    run(context, Merge(theirs, ours))
    assert seen(context, ours, known) == shown(want, known)
    run(context, Merge(ours, theirs))
    assert seen(context, theirs, known) == shown(want, known)
    assert Graph(context, ours).verify(quick=True).is_clean
