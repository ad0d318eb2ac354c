"""Three-way merge of schemas: what two branches made of the schema that they began with.

Each side's changes are the steps of a migration from the base. Steps refer to types and properties
by id, so the other side's steps can be applied on top of ours, whatever was renamed.

Guarantees: a merged schema compiles; every clash is named with the type or property it is about;
merging is symmetric but for the order of declarations.
Deliberately absent: data. Whether rows fit the merged schema is for others to check.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from omnigraph.errors import SchemaError
from omnigraph.lang.pg.apply import apply_steps
from omnigraph.lang.pg.compiler import compile_schema
from omnigraph.lang.pg.migrationplan import plan_migration
from omnigraph.lang.pg.render import catalog_to_source
from omnigraph.lang.pg.steps import Constraint, MigrationPlan, Replacement, Step, StepKind
from omnigraph.model.catalog import Catalog, Interface
from omnigraph.model.schema_ir import with_hash

_NOTHING = MigrationPlan((), True)
_DROPS = (StepKind.DROP_TYPE, StepKind.DROP_PROPERTY)


@dataclass(frozen=True, slots=True)
class Clash:
    """Why two schemas do not combine. `entity` reads `node:Person.age`, or is empty."""

    entity: str
    message: str


@dataclass(frozen=True)
class MergedSchema:
    """The schema with both sides' changes, and each side's steps from the base. With clashes,
    the catalog is ours."""

    catalog: Catalog
    ours: MigrationPlan
    theirs: MigrationPlan
    clashes: tuple[Clash, ...] = ()


def merge_schemas(base: Catalog, ours: Catalog, theirs: Catalog) -> MergedSchema:
    mine = _steps(base, ours)
    others = _steps(base, theirs)
    if theirs.hash in (base.hash, ours.hash):
        return MergedSchema(ours, mine, others)
    if ours.hash == base.hash:
        return MergedSchema(theirs, mine, others)
    clashes = (*_identity_clashes(base, ours, theirs), *_step_clashes(mine, others))
    if clashes:
        return MergedSchema(ours, mine, others, clashes)
    catalog, clash = _combined(ours, theirs, mine, others)
    return MergedSchema(catalog, mine, others, (clash,) if clash else ())


def _steps(base: Catalog, side: Catalog) -> MigrationPlan:
    if base.hash == side.hash:
        return _NOTHING
    # All branches of a graph draw ids from one counter, and the base of a pick need not be where
    # the side came from: what the base does not have is new to it, whatever its number.
    return plan_migration(replace(base, next_id=0), side)


def _combined(
    ours: Catalog, theirs: Catalog, mine: MigrationPlan, others: MigrationPlan
) -> tuple[Catalog, Clash | None]:
    """Ours after the steps that only they took, or why that is no schema."""
    done = set(map(repr, mine.steps))
    missing = [step for step in others.steps if repr(step) not in done]
    applied = apply_steps(ours, missing)
    catalog = with_hash(replace(applied, next_id=max(ours.next_id, theirs.next_id)))
    try:
        spelled = compile_schema(catalog_to_source(catalog), accepted=catalog)
    except SchemaError as error:
        reasons = "; ".join(finding.message for finding in error.diagnostics)
        return ours, Clash("", f"the two schemas together do not compile: {reasons}")
    if spelled.hash != catalog.hash:
        return ours, Clash("", "the two schemas together do not give one that can be written down")
    return catalog, None


def _identity_clashes(base: Catalog, ours: Catalog, theirs: Catalog) -> Iterator[Clash]:
    """One id that was given out on both sides, for two different things."""
    mine, others = _born(base, ours), _born(base, theirs)
    for number in sorted(mine.keys() & others.keys()):
        if mine[number] != others[number]:
            yield Clash(
                mine[number],
                f"{mine[number]} and {others[number]} were added with the same identity",
            )


def _born(base: Catalog, side: Catalog) -> dict[int, str]:
    """What a side added since the base, by id."""
    found: dict[int, str] = {}
    kinds = (("interface", side.interfaces), ("node", side.nodes), ("edge", side.edges))
    for kind, types in kinds:
        for each in types:
            found[each.id] = f"{kind}:{each.name}"
            for item in each.properties:
                found[item.id] = f"{kind}:{each.name}.{item.name}"
    return {number: name for number, name in found.items() if number >= base.next_id}


def _step_clashes(mine: MigrationPlan, others: MigrationPlan) -> Iterator[Clash]:
    touched = {_aspect(step): step for step in mine.steps}
    for step in others.steps:
        twin = touched.get(_aspect(step))
        if twin is not None and repr(twin.value) != repr(step.value):
            yield Clash(
                step.entity, f"one side wants to {twin.message}, the other to {step.message}"
            )
    yield from _drop_clashes(mine, others)
    yield from _drop_clashes(others, mine)


def _drop_clashes(dropping: MigrationPlan, changing: MigrationPlan) -> Iterator[Clash]:
    """What one side dropped while the other side changed it or leaned on it."""
    types = {s.type_id for s in dropping.steps if s.kind is StepKind.DROP_TYPE}
    properties = {s.property_id for s in dropping.steps if s.kind is StepKind.DROP_PROPERTY}
    for step in changing.steps:
        if step.kind in _DROPS:
            continue
        on_type = step.type_id in types
        if on_type or step.property_id in properties or _members(step) & properties:
            what = "type" if on_type else "property"
            yield Clash(
                step.entity, f"one side dropped the {what}, the other wants to {step.message}"
            )


def _members(step: Step) -> set[int | None]:
    value = step.value.new if isinstance(step.value, Replacement) else step.value
    return set(value.members) if isinstance(value, Constraint) else set()


def _aspect(step: Step) -> tuple[object, ...]:
    """What a step decides: two steps with the same aspect cannot both have their way."""
    value = step.value
    if isinstance(value, Replacement):
        return ("constraint", step.type_id, value.new.kind, value.new.members)
    if isinstance(value, Constraint):
        group = () if value.kind in ("key", "card") else value.members
        # Several patterns may stand on one property, and do not exclude each other.
        return ("constraint", step.type_id, value.kind, group, value.pattern)
    if isinstance(value, Interface):
        return ("interface", step.type_id)
    return (step.kind, step.type_id, step.property_id)
