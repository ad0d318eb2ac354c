"""Whatever comes in, what comes out is an answer or an error of ours, and nothing is half done.

Lines of JSON, parameters, configuration, mappings, resolutions and names, all of them cut, flipped,
mixed up or chosen by somebody hostile. The two languages have fuzzers of their own beside this one.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.config.operator import parse_config
from omnigraph.errors import OmniGraphError
from omnigraph.graph import Graph
from omnigraph.intake.sources import parse_mapping
from omnigraph.merges.resolutions import read_resolutions

SCHEMA = """
node Person {
    name: String @key
    age: I32? @range(0..150)
    score: F64?
    born: Date?
    seen: DateTime?
    glad: Bool?
    tags: [String]?
    face: Vector(2)?
    photo: Blob?
    mood: enum(glad, sad)?
}
edge Knows: Person -> Person { since: Date? }
"""
LINES = [
    {"type": "Person", "data": {"name": "ann", "age": 7, "score": 1.5, "tags": ["a"]}},
    {"type": "Person", "data": {"name": "bob", "face": [0.0, 1.0], "photo": "base64:AAE="}},
    {"type": "Person", "data": {"name": "cy", "born": "2020-02-03", "mood": "sad", "glad": True}},
    {"edge": "Knows", "from": "ann", "to": "bob", "data": {"since": "2020-01-01"}},
]
PIECES = [
    b"null", b"NaN", b"-Infinity", b"1e999", b"9" * 400, b"[" * 3000, b"{" * 3000, b'"', b"\\",
    b"\\ud800", b"\x00", b"\xff\xfe", b"\xed\xa0\x80", b"\n", b"\r\n", b'"type"', b'"edge"', b"{}",
    b'"data": 7', b'"data": null', b'"id": ""', b'"name": null', b'"age": "x"', b"true", b"-0",
    b'"born": 19753', b'"born": -719163', b'"seen": 99999999999999999', b'"born": "0000-01-01"',
    b'"seen": "9999-12-31T23:59:59-14:00"', b'"name": "' + b"x" * 70_000 + b'"',
    "\u202e\u0000".encode(), b",", b"base64:!!",
]  # fmt: skip
HOSTILE = [
    "", " ", ".", "..", "../x", "/etc/passwd", "a/../b", "a//b", "a\\b", "a\x00b", "a\nb", "\ud800",
    "x" * 5_000, "ü" * 200, "👩‍👩‍👧", "__refs",
    "~x", "main", "MAIN", "con", "nul", "aux.json", "a:b",
    "a?b", "a#b", "a%2e%2e", "a b", " a", "a ", "-rf", "$(x)", "';--", "{}", "[]", "*", "\u202egnp",
    "é", "é", "tree/x", "x.lock", ".json", "a.", "a" * 255, "\ufeffa", "a\u2028b",
]  # fmt: skip


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    made = omnigraph.init(str(tmp_path_factory.mktemp("inputs") / "g"), SCHEMA, actor="act-anna")
    made.ingest([{"type": "Person", "data": {"name": "zoe", "age": 1}}])
    return made


def tame(act: Callable[..., Any], *arguments: Any, **named: Any) -> bool:
    """Whether it worked. Anything but an error of ours is passed on."""
    try:
        act(*arguments, **named)
    except OmniGraphError as error:
        json.dumps(error.to_dict())
        return False
    return True


def garbled(chance: random.Random, lines: bytes) -> bytes:
    data = bytearray(lines)
    for _ in range(chance.randrange(1, 5)):
        at = chance.randrange(len(data) + 1)
        until = min(len(data), at + chance.randrange(0, 10))
        kind = chance.randrange(4)
        if kind == 0:
            del data[at:until]
        elif kind == 1:
            data[at:at] = chance.choice(PIECES)
        elif kind == 2 and data:
            data[at % len(data)] ^= 1 << chance.randrange(8)
        else:
            data[at:until] = chance.choice(PIECES)
    return bytes(data)


def feed(graph: Graph, seed: int, count: int) -> None:
    chance = random.Random(seed)
    lines = "\n".join(json.dumps(line) for line in LINES).encode()
    worked = 0
    for _ in range(count):
        data = garbled(chance, lines)
        before = graph.snapshot()
        done = tame(graph.ingest, data, chance.choice(["append", "merge"]))
        worked += done
        if not done:
            assert graph.snapshot() == before, "a refused input left something"
    assert worked < count
    assert graph.verify().findings == []
    assert graph.query("query q() { match { $a: Person } return { $a } }").to_json()


def test_garbled_lines(graph: Graph) -> None:
    feed(graph, 1, 60)


@pytest.mark.slow
def test_many_garbled_lines(graph: Graph) -> None:
    feed(graph, 2, 400)


VALUES: list[Any] = [
    None, True, 0, -1, 2**31, 2**63, 2**64, 10**400, 1.5, math.nan, math.inf, -0.0, "", "x", "ann",
    "\ud800", "\x00", "x" * 70_000, b"", b"\xff", [], [1], [None], ["x", 1], {}, {"a": 1}, (1, 2),
    date(2020, 1, 1), datetime(2020, 1, 1, tzinfo=UTC), Decimal("1.5"), Decimal("NaN"), object(),
    [[[[]]]], {1, 2}, "2020-13-45", "9999-12-31", "0001-01-01T00:00:00+14:00", "0000-01-01",
    "9999-12-31T23:59:59-14:00", -719_163, 2_932_897, 253_402_300_800_000, -(2**63),
    datetime.max.replace(tzinfo=timezone(timedelta(hours=-14))), date.min,
    datetime.min.replace(tzinfo=timezone(timedelta(hours=14))), [0.0, 1.0],
    [math.nan, 1], range(3), lambda: 1,
]  # fmt: skip
QUERIES = [
    "query q($p: String) { match { $a: Person { name: $p } } return { $a.age } }",
    "query q($p: I32) { match { $a: Person  $a.age = $p } return { $a.name } }",
    "query q($p: F64) { match { $a: Person  $a.score < $p } return { $a.name } }",
    "query q($p: Date) { match { $a: Person  $a.born = $p } return { $a.name } }",
    "query q($p: DateTime) { match { $a: Person  $a.seen < $p } return { $a.name } }",
    "query q($p: Bool) { match { $a: Person  $a.glad = $p } return { $a.name } }",
    "query q($p: [String]) { match { $a: Person  $a.name in $p } return { $a.name } }",
]
MUTATIONS = [
    'query q($p: Date?) { update Person set { born: $p } where name = "zoe" }',
    'query q($p: DateTime?) { update Person set { seen: $p } where name = "zoe" }',
    'query q($p: I32?) { update Person set { age: $p } where name = "zoe" }',
    "query q($p: String) { insert Person { name: $p } }",
    'query q($p: [String]?) { update Person set { tags: $p } where name = "zoe" }',
    'query q($p: Vector(2)?) { update Person set { face: $p } where name = "zoe" }',
    'query q($p: Blob?) { update Person set { photo: $p } where name = "zoe" }',
]


GOOD: list[Any] = ["ann", 7, 1.5, "2020-01-01", "2020-01-01T00:00:00Z", True, ["ann"]]


@pytest.mark.parametrize(("text", "value"), list(zip(QUERIES, GOOD, strict=True)))
def test_the_queries_are_sound(graph: Graph, text: str, value: Any) -> None:
    """Else every odd parameter would be refused for a reason of its own."""
    assert ask(graph, text, {"p": value}).num_rows >= 0


def ask(graph: Graph, text: str, params: dict[str, Any]) -> Any:
    return graph.query(text, params=params).to_arrow()


@pytest.mark.parametrize("text", QUERIES)
def test_odd_parameters_of_queries(graph: Graph, text: str) -> None:
    for value in VALUES:
        tame(ask, graph, text, {"p": value})
    others: list[dict[str, Any]] = [{}, {"q": 1}, {"p": "x", "q": 1}, {"": 1}, {"$p": 1}]
    for params in others:
        tame(ask, graph, text, params)


@pytest.mark.parametrize("text", MUTATIONS)
def test_odd_parameters_of_mutations(graph: Graph, text: str) -> None:
    for value in VALUES:
        tame(graph.mutate, text, params={"p": value})
    assert graph.verify(quick=True).findings == []


@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: ascii(name)[:24])
def test_hostile_names(graph: Graph, name: str) -> None:
    """As a branch, a tag, a key, a message, a node: refused, or as good as any other name."""
    made = tame(lambda: graph.create_branch(name))
    assert made == (name in {branch.name for branch in graph.branches()} - {"main"})
    if made:
        on = graph.on(name)
        on.mutate('query q() { update Person set { age: 9 } where name = "zoe" }')
        graph.delete_branch(name)
    if tame(lambda: graph.create_tag(name)):
        assert graph.snapshot(tag=name).commit_id
        graph.delete_tag(name)
    for act in (
        lambda: graph.snapshot(tag=name),
        lambda: graph.snapshot(commit=name),
        lambda: graph.on(name).snapshot(),
        lambda: graph.merge(name),
        lambda: graph.delete_branch(name),
        lambda: graph.rename_branch(name, "other"),
        lambda: graph.revert(name),
        lambda: graph.ingest([{"type": name, "data": {}}]),
        lambda: graph.ingest([{"name": "zoe", name: 1}], "merge", type="Person"),
        lambda: graph.query(name),
        lambda: omnigraph.init(graph.uri + "-x", name),
    ):
        tame(act)
    tokens = f"k{len(name)}"
    if tame(lambda: graph.ingest([{"name": f"n {name}"}], "merge", type="Person", message=name)):
        found = graph.query(QUERIES[0], params={"p": f"n {name}"}).to_arrow()
        assert found.num_rows == 1
    tame(lambda: graph.ingest([{"name": tokens}], "merge", type="Person", idempotency_key=name))
    tame(lambda: graph.acting_as(name).ingest([{"name": tokens}], "merge", type="Person"))
    assert graph.verify(quick=True).findings == []


def test_hostile_places(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for place in (
        "", " ", "\x00", str(tmp_path / "file"), str(tmp_path / "file" / "below"), "s3://",
        "s3:///x", "ftp://x/y", "http://x", "memory:", f"{tmp_path}/{'x' * 300}", "file://",
        "~nobody/x",
        "s3://bad bucket/x", "file:///%00", str(tmp_path / "\ud800"),
    ):  # fmt: skip
        for read_only in (True, False):
            tame(omnigraph.open, place, read_only=read_only)


CONFIGS = [
    "", "null", "[]", "7", "x", "operator: 7", "operator: {actor: [1]}", "stores: []",
    "stores: {a: 7}", "stores: {a: {uri: 7}}", "profiles: {p: {store: [x]}}", "aliases: {a: 7}",
    "aliases: {a: {args: x, params: []}}", "defaults: {output: 7}", "defaults: {output: xml}",
    "a: &a [*a]", "? {x: y}\n: z", "!!python/object:os.system x", "\t", "a: b: c", "{", "\x00",
    "stores: {? [a] : {uri: x}}", "1: 2", "defaults: {table_max_column_width: wide}", "- - - -",
    "a: &a [x,x,x]\nb: &b [*a,*a,*a]\nc: [*b,*b,*b]", "[" * 3000, "2020-01-01: x",
    "operator:\n  - x",
]  # fmt: skip


@pytest.mark.parametrize("text", CONFIGS, ids=lambda text: ascii(text)[:24])
def test_odd_configuration(text: str, tmp_path: Path) -> None:
    tame(lambda: parse_config(text, tmp_path / "config.yaml"))


def test_garbled_configuration(tmp_path: Path) -> None:
    chance = random.Random(3)
    good = b"operator: {actor: anna}\nstores: {shop: {uri: x}}\ndefaults: {store: shop}\n"
    for _ in range(300):
        text = garbled(chance, good).decode("utf-8", "surrogateescape")
        tame(parse_config, text, tmp_path / "config.yaml")


@pytest.mark.parametrize(
    "value", [v for v in VALUES if not callable(v)], ids=lambda v: ascii(v)[:16]
)
def test_odd_mappings_and_resolutions(graph: Graph, value: Any) -> None:
    tame(lambda: parse_mapping(value))
    tame(lambda: parse_mapping([value, {"match": value, "type": value}]))
    catalog = graph.snapshot().catalog
    for text in (str(value), json.dumps({"conflicts": [str(value)]}), "[" * 20_000, "\x00"):
        tame(read_resolutions, text, catalog)
