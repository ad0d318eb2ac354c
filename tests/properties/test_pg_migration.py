"""Migrations: plans lead where they say, and identity survives."""

from __future__ import annotations

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from tests.crash.sizes import FULL
from tests.support.randomschemas import evolutions, schemas, spelled

from omnigraph.errors import SchemaError
from omnigraph.lang import pg
from omnigraph.lang.pg import ast
from omnigraph.model.catalog import Catalog


def compiled(pair: tuple[ast.Schema, ast.Schema]) -> tuple[Catalog, Catalog]:
    before = pg.compile_schema(spelled(pair[0]))
    return before, pg.compile_schema(spelled(pair[1]), accepted=before)


# Making a pair costs more than all that is asked of it, so one pair is asked everything.
@given(evolutions(), st.booleans())
@settings(max_examples=1000 if FULL else 100)
def test_what_holds_for_every_migration(
    pair: tuple[ast.Schema, ast.Schema], allow_data_loss: bool
) -> None:  # ledger: T02 T03
    before, after = compiled(pair)
    check_steps(before, after, allow_data_loss)
    check_emptiness(before, after)
    check_drops(before, after)
    check_renames(before, after)
    # The rename hints are still in the text, and idle now.
    assert pg.compile_schema(spelled(pair[1]), accepted=after) == after


def check_steps(before: Catalog, after: Catalog, allow_data_loss: bool) -> None:
    """Steps applied to the old IR give the new one."""
    plan = pg.plan_migration(before, after, allow_data_loss)
    event("supported" if plan.supported else "unsupported")
    assert all(step.code in pg.CHANGES for step in plan.steps)
    if plan.supported:
        assert pg.apply_steps(before, plan.steps, after) == after
        assert pg.to_json(pg.apply_steps(before, plan.steps)) == pg.to_json(after)
    else:
        with pytest.raises(SchemaError):
            pg.apply_steps(before, plan.steps)


def check_emptiness(before: Catalog, after: Catalog) -> None:
    """A plan is empty exactly when nothing changes."""
    assert pg.plan_migration(before, after).is_empty == (before.hash == after.hash)
    assert pg.plan_migration(after, after).is_empty


def check_drops(before: Catalog, after: Catalog) -> None:
    """Drops are soft unless data loss is allowed."""
    for allowed, mode in ((False, pg.DropMode.SOFT), (True, pg.DropMode.HARD)):
        plan = pg.plan_migration(before, after, allowed)
        assert {s.mode for s in plan.steps} <= {None, mode}
        destructive = [s for s in plan.steps if s.tier is pg.Tier.DESTRUCTIVE]
        assert bool(destructive) == (allowed and any(s.mode for s in plan.steps))


def check_renames(before: Catalog, after: Catalog) -> None:
    """Renames keep ids and columns."""
    known = {p.id: p.column for t in before.tables() for p in t.properties}
    for step in pg.plan_migration(before, after).steps:
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
