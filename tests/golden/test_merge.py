"""The full truth table of merging: every pair of operations, executed. # ledger: B02"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.support.branchgraphs import content, edge, new_graph, person, put

from omnigraph.errors import MergeConflictError
from omnigraph.history.resolve import Target
from omnigraph.lang import pg
from omnigraph.operations.context import Context
from omnigraph.operations.inspection import schema_source
from omnigraph.operations.requests import ApplySchema, CreateBranch, Merge, PreviewMerge
from omnigraph.operations.verbs import run

TABLE = Path(__file__).parent / "merge" / "truth_table.txt"
SCHEMA = """
node Person {
  name: String @key
  age: I32?
  city: String?
}

edge Knows: Person -> Person {
  since: I32?
}
"""
CODES = {
    "DI": "DivergentInsert",
    "DU": "DivergentUpdate",
    "DV": "DeleteVsUpdate",
    "OE": "OrphanEdge",
    "SC": "SchemaConflict",
}
OUTCOMES = {"same": "already_up_to_date", "ff": "fast_forward", "ok": "merged"}

State = dict[str, dict[str, dict[str, Any]]]


def base() -> State:
    return {
        "Person": {
            "anna": {"name": "anna", "age": 30, "city": "Rome"},
            "bob": {"name": "bob", "age": 40},
        },
        "Knows": {"k1": {"src": "anna", "dst": "bob"}},
    }


@dataclass(frozen=True)
class Operation:
    """What to do to a branch, and the same on plain values. `side` is 1 for ours, 2 for theirs."""

    do: Callable[[Context, str, int], object]
    model: Callable[[State, int], object]


def _change_schema(old: str, new: str) -> Callable[[Context, str, int], object]:
    def change(context: Context, branch: str, side: int) -> object:
        return run(context, ApplySchema(SCHEMA.replace(old, new), branch))

    return change


def _zero(context: Context, branch: str, side: int) -> None:
    put(context, {"Knows": [edge(f"k9{side}", "bob", "anna")]}, branch)
    put(context, {}, branch, removed={"Knows": [f"k9{side}"]})


def _remove_node(state: State, side: int) -> None:
    state["Person"].pop("anna", None)
    state["Knows"].pop("k1", None)


def _drop(state: State, side: int) -> None:
    for row in state["Person"].values():
        row.pop("age", None)


def _rename(state: State, side: int) -> None:
    for row in state["Person"].values():
        if "age" in row:
            row["years"] = row.pop("age")


OPERATIONS: dict[str, Operation] = {
    "none": Operation(lambda c, b, s: None, lambda m, s: None),
    "+node": Operation(
        lambda c, b, s: put(c, {"Person": [person("cy", age=s)]}, b),
        lambda m, s: m["Person"].update(cy={"name": "cy", "age": s}),
    ),
    "-node": Operation(
        lambda c, b, s: put(c, {}, b, removed={"Person": ["anna"], "Knows": ["k1"]}),
        _remove_node,
    ),
    "+edge": Operation(
        lambda c, b, s: put(c, {"Knows": [edge("k2", "bob", "anna", since=s)]}, b),
        lambda m, s: m["Knows"].update(k2={"src": "bob", "dst": "anna", "since": s}),
    ),
    "-edge": Operation(
        lambda c, b, s: put(c, {}, b, removed={"Knows": ["k1"]}),
        lambda m, s: m["Knows"].pop("k1", None),
    ),
    "set": Operation(
        lambda c, b, s: put(c, {"Person": [person("anna", age=30 + s, city="Rome")]}, b),
        lambda m, s: m["Person"]["anna"].update(age=30 + s),
    ),
    "other": Operation(
        lambda c, b, s: put(c, {"Person": [person("anna", age=30, city=f"City {s}")]}, b),
        lambda m, s: m["Person"]["anna"].update(city=f"City {s}"),
    ),
    "zero": Operation(_zero, lambda m, s: None),
    "drop": Operation(_change_schema("  age: I32?\n", ""), _drop),
    "type": Operation(
        _change_schema("edge", "node Pet {\n  name: String @key\n}\n\nedge"), lambda m, s: None
    ),
    "rename": Operation(
        _change_schema("  age: I32?", '  years: I32? @rename_from("age")'), _rename
    ),
}


def cells() -> Iterator[tuple[str, str, str]]:
    lines = [line.split() for line in TABLE.read_text().splitlines() if line[:1] not in ("#", "")]
    columns = lines[0]
    for name, *entries in lines[1:]:
        yield from ((name, theirs, code) for theirs, code in zip(columns, entries, strict=True))


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Context:
    made = new_graph(str(tmp_path_factory.mktemp("truth") / "graph"), SCHEMA)
    rows = base()
    people = [{"id": key, **row} for key, row in rows["Person"].items()]
    put(made, {"Person": people, "Knows": [edge("k1", "anna", "bob")]})
    return made


def expected(ours: str, theirs: str) -> State:
    """Both operations on plain values; changes of rows before changes of the schema."""
    state = base()
    steps = [(ours, 1), (theirs, 2)]
    for name, side in sorted(steps, key=lambda step: step[0] in ("drop", "rename")):
        OPERATIONS[name].model(state, side)
    return {name: rows for name, rows in state.items() if rows}


def test_the_table_is_complete() -> None:
    assert [(a, b) for a, b, _ in cells()] == [(a, b) for a in OPERATIONS for b in OPERATIONS]


@pytest.mark.parametrize(("ours", "theirs", "code"), list(cells()))
def test_cell(context: Context, ours: str, theirs: str, code: str) -> None:
    left, right = f"ours {ours} {theirs}", f"theirs {ours} {theirs}"
    for branch, name, side in ((left, ours, 1), (right, theirs, 2)):
        run(context, CreateBranch(branch))
        OPERATIONS[name].do(context, branch, side)
    before = content(context, left)
    preview = run(context, PreviewMerge(right, left))
    assert content(context, left) == before
    if code in CODES:
        assert [str(conflict.kind) for conflict in preview.conflicts] == [CODES[code]]
        with pytest.raises(MergeConflictError) as caught:
            run(context, Merge(right, left))
        assert [found["kind"] for found in caught.value.conflicts] == [CODES[code]]
        assert content(context, left) == before
        return
    assert preview.conflicts == ()
    result = run(context, Merge(right, left))
    assert (result.outcome, preview.outcome) == (OUTCOMES[code], OUTCOMES[code])
    assert content(context, left) == expected(ours, theirs)
    assert run(context, Merge(right, left)).outcome == "already_up_to_date"
    schema = pg.compile_schema(schema_source(context, Target(left)))
    assert (schema.node("Pet") is not None) == ("type" in (ours, theirs))
