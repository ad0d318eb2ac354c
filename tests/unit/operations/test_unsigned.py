"""Unsigned properties: every rule can be added to them, and a check of the graph finds nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import InvalidDataError

HIGHEST = {"I32": 2**31 - 1, "I64": 2**63 - 1, "U32": 2**32 - 1, "U64": 2**64 - 1}
KINDS = tuple(HIGHEST)


def schema(kind: str, note: str = "", edge: str = "?", body: str = "", need: str = "?") -> str:
    return (
        f"node Item {{\n    name: String @key\n    v: {kind}{need} {note}\n    {body}\n}}\n"
        f"edge Next: Item -> Item {{\n    w: {kind}{edge}\n}}\n"
    )


def graph_of(path: Path, kind: str, text: str | None = None) -> og.Graph:
    graph = og.init(str(path / "g"), text or schema(kind))
    high = HIGHEST[kind]
    values = {"a": 1, "b": high, "c": high - 1, "d": 0}
    graph.ingest([{"type": "Item", "data": {"name": n, "v": v}} for n, v in values.items()])
    graph.ingest([{"edge": "Next", "from": "a", "to": "b", "data": {"w": high}}])
    return graph


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rule", ["required", "range", "unique", "index", "edge required"])
def test_18_19_a_rule_is_added(tmp_path: Path, kind: str, rule: str) -> None:
    graph = graph_of(tmp_path, kind)
    high = HIGHEST[kind]
    wanted = {
        "required": schema(kind, need=""),
        "range": schema(kind, f"@range(0..{high})"),
        "unique": schema(kind, "@unique"),
        "index": schema(kind, "@index"),
        "edge required": schema(kind, edge=""),
    }[rule]
    graph.apply_schema(wanted)
    assert graph.verify().findings == []
    graph.optimize()
    assert graph.verify().findings == []
    assert graph.query("query q() { match { $i: Item } return { count($i.v) as n } }").rows() == [
        {"n": 4}
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_18_19_rows_that_break_a_new_rule_are_named(tmp_path: Path, kind: str) -> None:
    graph = graph_of(tmp_path, kind)
    for note in (f"@range(0..{HIGHEST[kind] - 2})", "@range(1..)", "@range(..1)"):
        with pytest.raises(InvalidDataError) as raised:
            graph.apply_schema(schema(kind, note))
        assert {each.rule for each in raised.value.violations} == {"range"}
    graph.ingest([{"type": "Item", "data": {"name": "e"}}])
    with pytest.raises(InvalidDataError) as raised:
        graph.apply_schema(schema(kind, need=""))
    assert [(v.rule, v.value) for v in raised.value.violations] == [("required", "e")]


@pytest.mark.parametrize("kind", KINDS)
def test_18_19_keys_and_unique_values_at_the_bounds(tmp_path: Path, kind: str) -> None:
    text = schema(kind, "@unique", need="").replace("name: String @key", "name: String @unique\n")
    text = text.replace(f"v: {kind} @unique", f"v: {kind} @key @index")
    graph = og.init(str(tmp_path / "g"), text)
    high = HIGHEST[kind]
    rows = [{"name": "a", "v": high}, {"name": "b", "v": high - 1}, {"name": "c", "v": 0}]
    graph.ingest([{"type": "Item", "data": row} for row in rows])
    graph.optimize()
    assert graph.verify().findings == []
    with pytest.raises(InvalidDataError):
        graph.ingest([{"type": "Item", "data": {"name": "a", "v": 7}}])
    graph.mutate(
        f'query q($v: {kind}) {{ upsert Item {{ v: $v, name: "z" }} on conflict update }}',
        params={"v": high},
    )
    assert graph.verify().findings == []


@pytest.mark.parametrize("kind", KINDS)
def test_18_19_unique_unsigned_values_are_refused_twice(tmp_path: Path, kind: str) -> None:
    graph = graph_of(tmp_path, kind, schema(kind, "@unique"))
    with pytest.raises(InvalidDataError):
        graph.ingest([{"type": "Item", "data": {"name": "x", "v": HIGHEST[kind]}}])
    graph.optimize()
    with pytest.raises(InvalidDataError):
        graph.mutate(f'query q() {{ insert Item {{ name: "x", v: {HIGHEST[kind]} }} }}')


@pytest.mark.parametrize(
    ("bounds", "good", "bad"),
    [
        ("0..9007199254740993.5", 2**53 + 1, 2**53 + 3),
        ("9007199254740992.0..", 2**53, 2**53 - 1),
        ("..9223372036854775807.0", 2**63 - 1, None),
        ("-1e300..1e300", 2**63 - 1, None),
    ],
)
def test_18_23_ranges_with_decimals_beyond_floats(
    tmp_path: Path, bounds: str, good: int, bad: int | None
) -> None:
    graph = og.init(str(tmp_path / "g"), schema("I64", f"@range({bounds})"))
    graph.ingest([{"type": "Item", "data": {"name": "good", "v": good}}])
    if bad is not None:
        with pytest.raises(InvalidDataError, match="must be at"):
            graph.ingest([{"type": "Item", "data": {"name": "bad", "v": bad}}])
    assert graph.verify().findings == []


LISTS = """
node Note {
    name: String @key
    body: String? @index
    v: [%s]?
    spot: Vector(2)?
}
"""


@pytest.mark.parametrize("kind", KINDS)
def test_a_type_with_a_list_is_changed_and_searched(tmp_path: Path, kind: str) -> None:
    graph = og.init(str(tmp_path / "g"), LISTS % kind)
    high = HIGHEST[kind]
    rows = {"a": [1, high], "b": [], "c": None}
    graph.ingest([{"type": "Note", "data": {"name": n, "v": v}} for n, v in rows.items()])
    graph.mutate('query q() { update Note set { body: "red green" } where v contains 1 }')
    graph.mutate('query q() { update Note set { body: "red" } where v is null }')
    graph.mutate(
        'query q() { upsert Note { name: "b", body: "blue", v: [2] } on conflict replace }'
    )
    for indexed in (False, True):
        if indexed:
            graph.optimize()
        match = '$n: Note\n search($n.body, "red")\n $n.name != "c"'
        found = graph.query(f"query q() {{ match {{ {match} }} return {{ $n.v }} }}")
        assert found.rows() == [{"n.v": [1, high]}]
    graph.mutate("query q() { delete Note where v is not null }")
    left = graph.query("query q() { match { $n: Note } return { $n.name } }")
    assert left.rows() == [{"n.name": "c"}]
    assert graph.verify().findings == []


def test_vectors_are_tested_for_null_in_writes(tmp_path: Path) -> None:
    graph = og.init(str(tmp_path / "g"), LISTS % "U64")
    rows = {"a": [1.0, 2.0], "b": None}
    graph.ingest([{"type": "Note", "data": {"name": n, "spot": v}} for n, v in rows.items()])
    graph.mutate('query q() { update Note set { body: "x" } where spot is not null }')
    graph.mutate("query q() { delete Note where spot is null }")
    left = graph.query("query q() { match { $n: Note } return { $n.name, $n.body } }")
    assert left.rows() == [{"n.name": "a", "n.body": "x"}]
