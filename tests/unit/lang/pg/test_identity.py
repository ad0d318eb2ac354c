"""Identity across schemas: renames keep it, drops end it."""

from __future__ import annotations

import pytest

from omnigraph.errors import SchemaError
from omnigraph.lang import pg
from omnigraph.model.catalog import Catalog, NodeType, Property


def evolve(*texts: str) -> list[Catalog]:
    chain: list[Catalog] = []
    for text in texts:
        chain.append(pg.compile_schema(text, accepted=chain[-1] if chain else None))
    return chain


def node(catalog: Catalog, name: str) -> NodeType:
    found = catalog.node(name)
    assert found is not None
    return found


def prop(catalog: Catalog, name: str, property_name: str) -> Property:
    return node(catalog, name).by_name[property_name]


def test_renames_keep_ids_columns_and_paths() -> None:  # ledger: T03
    old, new = evolve(
        "node User { name: String @key age: I32? }",
        'node Account @rename_from("User") { full: String @key @rename_from("name") age: I32? }',
    )
    assert node(old, "User").id == node(new, "Account").id
    assert node(old, "User").directory == node(new, "Account").directory
    before, after = prop(old, "User", "name"), prop(new, "Account", "full")
    assert (before.id, before.column) == (after.id, after.column) == (after.id, "name")
    assert node(new, "Account").key == ("full",)
    assert new.next_id == old.next_id


def test_dropping_and_adding_again_is_a_new_lifetime() -> None:  # ledger: T03
    first, second, third = evolve(
        "node A { x: String y: I32? } node B {}",
        "node A { x: String }",
        "node A { x: String y: I32? } node B {}",
    )
    assert prop(third, "A", "y").id >= second.next_id > prop(first, "A", "y").id
    assert node(third, "B").id > node(first, "B").id
    # The old values are still in old versions, so the name of their column stays theirs.
    assert prop(third, "A", "y").column == f"y__{prop(third, 'A', 'y').id}"
    assert node(third, "A").retired_columns == ("y",)
    assert pg.from_json(pg.to_json(third)) == third


def test_the_column_of_a_renamed_property_stays_taken() -> None:  # ledger: T03
    _, second, third = evolve(
        "node A { a: String }",
        'node A { b: String @rename_from("a") }',
        "node A { b: String a: String? }",
    )
    assert prop(second, "A", "b").column == "a"
    assert prop(third, "A", "b").column == "a"
    assert prop(third, "A", "a").column == f"a__{prop(third, 'A', 'a').id}"


def test_composite_key_order_survives_renames_that_cross() -> None:  # ledger: T03
    old, new = evolve(
        "node P { alpha: String zeta: I64 @key(zeta, alpha) }",
        'node P { zzz: String @rename_from("alpha") aaa: I64 @rename_from("zeta") @key(aaa, zzz) }',
    )
    assert node(old, "P").key == ("alpha", "zeta")
    assert node(new, "P").key == ("zzz", "aaa")


def test_new_ids_are_dealt_by_kind_and_name() -> None:
    catalog = pg.compile_schema("edge E: B -> A node B { z: I32 a: I32 } node A {} interface I {}")
    assert [catalog.interfaces[0].id, node(catalog, "A").id, node(catalog, "B").id] == [1, 2, 3]
    assert catalog.edges[0].id == 4
    assert (prop(catalog, "B", "a").id, prop(catalog, "B", "z").id) == (5, 6)


def test_rename_hints_are_idle_at_first_and_once_applied() -> None:
    text = 'node New @rename_from("Old") { x: String @rename_from("y") }'
    first, second = evolve(text, text)
    assert first == second
    assert {d.code for d in pg.diagnose(text, accepted=second)} == {"S902"}


def test_an_edge_that_changes_case_alone_stays_itself() -> None:  # ledger: T03
    old, new = evolve("node A {} edge Knows: A -> A", "node A {} edge KNOWS: A -> A")
    assert old.edges[0].id == new.edges[0].id
    plan = pg.plan_migration(old, new)
    assert [s.code for s in plan.steps] == ["OG-BC-101"]


def test_an_interface_can_rename_a_property_in_its_nodes() -> None:  # ledger: T03
    old, new = evolve(
        "interface N { name: String } node A implements N {}",
        'interface N { title: String @rename_from("name") } '
        "node A implements N {} node B implements N {}",
    )
    assert prop(old, "A", "name").id == prop(new, "A", "title").id
    assert prop(new, "B", "title").id >= old.next_id


def test_references_follow_a_rename() -> None:
    old, new = evolve(
        'node D { body: String v: Vector(2) @embed("body") @check(body, "x") } edge E: D -> D',
        'node T @rename_from("D") { text: String @rename_from("body") @check("x") '
        'v: Vector(2) @embed("text") } edge E: T -> T',
    )
    plan = pg.plan_migration(old, new)
    assert [s.kind for s in plan.steps] == [
        pg.StepKind.RENAME_TYPE,
        pg.StepKind.RENAME_PROPERTY,
    ]
    assert pg.apply_steps(old, plan.steps, new) == new


def test_reserved_ids_are_not_reused_after_all_is_dropped() -> None:  # ledger: T03
    first, empty, again = evolve("node A { x: I32 }", "", "node A { x: I32 }")
    assert empty.next_id == first.next_id
    assert node(again, "A").id >= first.next_id


def test_renaming_from_a_name_that_is_gone_is_refused() -> None:
    _, empty = evolve("node A {}", "")
    with pytest.raises(SchemaError) as caught:
        pg.compile_schema('node B @rename_from("A") {}', accepted=empty)
    assert [d.code for d in caught.value.diagnostics] == ["S501"]
