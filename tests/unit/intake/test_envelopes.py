"""Envelopes: strict, exact about places, and the same rows whichever way they are read."""

from __future__ import annotations

import json
import random
from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import Violation
from omnigraph.intake import envelopes
from omnigraph.intake.envelopes import read_blocks, split_lines
from omnigraph.intake.records import Record, read_line
from omnigraph.lang import pg
from omnigraph.rows.checks import check_rows
from omnigraph.rows.findings import Findings, Origin

CATALOG = pg.compile_schema("""
node Person {
    name: String @key
    age: I32?
    big: I64?
    huge: U64?
    ratio: F64?
    narrow: F32?
    ok: Bool?
    born: Date?
    seen: DateTime?
    tags: [String]?
    counts: [I32]?
    embedding: Vector(2)?
    photo: Blob?
    mood: enum(glad, sad)?
}
node Note { text: String? }
edge Knows: Person -> Person { since: Date? }
""")


def read(text: str | bytes) -> tuple[list[dict], tuple[Violation, ...]]:
    """All rows (checked by themselves) and all violations of an input."""
    data = text.encode() if isinstance(text, str) else text
    findings = Findings()
    rows: list[dict] = []
    for block in read_blocks(CATALOG, data, "in.jsonl"):
        findings.merge(block.findings)
        for parsed in block.parsed:
            checked = check_rows(parsed.table, parsed.rows, parsed.origin, findings)
            for row, value in enumerate(checked.to_pylist()):
                place = {"record": parsed.origin.record(row), "line": parsed.origin.line(row)}
                rows.append({"type": parsed.table.name, **place, **value})
    return sorted(rows, key=lambda row: row["record"]), findings.violations


def person(**data: object) -> str:
    return json.dumps({"type": "Person", "data": {"name": "a", **data}})


def refusal(line: str | bytes) -> Violation:
    _, violations = read(line)
    assert len(violations) == 1, (line, violations)
    return violations[0]


def test_nodes_and_edges_of_a_mixed_input():
    rows, violations = read(
        '{"edge":"knows","from":"a","to":"b","data":{"since":"2024-01-31"}}\n'
        "\n"
        '{"type":"Person","data":{"name":"a","age":3}}\r\n'
        '  {"data":{"name":"b"},"type":"Person"}  \n'
        '{"type":"Note"}\n'
        '{"edge":"Knows","to":"a","from":"b"}'
    )
    assert violations == ()
    assert [(r["type"], r["record"], r["line"]) for r in rows] == [
        ("Knows", 0, 1),
        ("Person", 1, 3),
        ("Person", 2, 4),
        ("Note", 3, 5),
        ("Knows", 4, 6),
    ]
    assert rows[0]["src"] == "a"
    assert rows[0]["since"] == date(2024, 1, 31)
    assert rows[4]["src"] == "b"
    assert rows[4]["since"] is None


def test_values_are_exact():
    rows, violations = read(
        person(
            big=-(2**63),
            huge=2**64 - 1,
            ratio=0.1,
            narrow=0.5,
            born="1900-02-28",
            seen="2024-01-31T10:20:30.1239+01:30",
            tags=["x", ""],
            counts=[],
            embedding=[1, 2.5],
            photo="base64:AP8=",
            mood="sad",
        )
    )
    assert violations == ()
    (row,) = rows
    assert row["big"] == -(2**63)
    assert row["huge"] == 2**64 - 1
    assert row["born"] == date(1900, 2, 28)
    assert row["seen"] == datetime(2024, 1, 31, 8, 50, 30, 123000, tzinfo=UTC)
    assert row["tags"] == ["x", ""]
    assert row["counts"] == []
    assert row["embedding"] == [1.0, 2.5]
    assert row["photo"] == b"\x00\xff"


@pytest.mark.parametrize(
    ("line", "rule", "where", "said"),
    [
        ("not json", "json", None, "column 1"),
        ('{"type":"Person","data":{"name":"a"}', "json", None, "expecting"),
        ('{"type":"Person","data":{"name":"a"}}}', "json", None, "more than one value"),
        ('{"type":"Person","data":{"name":"a"}} {"type":"Note"}', "json", None, "more than one"),
        ('{"type":"Note"}{"type":"Note"}', "json", None, "more than one value"),
        ('{"type":"Person","data":{"name":"a","name":"b"}}', "json", None, "'name' occurs twice"),
        ('{"type":"Note","type":"Note"}', "json", None, "'type' occurs twice"),
        ('{"type":"Person","data":{"name":"a","ratio":NaN}}', "type", "ratio", "finite"),
        ('{"type":"Person","data":{"name":"a","age":NaN}}', "json", None, "NaN"),
        ('{"type":"Person","data":{"name":"\\ud800"}}', "type", "name", "surrogate"),
        (b'{"type":"Person","data":{"name":"\xff"}}', "json", None, "UTF-8"),
        (b'{"type":"\xff","data":{"name":"a"}}', "json", None, "UTF-8"),
        ("[1]", "envelope", None, "one JSON object"),
        ("3", "envelope", None, "one JSON object"),
        ("{}", "envelope", None, "either"),
        ('{"type":"Person","edge":"Knows"}', "envelope", None, "either"),
        ('{"type":"Persn","data":{}}', "envelope", "type", "did you mean Person"),
        ('{"type":"knows","data":{}}', "envelope", "type", "no node type"),
        ('{"edge":"Person","from":"a","to":"b"}', "envelope", "edge", "no edge type"),
        ('{"type":3,"data":{}}', "envelope", "type", "text"),
        ('{"type":"Note","data":[]}', "envelope", "data", "object"),
        ('{"type":"Note","data":null}', "envelope", "data", "object"),
        ('{"type":"Note","dat":{}}', "envelope", "dat", "unknown field"),
        ('{"type":"Note","from":"a"}', "envelope", "from", "unknown field"),
        ('{"type":"Person","data":{"name":"a","nick":1}}', "unknown", "nick", "no property"),
        ('{"edge":"Knows","from":"a","to":"b","data":{"src":"a"}}', "unknown", "src", "no prop"),
        ('{"type":"Person","data":{"name":7}}', "type", "name", "expected String"),
        (person(age="3"), "type", "age", "a text"),
        (person(age=3.0), "type", "age", "3.0"),
        (person(age=True), "type", "age", "boolean"),
        (person(age=2**31), "type", "age", "does not fit I32"),
        (person(huge=-1), "type", "huge", "does not fit U64"),
        (person(big=2**63), "type", "big", "does not fit I64"),
        ('{"type":"Person","data":{"name":"a","ratio":1e999}}', "type", "ratio", "finite"),
        (person(narrow=1e39), "type", "narrow", "finite F32"),
        (person(ok=1), "type", "ok", "Bool"),
        (person(born="2024-02-30"), "type", "born", "no such date"),
        (person(born="20240131"), "type", "born", "2024-01-31"),
        (person(born=True), "type", "born", "Date"),
        (person(seen="2024-01-31T25:00"), "type", "seen", "no such time"),
        (person(seen="yesterday"), "type", "seen", "2024-01-31T12:00:00Z"),
        (person(tags="x"), "type", "tags", "[String]"),
        (person(tags=["x", None]), "type", "tags", "null"),
        (person(counts=[1, "2"]), "type", "counts", "I32"),
        (person(embedding=[1]), "type", "embedding", "2 numbers, found 1"),
        (person(embedding=[1, None]), "type", "embedding", "null"),
        (person(photo="base64:?"), "type", "photo", "base 64"),
        (person(photo="https://example.org/x"), "type", "photo", "s3://"),
        (person(mood="so-so"), "enum", "mood", "glad, sad"),
        ('{"type":"Person","data":{"age":3}}', "required", "name", "is required"),
        ('{"edge":"Knows","from":{},"to":"b"}', "type", "from", "an object"),
    ],
)
def test_what_is_refused_says_where_and_why(line, rule, where, said):
    """ledger: T01"""
    data = line if isinstance(line, bytes) else line.encode()
    prefix = b'{"type":"Note","data":{"text":"before"}}\n\n'
    found = refusal(prefix + data + b"\n" + prefix)
    assert (found.rule, found.property) == (rule, where)
    assert said in found.message
    assert (found.record, found.line, found.file) == (1, 3, "in.jsonl")


def test_line_numbers_hold_across_blocks():
    lines = [person(age=i) for i in range(50)] + ["", person(age="x")]
    rows, violations = read_small("\n".join(lines), 200)
    assert [r["record"] for r in rows] == list(range(50))
    assert [r["line"] for r in rows] == list(range(1, 51))
    assert (violations[0].record, violations[0].line) == (50, 52)


def read_small(text: str, size: int) -> tuple[list[dict], tuple[Violation, ...]]:
    parts = list(split_lines(text.encode(), size))
    assert len(parts) > 3
    assert b"".join(parts) == text.encode()
    findings, rows, line, record = Findings(), [], 1, 0
    for part in parts:
        block = envelopes.read_block(CATALOG, part, line=line, record=record)
        findings.merge(block.findings)
        for parsed in block.parsed:
            for row in range(parsed.rows.num_rows):
                rows.append({"record": parsed.origin.record(row), "line": parsed.origin.line(row)})
        line, record = line + block.lines, record + block.records
    return rows, findings.violations


def test_a_value_longer_than_a_block_is_read_whole():
    text = "x" * (3 << 20)
    rows, violations = read(person(tags=[text]) + "\n" + person(age=1))
    assert violations == ()
    assert rows[0]["tags"] == [text]


def test_a_byte_order_mark_is_skipped():
    rows, violations = read(b"\xef\xbb\xbf" + person().encode())
    assert (len(rows), violations) == (1, ())


def test_violations_are_counted_beyond_those_that_are_kept():
    findings = Findings()
    text = "\n".join(person(age="x") for _ in range(250))
    for block in read_blocks(CATALOG, text.encode()):
        findings.merge(block.findings)
    assert findings.total == 250
    assert [v.record for v in findings.violations] == list(range(100))


# Both ways of reading agree. The slow one is the reference.

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**65), 2**65),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=6),
    st.sampled_from(
        [
            "2024-01-31",
            "2024-13-01",
            "2024-01-31T10:00:00Z",
            "2024-01-31 10:00",
            "2024-01-31T10:00:60Z",
            "0001-01-01T00:00:00+01:00",
            "9999-12-31T23:59:59.999999999Z",
            "2024-01-31T10:00:00.1234567",
            "2024-01-31T10Z",
            "2024-01-31Z",
            "base64:",
            "base64:AA==",
            "base64:AA",
            "glad",
        ]
    ),
)
VALUES = st.one_of(SCALARS, st.lists(SCALARS, max_size=3), st.just({}))
NAMES = st.sampled_from([p.name for p in CATALOG.nodes[0].properties if p.name != "name"])


@given(st.dictionaries(NAMES, VALUES, max_size=4), st.sampled_from(["", " ", "\t"]))
def test_fast_and_slow_reading_agree(data, blank):
    line = json.dumps({"type": "Person", "data": {"name": "a", **data}}) + blank
    assert_both_ways_agree(line.encode())


def test_broken_lines_are_broken_both_ways():
    seed = random.Random(7)
    good = person(age=3, born="2024-01-31", tags=["x"], embedding=[1, 2]).encode()
    for _ in range(600):
        line = bytearray(good)
        for _ in range(seed.randrange(1, 3)):
            at = seed.randrange(len(line))
            action = seed.randrange(3)
            if action == 0:
                line[at] = seed.randrange(32, 256)
            elif action == 1:
                del line[at]
            else:
                line.insert(at, seed.choice(b'{}[]",:0-.eE\\ '))
        assert_both_ways_agree(bytes(line))


def assert_both_ways_agree(line: bytes) -> None:
    slow = read_line(CATALOG, line)
    rows, violations = read(line)
    if isinstance(slow, Record):
        findings = Findings()
        parsed = envelopes._tabulated([slow], Origin())
        expected = check_rows(parsed.table, parsed.rows, parsed.origin, findings).to_pylist()
        found = [
            {name: value for name, value in row.items() if name not in ("type", "record", "line")}
            for row in rows
        ]
        assert found == expected, line
        assert [(v.rule, v.property) for v in violations] == [
            (v.rule, v.property) for v in findings.violations
        ], line
    else:
        assert violations, line
        # NaN and Infinity are told by their column, and an unknown type before anything else.
        if not {b"N"[0], b"I"[0]} & set(line) and "no node type" not in violations[0].message:
            assert {v.message for v in violations} == {v.message for v in slow}, line
