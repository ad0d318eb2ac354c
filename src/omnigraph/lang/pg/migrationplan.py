"""Plan a migration: the ordered steps from the accepted catalog to the desired one.

What it does: matches types and properties by id and names every difference as one step with a
tier, a stable code and, where the data decides, the check that must pass.
Guarantees: the same two catalogs give the same plan; a plan is supported exactly when none of its
steps is `unsupported`; drops are soft unless data loss is allowed.
Deliberately absent: data, and the wish to be clever. What is not listed here is unsupported.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from omnigraph.errors import InvalidArgumentError
from omnigraph.lang.pg.plan_constraints import plan_constraints
from omnigraph.lang.pg.plan_properties import plan_properties
from omnigraph.lang.pg.steps import DropMode, MigrationPlan, Step, StepKind, Tier
from omnigraph.model.catalog import Catalog, EdgeType, Interface, NodeType

AnyType: TypeAlias = Interface | NodeType | EdgeType


def plan_migration(
    accepted: Catalog, desired: Catalog, allow_data_loss: bool = False
) -> MigrationPlan:
    """The plan. `desired` must have been compiled against `accepted`."""
    _check_lineage(accepted, desired)
    mode = DropMode.HARD if allow_data_loss else DropMode.SOFT
    steps = (
        *_drops(accepted, desired, mode),
        *_interfaces(accepted, desired),
        *_tables(accepted, desired, mode),
        *_additions(accepted, desired),
    )
    supported = all(step.tier is not Tier.UNSUPPORTED for step in steps)
    return MigrationPlan(steps, supported)


def kind_of(type_: AnyType) -> str:
    if isinstance(type_, Interface):
        return "interface"
    return "node" if isinstance(type_, NodeType) else "edge"


def _everything(catalog: Catalog) -> Iterator[AnyType]:
    yield from catalog.interfaces
    yield from catalog.tables()


def _check_lineage(accepted: Catalog, desired: Catalog) -> None:
    known = {t.id: kind_of(t) for t in _everything(accepted)}
    owners = {p.id: t.id for t in _everything(accepted) for p in t.properties}
    good = desired.next_id >= accepted.next_id
    for type_ in _everything(desired):
        fresh = type_.id >= accepted.next_id
        good = good and (known.get(type_.id) == kind_of(type_) or fresh)
        for prop in type_.properties:
            fresh = prop.id >= accepted.next_id
            good = good and (owners.get(prop.id) == type_.id or fresh)
    if not good:
        raise InvalidArgumentError(
            "The desired schema was not compiled against the accepted one.",
            hint="Compile it with the accepted catalog, so that identities carry over.",
        )


def _drops(accepted: Catalog, desired: Catalog, mode: DropMode) -> Iterator[Step]:
    kept = {t.id for t in _everything(desired)}
    # Edges first: no moment may show an edge without its ends.
    every: tuple[AnyType, ...] = (*accepted.edges, *accepted.nodes, *accepted.interfaces)
    for type_ in every:
        if type_.id in kept:
            continue
        entity = f"{kind_of(type_)}:{type_.name}"
        if isinstance(type_, Interface):
            message = f"remove the interface `{type_.name}`"
            yield Step(StepKind.DROP_TYPE, Tier.SAFE, "OG-CD-106", entity, message, type_.id)
            continue
        code = "OG-DS-102" if isinstance(type_, NodeType) else "OG-DS-103"
        message = f"drop the {kind_of(type_)} type `{type_.name}` and its rows"
        tier = Tier.DESTRUCTIVE if mode is DropMode.HARD else Tier.SAFE
        yield Step(StepKind.DROP_TYPE, tier, code, entity, message, type_.id, mode=mode)


def _interfaces(accepted: Catalog, desired: Catalog) -> Iterator[Step]:
    before = {i.id: i for i in accepted.interfaces}
    for new in desired.interfaces:
        old = before.get(new.id)
        entity = f"interface:{new.name}"
        if old is None:
            message = f"add the interface `{new.name}`"
            yield Step(
                StepKind.ADD_TYPE, Tier.SAFE, "OG-AD-101", entity, message, new.id, value=new
            )
            continue
        if old.name != new.name:
            yield _rename(old, new, "OG-BC-103")
        # By spelling, because 1, 1.0 and true are equal to Python and not to a reader.
        if repr((old.properties, old.annotations)) != repr((new.properties, new.annotations)):
            message = f"change the interface `{new.name}`"
            kind = StepKind.CHANGE_INTERFACE
            yield Step(kind, Tier.SAFE, "OG-AD-110", entity, message, new.id, value=new)


def _tables(accepted: Catalog, desired: Catalog, mode: DropMode) -> Iterator[Step]:
    for new in desired.tables():
        old = accepted.table(new.id)
        if old is None:
            continue
        if old.name != new.name:
            yield _rename(old, new, "OG-BC-101")
        if isinstance(old, NodeType) and isinstance(new, NodeType):
            yield from _implements(accepted, desired, old, new)
        if isinstance(old, EdgeType) and isinstance(new, EdgeType):
            yield from _endpoints(accepted, desired, old, new)
        if repr(old.annotations) != repr(new.annotations):
            yield Step(
                StepKind.UPDATE_TYPE_METADATA,
                Tier.SAFE,
                "OG-AD-107",
                f"{kind_of(new)}:{new.name}",
                f"change the annotations of `{new.name}`",
                new.id,
                value=new.annotations,
            )
        removed, added = plan_constraints(old, new)
        yield from removed
        yield from plan_properties(old, new, mode)
        yield from added


def _rename(old: AnyType, new: AnyType, code: str) -> Step:
    entity = f"{kind_of(new)}:{new.name}"
    message = f"rename the {kind_of(new)} `{old.name}` to `{new.name}`"
    return Step(StepKind.RENAME_TYPE, Tier.SAFE, code, entity, message, new.id, value=new.name)


def _implements(
    accepted: Catalog, desired: Catalog, old: NodeType, new: NodeType
) -> Iterator[Step]:
    before = {i.name: i.id for i in accepted.interfaces}
    after = {i.name: i.id for i in desired.interfaces}
    was = tuple(sorted(before[name] for name in old.implements))
    now = tuple(sorted(after[name] for name in new.implements))
    if was != now:
        listed = ", ".join(f"`{name}`" for name in new.implements) or "no interface"
        message = f"`{new.name}` now implements {listed}"
        entity = f"node:{new.name}"
        kind = StepKind.SET_INTERFACES
        yield Step(kind, Tier.SAFE, "OG-AD-109", entity, message, new.id, value=now)


def _endpoints(accepted: Catalog, desired: Catalog, old: EdgeType, new: EdgeType) -> Iterator[Step]:
    before = {n.name: n.id for n in accepted.nodes}
    after = {n.name: n.id for n in desired.nodes}
    was = (before[old.src_type], before[old.dst_type])
    if was == (after[new.src_type], after[new.dst_type]):
        return
    message = (
        f"`{new.name}` leads from `{old.src_type}` to `{old.dst_type}`, and its rows cannot be "
        f"made to lead from `{new.src_type}` to `{new.dst_type}`; add a new edge type instead"
    )
    kind = StepKind.UNSUPPORTED_CHANGE
    yield Step(kind, Tier.UNSUPPORTED, "OG-ED-102", f"edge:{new.name}", message, new.id)


def _additions(accepted: Catalog, desired: Catalog) -> Iterator[Step]:
    for new in desired.tables():
        if accepted.table(new.id) is None:
            kind = kind_of(new)
            message = f"add the {kind} type `{new.name}`"
            entity = f"{kind}:{new.name}"
            yield Step(
                StepKind.ADD_TYPE, Tier.SAFE, "OG-AD-101", entity, message, new.id, value=new
            )
