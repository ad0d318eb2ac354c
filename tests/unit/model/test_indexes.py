"""Which index a property gets."""

from __future__ import annotations

import pytest

from omnigraph.lang import pg
from omnigraph.model.indexes import IndexKind, IndexSpec, index_kind, index_kinds, indexes_of
from omnigraph.model.types import Kind, ValueType, enum_of, list_of, scalar, vector

BTREE, FTS, VECTOR = IndexKind.BTREE, IndexKind.FTS, IndexKind.VECTOR


@pytest.mark.parametrize(
    ("type_", "kinds"),
    [
        (scalar(Kind.STRING), (FTS, BTREE)),
        (enum_of(("a", "b")), (BTREE,)),
        (vector(3), (VECTOR,)),
        (list_of(Kind.STRING), ()),
        (scalar(Kind.BLOB), ()),
        *[
            (scalar(kind, nullable=True), (BTREE,))
            for kind in Kind
            if str(kind) in ["I32", "I64", "U32", "U64", "F32", "F64", "Bool", "Date", "DateTime"]
        ],
    ],
)
def test_the_type_chooses(type_: ValueType, kinds: tuple[IndexKind, ...]) -> None:
    assert index_kinds(type_) == kinds  # ledger: I01


def test_ids_ends_keys_and_unique_values_are_indexed_unasked() -> None:  # ledger: I01
    catalog = pg.compile_schema(
        """
        node A { slug: String @key mail: String @unique state: enum(x) @index t: [I32] @index(t) }
        edge E: A -> A { since: Date @index note: String @unique(src, note) }
        """
    )
    assert indexes_of(catalog.nodes[0]) == (
        IndexSpec("id", BTREE),
        IndexSpec("slug", FTS),
        IndexSpec("slug", BTREE),
        IndexSpec("state", BTREE),
        IndexSpec("mail", BTREE),
    )
    assert indexes_of(catalog.edges[0]) == (
        IndexSpec("id", BTREE),
        IndexSpec("src", BTREE),
        IndexSpec("dst", BTREE),
        IndexSpec("since", BTREE),
        IndexSpec("note", BTREE),
    )


def test_the_main_index_of_a_property() -> None:
    catalog = pg.compile_schema("node A { a: String b: [String] c: Vector(2) }")
    assert [index_kind(p) for p in catalog.nodes[0].properties] == [FTS, None, VECTOR]


def test_indexes_name_columns_not_properties() -> None:
    old = pg.compile_schema("node A { a: I32 @index }")
    new = pg.compile_schema('node A { b: I32 @index @rename_from("a") }', accepted=old)
    assert indexes_of(new.nodes[0])[-1] == IndexSpec("a", BTREE)
