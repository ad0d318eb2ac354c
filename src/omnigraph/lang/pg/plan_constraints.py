"""Plan the changes of one table's constraints.

What it does: compares constraints by property ids. A range, check, key or cardinality that takes
the place of another is one change, not a removal and an addition.
Guarantees: loosening never needs a look at the data; tightening always says which look.
"""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.lang.pg.byid import constraints_of, member_columns, member_names
from omnigraph.lang.pg.steps import (
    Constraint,
    DataCheck,
    InRange,
    KeyMatchesIds,
    Matches,
    NoRows,
    Replacement,
    Step,
    StepKind,
    Tier,
    Unique,
    WithinCardinality,
)
from omnigraph.model.catalog import EdgeType, NodeType

_REMOVAL_CODES = {
    "unique": "OG-CD-101",
    "index": "OG-CD-102",
    "range": "OG-CD-103",
    "check": "OG-CD-104",
    "card": "OG-CD-105",
    "key": "OG-CD-107",
}
_ADDITION_CODES = {
    "unique": "OG-MF-101",
    "range": "OG-MF-102",
    "check": "OG-MF-105",
    "key": "OG-MF-107",
    "card": "OG-ED-101",
}


@dataclass(frozen=True, slots=True)
class _Side:
    """The two states of a table, as constraints see them."""

    table: NodeType | EdgeType
    names: dict[int, str]
    columns: dict[int, str]
    new_ids: frozenset[int]  # properties that existing rows do not have yet
    empty_ids: frozenset[int]  # those of them that will be null in existing rows


def plan_constraints(
    old: NodeType | EdgeType, new: NodeType | EdgeType
) -> tuple[list[Step], list[Step]]:
    """Removals, to be done before properties change, and additions, to be done after."""
    before, after = constraints_of(old), constraints_of(new)
    removed = [c for c in before if c not in after]
    added = [c for c in after if c not in before]
    side = _side(old, new)
    removals: list[Step] = []
    additions: list[Step] = []
    for constraint in removed:
        successor = _successor(constraint, removed, added)
        if successor is None:
            removals.append(_remove(side, constraint, member_names(old)))
        else:
            added.remove(successor)
            additions.append(_change(side, constraint, successor))
    additions += [_add(side, constraint) for constraint in added]
    return removals, additions


def _side(old: NodeType | EdgeType, new: NodeType | EdgeType) -> _Side:
    known = {p.id for p in old.properties}
    fresh = [p for p in new.properties if p.id not in known]
    return _Side(
        new,
        member_names(new),
        member_columns(new),
        frozenset(p.id for p in fresh),
        frozenset(p.id for p in fresh if p.type.nullable),
    )


def _successor(
    constraint: Constraint, removed: list[Constraint], added: list[Constraint]
) -> Constraint | None:
    """The constraint that takes the place of a removed one, if there is exactly one."""
    if constraint.kind in ("unique", "index"):
        return None

    def alike(other: Constraint) -> bool:
        same_members = other.members == constraint.members or constraint.kind == "key"
        return other.kind == constraint.kind and same_members

    rivals = [c for c in removed if alike(c)]
    candidates = [c for c in added if alike(c)]
    return candidates[0] if len(candidates) == 1 and len(rivals) == 1 else None


def spelled(constraint: Constraint, names: dict[int, str]) -> str:
    """A constraint as a body would state it."""
    members = [names[id_] for id_ in constraint.members]
    low = "" if constraint.minimum is None else str(constraint.minimum)
    high = "" if constraint.maximum is None else str(constraint.maximum)
    if constraint.kind in ("range", "card"):
        members.append(f"{low}..{high}")
    elif constraint.kind == "check":
        members.append(f'"{constraint.pattern}"')
    return f"@{constraint.kind}({', '.join(members)})"


def _entity(side: _Side, constraint: Constraint) -> str:
    base = f"{side.table.kind}:{side.table.name}"
    name = side.names.get(constraint.members[0]) if len(constraint.members) == 1 else None
    return base if name is None else f"{base}.{name}"


def _remove(side: _Side, constraint: Constraint, old_names: dict[int, str]) -> Step:
    message = f"remove `{spelled(constraint, old_names)}` from `{side.table.name}`"
    return Step(
        StepKind.DROP_CONSTRAINT,
        Tier.SAFE,
        _REMOVAL_CODES[constraint.kind],
        f"{side.table.kind}:{side.table.name}",
        message,
        side.table.id,
        value=constraint,
    )


def _add(side: _Side, constraint: Constraint) -> Step:
    tier, code, check = _requirement(side, constraint)
    message = f"add `{spelled(constraint, side.names)}` to `{side.table.name}`"
    entity = _entity(side, constraint)
    kind = StepKind.ADD_CONSTRAINT
    return Step(kind, tier, code, entity, message, side.table.id, value=constraint, check=check)


def _change(side: _Side, old: Constraint, new: Constraint) -> Step:
    tier, code, check = _requirement(side, new)
    if new.kind in ("range", "card") and _contains(new, old):
        tier, code, check = Tier.SAFE, _REMOVAL_CODES[new.kind], None
    message = f"change the constraint of `{side.table.name}` to `{spelled(new, side.names)}`"
    value = Replacement(old, new)
    entity = _entity(side, new)
    kind = StepKind.CHANGE_CONSTRAINT
    return Step(kind, tier, code, entity, message, side.table.id, value=value, check=check)


def _contains(outer: Constraint, inner: Constraint) -> bool:
    low = outer.minimum is None or (inner.minimum is not None and outer.minimum <= inner.minimum)
    high = outer.maximum is None or (inner.maximum is not None and inner.maximum <= outer.maximum)
    return low and high


def _requirement(side: _Side, constraint: Constraint) -> tuple[Tier, str, DataCheck | None]:
    """How safe an addition is, under which code, and what the data must show."""
    if constraint.kind == "index":
        return Tier.SAFE, "OG-AD-103", None
    code = _ADDITION_CODES[constraint.kind]
    fresh = side.new_ids.intersection(constraint.members)
    if constraint.kind == "key":
        return Tier.VALIDATED, code, _key_check(side, constraint, bool(fresh))
    # New properties are null or hold a default that keeps the constraint (the compiler saw to it).
    if constraint.kind in ("range", "check") and fresh:
        return Tier.SAFE, "OG-AD-111", None
    if constraint.kind == "unique" and side.empty_ids.intersection(constraint.members):
        return Tier.SAFE, "OG-AD-111", None
    return Tier.VALIDATED, code, _check(side, constraint)


def _key_check(side: _Side, constraint: Constraint, fresh: bool) -> DataCheck:
    table = side.table
    if fresh:
        return NoRows(table.id, table.name)
    names = tuple(side.names[id_] for id_ in constraint.members)
    columns = tuple(side.columns[id_] for id_ in constraint.members)
    return KeyMatchesIds(table.id, table.name, names, columns)


def _check(side: _Side, constraint: Constraint) -> DataCheck:
    table = side.table
    names = tuple(side.names[id_] for id_ in constraint.members)
    columns = tuple(side.columns[id_] for id_ in constraint.members)
    low, high = constraint.minimum, constraint.maximum
    if constraint.kind == "unique":
        # A new property holds the same default in all rows, so only the others can tell them apart.
        old = tuple(side.columns[id_] for id_ in constraint.members if id_ not in side.new_ids)
        return Unique(table.id, table.name, names, old)
    if constraint.kind == "range":
        return InRange(table.id, table.name, names[0], columns[0], low, high)
    if constraint.kind == "check":
        return Matches(table.id, table.name, names[0], columns[0], constraint.pattern)
    assert isinstance(table, EdgeType)
    most = None if high is None else int(high)
    return WithinCardinality(table.id, table.name, table.src_type, int(low or 0), most)
