"""Migrations: plans lead where they say, and identity survives."""

from __future__ import annotations

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from tests.schemas import evolutions, schemas, spelled

from omnigraph.errors import SchemaError
from omnigraph.lang import pg
from omnigraph.lang.pg import ast
from omnigraph.model.catalog import Catalog


def compiled(pair: tuple[ast.Schema, ast.Schema]) -> tuple[Catalog, Catalog]:
    before = pg.compile_schema(spelled(pair[0]))
    return before, pg.compile_schema(spelled(pair[1]), accepted=before)


def check_plan(pair: tuple[ast.Schema, ast.Schema], allow_data_loss: bool) -> None:
    before, after = compiled(pair)
    plan = pg.plan_migration(before, after, allow_data_loss)
    event("supported" if plan.supported else "unsupported")
    assert all(step.code in pg.CHANGES for step in plan.steps)
    if plan.supported:
        assert pg.apply_steps(before, plan.steps, after) == after
        assert pg.to_json(pg.apply_steps(before, plan.steps)) == pg.to_json(after)
    else:
        with pytest.raises(SchemaError):
            pg.apply_steps(before, plan.steps)


@given(evolutions(), st.booleans())
def test_steps_applied_to_the_old_ir_give_the_new_one(
    pair: tuple[ast.Schema, ast.Schema], allow_data_loss: bool
) -> None:  # ledger: T02
    check_plan(pair, allow_data_loss)


@pytest.mark.slow
@given(evolutions(), st.booleans())
@settings(max_examples=1000)
def test_steps_applied_to_the_old_ir_give_the_new_one_at_length(
    pair: tuple[ast.Schema, ast.Schema], allow_data_loss: bool
) -> None:  # ledger: T02
    check_plan(pair, allow_data_loss)


@given(evolutions())
@settings(max_examples=50)
def test_a_plan_is_empty_exactly_when_nothing_changes(
    pair: tuple[ast.Schema, ast.Schema],
) -> None:  # ledger: T02
    before, after = compiled(pair)
    assert pg.plan_migration(before, after).is_empty == (before.hash == after.hash)
    assert pg.plan_migration(after, after).is_empty


@given(evolutions())
@settings(max_examples=50)
def test_drops_are_soft_unless_data_loss_is_allowed(
    pair: tuple[ast.Schema, ast.Schema],
) -> None:  # ledger: T02
    before, after = compiled(pair)
    for allowed, mode in ((False, pg.DropMode.SOFT), (True, pg.DropMode.HARD)):
        plan = pg.plan_migration(before, after, allowed)
        assert {s.mode for s in plan.steps} <= {None, mode}
        destructive = [s for s in plan.steps if s.tier is pg.Tier.DESTRUCTIVE]
        assert bool(destructive) == (allowed and any(s.mode for s in plan.steps))


@given(evolutions())
@settings(max_examples=50)
def test_compiling_the_desired_text_again_changes_nothing(
    pair: tuple[ast.Schema, ast.Schema],
) -> None:  # ledger: T02
    _, after = compiled(pair)
    # The rename hints are still in the text, and idle now.
    assert pg.compile_schema(spelled(pair[1]), accepted=after) == after


@given(evolutions())
@settings(max_examples=50)
def test_renames_keep_ids_and_columns(pair: tuple[ast.Schema, ast.Schema]) -> None:
    before, after = compiled(pair)  # ledger: T03
    plan = pg.plan_migration(before, after)
    known = {p.id: p.column for t in before.tables() for p in t.properties}
    for step in plan.steps:
        if step.kind is pg.StepKind.RENAME_PROPERTY:
            table = after.table(step.type_id)
            assert table is not None
            renamed = next(p for p in table.properties if p.id == step.property_id)
            assert renamed.name == step.value
            assert renamed.column == known[renamed.id]
            event("renamed")


@given(st.lists(schemas(), min_size=2, max_size=4))
@settings(max_examples=50)
def test_no_id_and_no_column_is_ever_given_out_twice(chain: list[ast.Schema]) -> None:
    accepted: Catalog | None = None  # ledger: T03
    lifetimes: dict[int, str] = {}
    columns: dict[tuple[int, str], int] = {}
    for schema in chain:
        previous = accepted
        accepted = pg.compile_schema(spelled(schema), accepted=accepted)
        alive = (
            set() if previous is None else {p.id for t in previous.tables() for p in t.properties}
        )
        for table in accepted.tables():
            for prop in table.properties:
                label = f"{table.id}.{prop.name}"
                assert lifetimes.setdefault(prop.id, label) == label
                assert prop.id in alive or previous is None or prop.id >= previous.next_id
                assert columns.setdefault((table.id, prop.column), prop.id) == prop.id
