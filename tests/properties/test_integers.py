"""Integers of every type at the bounds of every type: operators, functions, comparisons, lists,
aggregates, order, filters, parameters, constants, keys and writes, against Python's integers.

The rules are those of the reference: `+`, `-`, `*` give U64 where an operand is U64, else I64; `%`
has the type of its left side in the same way; `/` is F64. A result outside its type is null when it
is read and an error when it is to be written.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from tests.support.querygraphs import SHAPES, Shape, write_graph

import omnigraph as og
from omnigraph.engines.embedded import EmbeddedEngine
from omnigraph.errors import InvalidArgumentError, InvalidDataError, QueryError
from omnigraph.ir.query import ReadQuery
from omnigraph.lang import gq
from omnigraph.lang.pg import compile_schema
from omnigraph.plan.planner import plan_query

RANGES = {
    "I32": (-(2**31), 2**31 - 1),
    "I64": (-(2**63), 2**63 - 1),
    "U32": (0, 2**32 - 1),
    "U64": (0, 2**64 - 1),
}
KINDS = tuple(RANGES)
EDGES = (0, 1, -1, 2, 3, -2, 10, 2**31, 2**32, 2**53, 2**63, 2**64)
SCHEMA = (
    "node Pair {\n    name: String @key\n"
    + "".join(f"    {side}{kind.lower()}: {kind}?\n" for side in "ab" for kind in KINDS)
    + "}"
)
CATALOG = compile_schema(SCHEMA)


def bounds(kind: str) -> list[int | None]:
    """Values at and near every bound that the type can hold, and null."""
    low, high = RANGES[kind]
    near = {edge + step for edge in EDGES for step in (-1, 0, 1)}
    near |= {-value for value in near} | {low, high, low + 1, high - 1}
    return [*sorted(value for value in near if low <= value <= high), None]


def remainder(a: int, b: int) -> int | None:
    return None if b == 0 else abs(a) % abs(b) * (-1 if a < 0 else 1)


OPERATORS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "%": remainder,
}
COMPARISONS = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def result_kind(op: str, left: str, right: str) -> str:
    if op == "%":
        return "U64" if left == "U64" else "I64"
    return "U64" if "U64" in (left, right) else "I64"


def expected(op: str, left: str, a: int | None, right: str, b: int | None) -> int | None:
    if a is None or b is None:
        return None
    low, high = RANGES[result_kind(op, left, right)]
    value = OPERATORS[op](a, b)
    return value if value is not None and low <= value <= high else None


def pairs(left: str, right: str) -> list[dict[str, Any]]:
    values = itertools.product(bounds(left), bounds(right))
    names = (f"a{left.lower()}", f"b{right.lower()}")
    return [{"name": f"p{n:05d}", names[0]: a, names[1]: b} for n, (a, b) in enumerate(values)]


class Asked:
    """A graph of pairs, and an engine over it."""

    def __init__(self, root: Path, rows: list[dict[str, Any]], shape: Shape = SHAPES[0]) -> None:
        self.rows = rows
        self.snapshot = write_graph(root, CATALOG, {"Pair": rows}, shape)
        self.engine = EmbeddedEngine()

    def __call__(self, clauses: str, values: str, params: str = "", **given: Any) -> list[Any]:
        text = f"query q({params}) {{ match {{ $p: Pair {clauses} }} return {{ {values} }} }}"
        query = gq.compile_query(text, CATALOG).query
        assert isinstance(query, ReadQuery)
        plan = plan_query(query, CATALOG, self.engine.statistics(self.snapshot))
        return self.engine.run(plan, self.snapshot, gq.bind_params(query, given)).rows()


@pytest.mark.parametrize("right", KINDS)
@pytest.mark.parametrize("left", KINDS)
def test_18_08_arithmetic_of_columns(tmp_path: Path, left: str, right: str) -> None:
    ask = Asked(tmp_path / "g", pairs(left, right))
    a, b = f"$p.a{left.lower()}", f"$p.b{right.lower()}"
    columns = [f"{a} {op} {b} as c{n}" for n, op in enumerate(OPERATORS)]
    found = ask("", ", ".join([f"{a} as a", f"{b} as b", *columns]))
    assert len(found) == len(ask.rows)
    for row in found:
        for n, op in enumerate(OPERATORS):
            wanted = expected(op, left, row["a"], right, row["b"])
            assert row[f"c{n}"] == wanted, (row["a"], op, row["b"])


@pytest.mark.parametrize("right", KINDS)
@pytest.mark.parametrize("left", KINDS)
def test_18_08_comparison_of_columns(tmp_path: Path, left: str, right: str) -> None:
    ask = Asked(tmp_path / "g", pairs(left, right))
    a, b = f"$p.a{left.lower()}", f"$p.b{right.lower()}"
    columns = [f"{a} {op} {b} as c{n}" for n, op in enumerate(COMPARISONS)]
    found = ask("", ", ".join([f"{a} as a", f"{b} as b", *columns]))
    for row in found:
        for n, test in enumerate(COMPARISONS.values()):
            known = row["a"] is not None and row["b"] is not None
            assert row[f"c{n}"] == (test(row["a"], row["b"]) if known else None)
    for op, test in COMPARISONS.items():
        kept = ask(f"{a} {op} {b}", f"{a} as a, {b} as b")
        assert len(kept) == sum(row[f"c{list(COMPARISONS).index(op)}"] is True for row in found)
        assert all(test(row["a"], row["b"]) for row in kept)


@pytest.mark.parametrize("shape", [SHAPES[0], SHAPES[2]], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_18_08_constants_parameters_and_lists(tmp_path: Path, kind: str, shape: Shape) -> None:
    values = bounds(kind)
    rows = [{"name": f"p{n:03d}", f"a{kind.lower()}": v} for n, v in enumerate(values)]
    ask = Asked(tmp_path / "g", rows, shape)
    prop = f"$p.a{kind.lower()}"
    constants = sorted({v for each in KINDS for v in bounds(each) if v is not None})
    held = [v for v in values if v is not None]
    for constant in constants:
        fitting = [k for k, (low, high) in RANGES.items() if low <= constant <= high]
        for op, test in COMPARISONS.items():
            wanted = sorted(v for v in held if test(v, constant))
            found = ask(f"{prop} {op} {constant}", f"{prop} as v")
            assert sorted(row["v"] for row in found) == wanted, (op, constant)
            mirrored = ask(f"{constant} {op} {prop}", f"{prop} as v")
            assert sorted(r["v"] for r in mirrored) == sorted(v for v in held if test(constant, v))
        found = ask(f"{prop} = $c", f"{prop} as v", f"$c: {fitting[-1]}", c=constant)
        assert [row["v"] for row in found] == [v for v in held if v == constant]
    listed = ", ".join(str(each) for each in constants)
    found = ask(f"{prop} in [{listed}]", f"{prop} as v")
    assert sorted(row["v"] for row in found) == sorted(held)
    assert ask(f"{prop} not in [{listed}]", f"{prop} as v") == []
    for each in KINDS:
        given = [v for v in bounds(each) if v is not None]
        found = ask(f"{prop} in $c", f"{prop} as v", f"$c: [{each}]", c=given)
        assert sorted(row["v"] for row in found) == sorted(set(held) & set(given))


@pytest.mark.parametrize("kind", KINDS)
def test_18_08_arithmetic_with_constants_and_parameters(tmp_path: Path, kind: str) -> None:
    rows = [{"name": f"p{n:03d}", f"a{kind.lower()}": v} for n, v in enumerate(bounds(kind))]
    ask = Asked(tmp_path / "g", rows)
    prop = f"$p.a{kind.lower()}"
    for constant in (0, 1, -1, 2, 2**63 - 1, -(2**63), 2**63, 2**64 - 1):
        other = "U64" if constant >= 2**63 else "I64"
        for op in OPERATORS:
            row: dict[str, Any]
            for row in ask(
                "", f"{prop} as v, {prop} {op} {constant} as r, {constant} {op} {prop} as m"
            ):
                assert row["r"] == expected(op, kind, row["v"], other, constant)
                assert row["m"] == expected(op, other, constant, kind, row["v"])
            for row in ask("", f"{prop} as v, {prop} {op} $c as r", f"$c: {other}", c=constant):
                assert row["r"] == expected(op, kind, row["v"], other, constant)


@pytest.mark.parametrize("kind", KINDS)
def test_18_08_functions_order_and_aggregates(tmp_path: Path, kind: str) -> None:
    values = bounds(kind)
    rows = [{"name": f"p{n:03d}", f"a{kind.lower()}": v} for n, v in enumerate(values)]
    ask = Asked(tmp_path / "g", rows)
    prop = f"$p.a{kind.lower()}"
    held = [v for v in values if v is not None]
    shown = f"{prop} as v, abs({prop}) as a, -{prop} as m, round({prop}) as r, floor({prop}) as f"
    for row in ask(
        "", f"{shown}, ceil({prop}) as c, to_string({prop}) as t, coalesce({prop}, 7) as z"
    ):
        value = row["v"]
        if value is None:
            assert row == {
                "v": None,
                "a": None,
                "m": None,
                "r": None,
                "f": None,
                "c": None,
                "t": None,
                "z": 7,
            }
            continue
        assert row["a"] == (None if abs(value) > 2**63 - 1 and kind != "U64" else abs(value))
        assert row["m"] == (-value if -(2**63) <= -value < 2**63 else None)
        assert (row["r"], row["f"], row["c"], row["z"]) == (value,) * 4
        assert row["t"] == str(value)
    (found,) = ask(
        "",
        f"sum({prop}) as s, avg({prop}) as a, min({prop}) as l, max({prop}) as h, "
        f"count(distinct {prop}) as n",
    )
    total = float(sum(held))
    assert found == {
        "s": total,
        "a": total / len(held),
        "l": min(held),
        "h": max(held),
        "n": len(held),
    }
    text = f"query q() {{ match {{ $p: Pair }} return {{ {prop} as v }} order {{ {prop} desc }} }}"
    query = gq.compile_query(text, CATALOG).query
    assert isinstance(query, ReadQuery)
    plan = plan_query(query, CATALOG, ask.engine.statistics(ask.snapshot))
    found = ask.engine.run(plan, ask.snapshot, {}).rows()
    assert [row["v"] for row in found] == [*sorted(held, reverse=True), None]
    grouped = ask("", f"{prop} % 2 as g, sum({prop}) as s, count(*) as n")
    for row in grouped:
        members = [v for v in held if row["g"] is not None and remainder(v, 2) == row["g"]]
        assert row["s"] == (float(sum(members)) if members else None)


def test_18_08_sums_do_not_lose_small_numbers(tmp_path: Path) -> None:
    values = [2**63 - 1, -(2**63 - 1), 3, 2**53 + 1, -(2**53)]
    rows = [{"name": f"p{n}", "ai64": v, "bi64": 1} for n, v in enumerate(values)]
    ask = Asked(tmp_path / "g", rows)
    assert ask("", "sum($p.ai64) as s, avg($p.ai64) as a") == [{"s": 4.0, "a": 0.8}]
    assert ask("", "$p.bi64 as k, sum(distinct $p.ai64) as s") == [{"k": 1, "s": 4.0}]
    assert ask("$q: Pair", "sum($p.ai64) as s") == [{"s": 20.0}]


@pytest.mark.parametrize(
    "expr",
    ["-9223372036854775809", "-18446744073709551615", "-(18446744073709551615)"],
)
def test_18_08_a_constant_that_no_type_holds_is_an_error(expr: str) -> None:
    with pytest.raises(QueryError, match="Q004"):
        gq.compile_query(
            f"query q() {{ match {{ $p: Pair $p.ai64 = {expr} }} return {{ $p.name }} }}", CATALOG
        )


@pytest.mark.parametrize(
    "expr", ["- -9223372036854775808", "-(-9223372036854775808)", "9223372036854775808"]
)
def test_18_08_a_constant_beyond_i64_is_u64(tmp_path: Path, expr: str) -> None:
    ask = Asked(tmp_path / "g", [{"name": "p", "au64": 2**63}])
    assert ask("", f"$p.au64 = {expr} as e, {expr} as v") == [{"e": True, "v": 2**63}]


@pytest.mark.parametrize("other", ["$p.bi64", "$p.bi32", "-1", "$n"])
def test_18_08_coalesce_refuses_what_no_type_holds(other: str) -> None:
    text = (
        f"query q($n: I64) {{ match {{ $p: Pair }} return {{ coalesce($p.au64, {other}) as v }} }}"
    )
    with pytest.raises(QueryError, match="no integer type holds"):
        gq.compile_query(text, CATALOG)


# Writes


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return og.init(str(tmp_path / "g"), SCHEMA)


def updated(graph: og.Graph, kind: str, start: int | None, expr: str) -> int | None:
    """What an update writes over a value."""
    name = f"a{kind.lower()}"
    graph.mutate(
        f'query q($v: {kind}?) {{ insert Pair {{ name: "p", {name}: $v }} }}', params={"v": start}
    )
    text = f'query q() {{ update Pair set {{ {name}: {expr} }} where name = "p" }}'
    graph.mutate(text)
    (row,) = graph.query(f"query q() {{ match {{ $p: Pair }} return {{ $p.{name} as v }} }}").rows()
    found: int | None = row["v"]
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_18_08_updates_write_the_exact_value_or_nothing(graph: og.Graph, kind: str) -> None:
    low, high = RANGES[kind]
    name = f"a{kind.lower()}"
    for start in (low, low + 1, 0, 1, high - 1, high):
        assert updated(graph, kind, start, f"coalesce({name}, 0)") == start
        for expr, value in (
            (f"{name} + 1", start + 1),
            (f"{name} - 1", start - 1),
            (f"{name} * 2", start * 2),
            (f"{name} % 7", remainder(start, 7)),
            (f"abs({name})", abs(start)),
        ):
            if value is not None and low <= value <= high:
                assert updated(graph, kind, start, expr) == value
            else:
                with pytest.raises((InvalidArgumentError, InvalidDataError)):
                    updated(graph, kind, start, expr)
    assert updated(graph, kind, None, f"{name} + 1") is None
    assert updated(graph, kind, None, f"coalesce({name}, 5)") == 5


def test_18_08_a_write_that_overflows_changes_nothing(graph: og.Graph) -> None:
    rows = [{"name": "a", "au64": 1}, {"name": "b", "au64": 2**64 - 1}]
    graph.ingest([{"type": "Pair", "data": row} for row in rows])
    with pytest.raises(InvalidArgumentError, match="which U64 cannot hold") as raised:
        graph.mutate('query q() { update Pair set { au64: au64 + 1 } where name != "" }')
    assert raised.value.hint
    with pytest.raises(InvalidArgumentError, match="which I64 cannot hold"):
        graph.mutate(
            'query q($n: I64) { insert Pair { name: "c", ai64: $n + 1 } }', params={"n": 2**63 - 1}
        )
    found = graph.query(
        "query q() { match { $p: Pair } return { $p.name as name, $p.au64 as au64 } }"
    )
    assert found.rows() == rows
    # In a condition what has no value is null, as in a read.
    assert graph.mutate("query q() { delete Pair where au64 + 1 > 5 }").affected == {}


@pytest.mark.parametrize("kind", KINDS)
def test_18_08_keys_hold_every_value(tmp_path: Path, kind: str) -> None:
    graph = og.init(
        str(tmp_path / "k"),
        f"node Item {{\n    n: {kind} @key\n    note: String?\n}}\nedge Next: Item -> Item\n",
    )
    values = [v for v in bounds(kind) if v is not None]
    graph.ingest([{"type": "Item", "data": {"n": v}} for v in values])
    graph.ingest([{"edge": "Next", "from": str(values[0]), "to": str(v)} for v in values])
    for value in values:
        graph.mutate(
            f'query q($n: {kind}) {{ upsert Item {{ n: $n, note: "seen" }} on conflict update }}',
            params={"n": value},
        )
        found = graph.query(
            f"query q($n: {kind}) {{ match {{ $i: Item {{ n: $n }} $a next $i }} "
            "return { $i.n as n, $i.note as note } }",
            params={"n": value},
        )
        assert found.rows() == [{"n": value, "note": "seen"}]
    assert graph.query("query q() { match { $i: Item } return { count(*) as n } }").rows() == [
        {"n": len(values)}
    ]
    assert graph.verify().findings == []
