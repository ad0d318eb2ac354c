"""Edges whose node the other side deleted.

Each side by itself has no such edge, so only edges that were put in or moved can be orphans, and
only nodes that went can have left them: the changes of both sides say it all.

Guarantees: every orphan of the merged result is found, without reading any table.
Deliberately absent: what to do about them; a strategy or a resolution decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow.compute as pc

from omnigraph.merges.sides import Sides, other
from omnigraph.merges.tablemerge import (
    Choices,
    TableStep,
    changed_rows,
    deleted_ids,
    gone_ids,
)
from omnigraph.model.catalog import ID_COLUMN, EdgeType, NodeType, TableKind
from omnigraph.model.conflict import ConflictKind, MergeConflict, Side
from omnigraph.rows.setchecks import end_type, ends_at
from omnigraph.rows.threeway import Resolution

Steps = Mapping[int, TableStep]
_SIDES = (Side.OURS, Side.THEIRS)


@dataclass(frozen=True)
class Orphan:
    """An edge of the merged result whose node is gone. `deleted_by` is the side that deleted the
    node; the edge is the other side's."""

    edge: EdgeType
    node: NodeType
    row: Mapping[str, object]
    column: str
    deleted_by: Side

    @property
    def id(self) -> str:
        return str(self.row[ID_COLUMN])

    @property
    def node_id(self) -> str:
        return str(self.row[self.column])


def find_orphans(sides: Sides, steps: Steps) -> list[Orphan]:
    catalog = sides.schema.catalog
    found: list[Orphan] = []
    for edge in catalog.edges:
        for column in ("src", "dst"):
            node = end_type(catalog, edge, column)
            if column in ends_at(edge, node.name) and _concerns(sides, node, edge):
                found += _orphans(sides, steps, node, edge, column)
    return sorted(found, key=lambda orphan: (orphan.edge.id, orphan.id, orphan.column))


def decide_orphans(orphans: list[Orphan], choices: Choices) -> dict[tuple[str, str], Resolution]:
    """What strategies and resolutions make of orphans: the node stays, or the edge goes too."""
    decided: dict[tuple[str, str], Resolution] = {}
    for orphan in orphans:
        wanted = _wanted(orphan, choices)
        if wanted is orphan.deleted_by:
            decided[(orphan.edge.name, orphan.id)] = Resolution()
        elif wanted is not None:
            decided[(orphan.node.name, orphan.node_id)] = Resolution(side=wanted)
    return decided


def orphan_conflict(orphan: Orphan) -> MergeConflict:
    names = {item.column: item.name for item in orphan.edge.properties}
    image = {names.get(key, key): value for key, value in orphan.row.items() if key != ID_COLUMN}
    mine = other(orphan.deleted_by) is Side.OURS
    return MergeConflict(
        ConflictKind.ORPHAN_EDGE,
        TableKind.EDGE,
        orphan.edge.name,
        orphan.id,
        f"{orphan.edge.name} {orphan.id!r} leads to {orphan.node.name} {orphan.node_id!r}, which "
        f"{orphan.deleted_by} deleted.",
        (orphan.column,),
        None,
        image if mine else None,
        None if mine else image,
    )


def _concerns(sides: Sides, node: NodeType, edge: EdgeType) -> bool:
    """Whether one side changed the nodes and the other the edges."""
    return any(
        sides.changed(side, node.id) and sides.changed(other(side), edge.id) for side in _SIDES
    )


def _orphans(
    sides: Sides, steps: Steps, node: NodeType, edge: EdgeType, column: str
) -> Iterator[Orphan]:
    gone = gone_ids(steps[node.id], sides)
    if len(gone) == 0:
        return
    rows = changed_rows(steps[edge.id], sides)
    lost = rows.filter(pc.is_in(rows.column(column), value_set=gone))
    mine = deleted_ids(sides.diff(Side.OURS, node)) if lost.num_rows else gone
    ours = set(mine.to_pylist())
    for row in lost.to_pylist():
        by = Side.OURS if row[column] in ours else Side.THEIRS
        yield Orphan(edge, node, row, column, by)


def _wanted(orphan: Orphan, choices: Choices) -> Side | None:
    resolution = choices.resolutions.get((orphan.edge.name, orphan.id))
    if resolution is not None and resolution.side is not None:
        return resolution.side
    return choices.strategy_of(orphan.edge.name)
