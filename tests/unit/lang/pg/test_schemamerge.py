"""Merging schemas: what combines, what clashes, and that the result compiles."""

from __future__ import annotations

from dataclasses import replace

import pytest

from omnigraph.lang.pg import compile_schema
from omnigraph.lang.pg.schemamerge import MergedSchema, merge_schemas
from omnigraph.model.catalog import Catalog

BASE = """
node Person {
  name: String @key
  age: I32?
  city: String?
}

edge Knows: Person -> Person {
  since: I32?
}
"""


def merged(ours: str, theirs: str) -> MergedSchema:
    """Both sides compiled against the base, with ids of their own for what they add."""
    base = compile_schema(BASE)
    left = compile_schema(ours, accepted=base)
    apart = replace(base, next_id=left.next_id + 10) if ours != theirs else base
    return merge_schemas(base, left, compile_schema(theirs, accepted=apart))


def edit(old: str, new: str) -> str:
    assert old in BASE
    return BASE.replace(old, new)


PET = "\nnode Pet {\n  name: String @key\n}\n"
TOY = "\nnode Toy {\n  name: String @key\n}\n"


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (BASE, BASE),
        (BASE + PET, BASE),
        (BASE + PET, BASE + TOY),
        (BASE + PET, BASE + PET),
        (edit("age: I32?", "age: I32?\n  size: I64?"), edit("  city: String?\n", "")),
        (edit("  age: I32?\n", ""), edit("  age: I32?\n", "")),
        (
            edit("age: I32?", 'years: I32? @rename_from("age")'),
            edit("age: I32?", "age: I32? @range(0..9)"),
        ),
        (
            edit("node Person", 'node Human @rename_from("Person")').replace(
                "Person -> Person", "Human -> Human"
            ),
            edit("since: I32?", "since: I64?"),
        ),
        (edit("city: String?", "city: String? @unique"), edit("age: I32?", "age: I64?")),
        (edit("age: I32?", "age: I32"), edit("age: I32?", "age: I64?")),
        (edit("city: String?", "city: String? @index"), BASE[: BASE.index("edge")]),
    ],
)
def test_changes_that_combine(ours: str, theirs: str) -> None:
    one, two = merged(ours, theirs), merged(theirs, ours)
    assert one.clashes == two.clashes == ()
    assert shape(one.catalog) == shape(two.catalog)


@pytest.mark.parametrize(
    ("ours", "theirs", "why"),
    [
        (edit("age: I32?", "age: I64?"), edit("  age: I32?\n", ""), "dropped the property"),
        (edit("since: I32?", "since: I64?"), BASE[: BASE.index("edge")], "dropped the type"),
        (
            edit("age: I32?", 'years: I32? @rename_from("age")'),
            edit("age: I32?", 'old: I32? @rename_from("age")'),
            "rename",
        ),
        (
            edit("age: I32?", "age: I32? @range(0..9)"),
            edit("age: I32?", "age: I32? @range(0..5)"),
            "age",
        ),
        (BASE + PET, BASE + PET.replace("String", "I64"), "do not compile"),
        (
            edit("age: I32?", "age: I32?\n  size: I64?"),
            edit("age: I32?", "age: I32?\n  size: F64?"),
            "do not compile",
        ),
        (
            edit("city: String?", "city: String? @unique"),
            edit("  city: String?\n", ""),
            "dropped the property",
        ),
    ],
)
def test_changes_that_clash(ours: str, theirs: str, why: str) -> None:
    for found in (merged(ours, theirs), merged(theirs, ours)):
        assert found.clashes
        assert why in " ".join(f"{clash.entity} {clash.message}" for clash in found.clashes)


def test_required_on_one_side_and_wider_on_the_other() -> None:
    for one, two in (("age: I32", "age: I64?"), ("age: I64?", "age: I32")):
        found = merged(edit("age: I32?", one), edit("age: I32?", two)).catalog.node("Person")
        assert found is not None
        assert str(found.by_name["age"].type) == "I64"


def test_one_id_for_two_things() -> None:
    base = compile_schema(BASE)
    ours, theirs = (compile_schema(BASE + more, accepted=base) for more in (PET, TOY))
    found = merge_schemas(base, ours, theirs)
    assert "same identity" in found.clashes[0].message


def shape(catalog: Catalog) -> object:
    """Types and properties by name, without ids and order."""
    return sorted(
        (
            table.name,
            sorted((p.name, str(p.type), p.column) for p in table.properties),
            sorted(map(sorted, table.uniques)),
        )
        for table in catalog.tables()
    )
