"""Plans: order, tiers, checks, and what must not be planned at all."""

from __future__ import annotations

import json

import pytest

from omnigraph.errors import InvalidArgumentError, InvariantViolationError, SchemaError
from omnigraph.lang import pg
from omnigraph.lang.pg.steps import (
    KeyMatchesIds,
    NoNulls,
    NoRows,
    Unique,
)


def plan(before: str, after: str, allow_data_loss: bool = False) -> pg.MigrationPlan:
    accepted = pg.compile_schema(before)
    return pg.plan_migration(accepted, pg.compile_schema(after, accepted=accepted), allow_data_loss)


def test_edges_go_before_the_nodes_they_touch() -> None:  # ledger: T02
    found = plan("node A {} node B {} edge E: A -> B", "node A {}")
    assert [s.entity for s in found.steps] == ["edge:E", "node:B"]
    assert {s.mode for s in found.steps} == {pg.DropMode.SOFT}
    assert found.tier is pg.Tier.SAFE


def test_hard_drops_are_destructive() -> None:  # ledger: T02
    found = plan("node A { x: I32 v: Vector(2) }", "node A {}", allow_data_loss=True)
    assert [(s.code, s.mode, s.tier) for s in found.steps] == [
        ("OG-DS-104", pg.DropMode.HARD, pg.Tier.DESTRUCTIVE),
        ("OG-DS-105", pg.DropMode.HARD, pg.Tier.DESTRUCTIVE),
    ]
    assert found.tier is pg.Tier.DESTRUCTIVE


def test_validated_steps_say_which_check_they_need() -> None:  # ledger: T02
    found = plan(
        "node A { x: String? y: String }",
        "node A { x: String y: String @unique z: I32 w: I32 @default(7) @key(y) }",
    )
    table = 1
    assert found.checks == (
        NoRows(table, "A"),
        NoNulls(table, "A", "x", "x"),
        Unique(table, "A", ("y",), ("y",)),
        KeyMatchesIds(table, "A", ("y",), ("y",)),
    )
    filled = next(s for s in found.steps if s.backfill is not None)
    assert (filled.code, filled.tier, filled.backfill) == ("OG-MF-108", pg.Tier.VALIDATED, 7)


def test_checks_name_physical_columns() -> None:
    found = plan("node A { x: I32? }", 'node B @rename_from("A") { y: I32 @rename_from("x") }')
    (check,) = found.checks
    assert check == NoNulls(1, "B", "y", "x")


def test_a_rename_comes_before_the_widening_of_the_same_property() -> None:
    found = plan(
        "node T { status: enum(a, b) }",
        'node T { state: enum(a, b, c)? @rename_from("status") }',
    )
    assert [s.kind for s in found.steps] == [
        pg.StepKind.RENAME_PROPERTY,
        pg.StepKind.EXTEND_ENUM,
        pg.StepKind.SET_OPTIONAL,
    ]
    assert found.supported


def test_one_unsupported_step_refuses_the_plan() -> None:
    found = plan("node A { x: I64 y: I32 }", "node A { x: I32 y: I64 }")
    assert not found.supported
    assert found.tier is pg.Tier.UNSUPPORTED
    accepted = pg.compile_schema("node A { x: I64 }")
    with pytest.raises(SchemaError) as caught:
        pg.apply_steps(accepted, found.steps)
    assert [d.code for d in caught.value.diagnostics] == ["OG-MF-106"]


def test_a_key_may_widen_only_while_its_spelling_stays() -> None:
    assert plan("node A { x: I32 @key }", "node A { x: I64 @key }").supported
    assert not plan("node A { x: F32 @key }", "node A { x: F64 @key }").supported


def test_adding_an_interface_that_the_node_already_satisfies_changes_no_data() -> None:
    found = plan("node A { x: I32 }", "interface I { x: I32 } node A implements I { x: I32 }")
    assert [s.kind for s in found.steps] == [pg.StepKind.ADD_TYPE, pg.StepKind.SET_INTERFACES]
    assert found.tier is pg.Tier.SAFE


def test_catalogs_that_are_not_related_are_refused() -> None:
    first = pg.compile_schema("node A { x: I32 }")
    stranger = pg.compile_schema("edge E: B -> B node B {} node A {}")
    with pytest.raises(InvalidArgumentError):
        pg.plan_migration(first, stranger)


def test_steps_that_lead_elsewhere_are_noticed() -> None:
    accepted = pg.compile_schema("node A { x: I32 }")
    desired = pg.compile_schema("node A { x: I32 y: I32? }", accepted=accepted)
    with pytest.raises(InvariantViolationError):
        pg.apply_steps(accepted, (), desired)


def test_plans_are_plain_json() -> None:
    found = plan("node A { x: I32? }", "node A { x: I32 @range(0..5) }")
    again = json.loads(json.dumps(found.to_dict()))
    assert again["supported"] is True
    assert again["steps"][0]["check"]["kind"] == "NoNulls"
    assert {"kind", "tier", "code", "entity", "message"} <= set(again["steps"][0])


def test_codes_are_well_formed() -> None:
    families = {code.split("-")[1] for code in pg.CHANGES}
    assert families == {"AD", "BC", "CD", "DS", "ED", "MF", "VE"}
    assert all(len(code) == 9 and code[-3:].isdigit() for code in pg.CHANGES)
    assert all(len(code) == 4 and code[1:].isdigit() for code in pg.FINDINGS)
