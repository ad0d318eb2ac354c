"""Descriptions: what a query takes, gives, reads and writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.lang import gq
from omnigraph.lang.pg import compile_schema

GOLDEN = Path(__file__).parents[3] / "golden" / "gq"
CATALOG = compile_schema((GOLDEN / "schema.pg").read_text())


def touched(text: str) -> tuple[list[str], list[str]]:
    found = gq.describe(text, CATALOG)
    return [each.type_name for each in found.reads], [each.type_name for each in found.writes]


def test_annotations_and_parameters() -> None:
    text = """
    query q($v: Vector(3)?, $names: [String]) @description("d") @instruction("i") {
        match { $p: Person } return { $p.name }
    }
    """
    found = gq.describe(text, CATALOG)
    assert (found.name, found.description, found.instruction) == ("q", "d", "i")
    assert [param.to_dict() for param in found.params] == [
        {"name": "v", "kind": "vector", "nullable": True, "vector_dim": 3},
        {"name": "names", "kind": "list", "nullable": False, "item_kind": "string"},
    ]


def test_result_fields_keep_their_order_and_types() -> None:
    text = "query q() { match { $p: Person } return { $p.name, $p.tags, $p, $p.seen as at } }"
    found = gq.describe(text, CATALOG)
    assert [(f.name, f.kind, f.nullable) for f in found.result] == [
        ("p.name", "string", False),
        ("p.tags", "list", True),
        ("p", "object", False),
        ("at", "datetime", True),
    ]
    assert [str(field.type) for field in found.result_fields[:2]] == ["String", "[String]?"]


@pytest.mark.parametrize(
    ("body", "reads", "writes"),
    [
        ("match { $p: Person } return { $p.name }", "Person", ""),
        ("match { $a knows $b } return { $a.name }", "Person Knows", ""),
        (
            "match { $p: Person not { $p worksAt $_ } optional { $p wrote $d } } return { $d }",
            "Company Doc Person WorksAt Wrote",
            "",
        ),
        ("match { $x: Named } return { $x.name }", "Company Person", ""),
        ('insert Note { text: "x" }', "Note", "Note"),
        ('insert Wrote { from: "a", to: "b", role: "c" }', "Doc Person Wrote", "Wrote"),
        ('update Person set { age: 1 } where name = "x"', "Person", "Person"),
        ('upsert Person { name: "x" } on conflict nothing', "Person", "Person"),
        ('delete Knows where from = "x"', "Knows", "Knows"),
        ('delete Doc where slug = "x"', "Doc Cites Wrote", "Doc Cites Wrote"),
        ("delete Note where text is null", "Note", "Note"),
    ],
)
def test_types_touched(body: str, reads: str, writes: str) -> None:
    assert touched(f"query q() {{ {body} }}") == (reads.split(), writes.split())
