"""Compiling single schemas: what the golden files do not make obvious."""

from __future__ import annotations

import pytest

from omnigraph.errors import FormatError, SchemaError
from omnigraph.lang import pg
from omnigraph.lang.pg import ast
from omnigraph.model.catalog import Cardinality, Check, Embed, Range
from omnigraph.model.types import Kind, enum_of


def codes(text: str) -> list[str]:
    return [d.code for d in pg.diagnose(text)]


def test_parse_gives_a_tree_with_places() -> None:
    schema = pg.parse("node Person {\n    name: String? @key2(a, b=1)\n}", "x.pg")
    (node,) = schema.nodes
    (prop,) = node.properties
    assert node.name == ast.Name("Person")
    assert prop.type == ast.TypeRef("String", nullable=True)
    assert prop.annotations[0].arguments == (
        ast.Argument(ast.Word("a")),
        ast.Argument(1, "b"),
    )
    assert (prop.span, prop.name.span) == ((18, 45), (18, 22))
    assert pg.parse_schema is pg.parse


def test_all_findings_come_at_once_with_file_and_place() -> None:
    with pytest.raises(SchemaError) as caught:
        pg.parse("node a { x: Foo }\nedge E: B -> C\nnode D { y: I32 @check(5) z }", "f.pg")
    found = caught.value.diagnostics
    assert [d.code for d in found] == ["S101", "S201", "S108", "S108", "S306", "S001"]
    assert all(d.file == "f.pg" and d.line and d.column and d.excerpt for d in found)


def test_unreadable_parts_do_not_make_others_look_wrong() -> None:
    # `Person` may be what could not be read, and so may the property that the key names.
    assert codes("noe Person {} edge E: Person -> Person") == ["S001"]
    assert codes("node A { slug String @key(slug) }") == ["S001"]
    assert codes("node A { slug: Strin @key(slug) }") == ["S201"]


def test_interface_properties_have_ids_of_their_own() -> None:
    catalog = pg.compile_schema("interface N { a: String @key } node A implements N {}")
    interface, node = catalog.interfaces[0], catalog.nodes[0]
    ids = [interface.id, node.id, interface.properties[0].id, node.properties[0].id]
    assert ids == [1, 2, 3, 4]
    assert catalog.next_id == 5
    assert node.key == ("a",)
    assert node.implements == ("N",)


def test_a_property_of_the_node_itself_does_not_inherit_constraints() -> None:
    catalog = pg.compile_schema("interface N { a: String @key } node A implements N { a: String }")
    assert catalog.nodes[0].key == ()


def test_catalog_values() -> None:
    catalog = pg.compile_schema(
        """
        node A {
            s: enum(b, a)
            i: I32 @range(..5) @default(3)
            f: F64 @range(1..)
            c: String @check("x")
            v: Vector(2) @embed(c, model="m")
            @unique(f, s)
        }
        edge E: A -> A @card(0..1) { @unique(dst, src) }
        """
    )
    node, edge = catalog.nodes[0], catalog.edges[0]
    assert node.by_name["s"].type == enum_of(("a", "b"))
    assert node.ranges == (Range("f", 1.0, None), Range("i", None, 5))
    assert isinstance(node.ranges[0].minimum, float)
    assert node.checks == (Check("c", "x"),)
    assert node.by_name["v"].embed == Embed("c", "m")
    assert node.by_name["i"].default == 3
    assert node.uniques == (("f", "s"),)
    assert edge.uniques == (("src", "dst"),)
    assert edge.cardinality == Cardinality(0, 1)


def test_vector_and_list_types() -> None:
    catalog = pg.compile_schema("node A { v: Vector(2147483647) l: [Date]? }")
    vector, listed = catalog.nodes[0].properties
    assert (vector.type.kind, vector.type.dim) == (Kind.VECTOR, 2**31 - 1)
    assert (listed.type.kind, listed.type.item, listed.type.nullable) == (
        Kind.LIST,
        Kind.DATE,
        True,
    )


def test_the_hash_depends_on_meaning_alone() -> None:
    first = pg.compile_schema("node A { x: String @index y: I32 } // note")
    second = pg.compile_schema("node A{x:String y:I32 @index(x)}")
    other = pg.compile_schema("node A { x: String y: I32 }")
    assert first.hash == second.hash != other.hash
    assert len(first.hash) == 64


def test_byte_order_mark_and_line_ends_of_elsewhere() -> None:
    assert pg.compile_schema("\ufeffnode A {\r\n x: String // c\r\n}\r\n").nodes[0].get("x")


def test_an_empty_text_is_a_schema() -> None:
    catalog = pg.compile_schema("")
    assert catalog.nodes == ()
    assert pg.catalog_to_source(catalog) == ""
    assert pg.format_schema("") == ""


def test_damaged_json_is_refused() -> None:
    good = pg.to_json(pg.compile_schema("node A { x: String }"))
    for bad in ("", "[]", "{}", '{"format":99}', good.replace('"String"', '"Strung"')):
        with pytest.raises(FormatError):
            pg.from_json(bad)


def test_names_that_do_not_exist() -> None:
    with pytest.raises(AttributeError):
        _ = pg.no_such_name
