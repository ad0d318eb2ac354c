"""Constraints of a table by property ids, and back to names.

What it does: names change with a rename and ids do not, so comparing and rewriting constraints is
done on ids.
Guarantees: `name_constraints(t, constraints_of(t))` gives back the same constraints.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from omnigraph.lang.pg.build import canonical_groups, rank_of
from omnigraph.lang.pg.steps import DST_ID, SRC_ID, Constraint
from omnigraph.model.catalog import (
    DST_COLUMN,
    SRC_COLUMN,
    Cardinality,
    Check,
    EdgeType,
    NodeType,
    Range,
)


def constraints_of(table: NodeType | EdgeType) -> tuple[Constraint, ...]:
    """All constraints of a table, in canonical order."""
    rank = rank_of(table.properties)

    def ids(names: Iterable[str]) -> tuple[int, ...]:
        return tuple(rank[name] for name in names)

    found = [Constraint("unique", ids(group)) for group in table.uniques]
    found += [Constraint("index", ids(group)) for group in table.indexes]
    if isinstance(table, EdgeType):
        card = table.cardinality
        if not card.is_default:
            found.append(Constraint("card", (), card.minimum, card.maximum))
        return tuple(found)
    if table.key:
        found.append(Constraint("key", ids(table.key)))
    found += [Constraint("range", ids([r.property]), r.minimum, r.maximum) for r in table.ranges]
    found += [Constraint("check", ids([c.property]), pattern=c.pattern) for c in table.checks]
    return tuple(found)


def member_names(table: NodeType | EdgeType) -> dict[int, str]:
    """Property names by id, the ends of an edge included."""
    return {SRC_ID: SRC_COLUMN, DST_ID: DST_COLUMN} | {p.id: p.name for p in table.properties}


def member_columns(table: NodeType | EdgeType) -> dict[int, str]:
    """Physical columns by property id, the ends of an edge included."""
    return {SRC_ID: SRC_COLUMN, DST_ID: DST_COLUMN} | {p.id: p.column for p in table.properties}


def name_node_constraints(node: NodeType, constraints: Iterable[Constraint]) -> NodeType:
    """A node type with these constraints and no others."""
    by_kind = _grouped(constraints)
    names = member_names(node)
    rank = rank_of(node.properties)
    ranges = sorted(by_kind["range"], key=lambda c: (c.members, repr(c.minimum), repr(c.maximum)))
    checks = sorted(by_kind["check"], key=lambda c: (c.members, c.pattern))
    key = next((sorted(c.members) for c in by_kind["key"]), [])
    return replace(
        node,
        uniques=canonical_groups(_named(by_kind["unique"], names), rank),
        indexes=canonical_groups(_named(by_kind["index"], names), rank),
        key=tuple(names[id_] for id_ in key),
        ranges=tuple(Range(names[c.members[0]], c.minimum, c.maximum) for c in ranges),
        checks=tuple(Check(names[c.members[0]], c.pattern) for c in checks),
    )


def name_edge_constraints(edge: EdgeType, constraints: Iterable[Constraint]) -> EdgeType:
    """An edge type with these constraints and no others."""
    by_kind = _grouped(constraints)
    names = member_names(edge)
    rank = rank_of(edge.properties)
    card = next((cardinality_of(c) for c in by_kind["card"]), Cardinality())
    return replace(
        edge,
        uniques=canonical_groups(_named(by_kind["unique"], names), rank),
        indexes=canonical_groups(_named(by_kind["index"], names), rank),
        cardinality=card,
    )


def cardinality_of(constraint: Constraint) -> Cardinality:
    high = constraint.maximum
    return Cardinality(int(constraint.minimum or 0), None if high is None else int(high))


def _grouped(constraints: Iterable[Constraint]) -> dict[str, list[Constraint]]:
    out: dict[str, list[Constraint]] = {
        kind: [] for kind in ("key", "unique", "index", "range", "check", "card")
    }
    for constraint in constraints:
        out[constraint.kind].append(constraint)
    return out


def _named(constraints: list[Constraint], names: dict[int, str]) -> list[tuple[str, ...]]:
    return [tuple(names[id_] for id_ in c.members) for c in constraints]
