"""The merge base of two branches.

Usually they last agreed in one commit. Branches that were merged into each other at the same time
have several such commits, none of which descends from another, and each of which lacks something
that both branches have. Comparing with one of them alone would undo the other's changes, so they
are merged first, against what they have in common themselves. What they clash about is contested:
no branch counts as unchanged there.

Guarantees: nothing is written; the order in which commits were made does not matter.
Deliberately absent: constraints. The common state is compared with, never read by anybody.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from omnigraph.errors import LimitExceededError
from omnigraph.history.ancestry import Bases, Place, merge_bases
from omnigraph.history.entitydiff import Differ, diff_versions
from omnigraph.merges.overlays import State, TableOverlay
from omnigraph.merges.sides import Sides
from omnigraph.merges.tablemerge import Choices, TableStep, merge_tables
from omnigraph.model.conflict import Side
from omnigraph.rows.deltas import merged
from omnigraph.rows.threeway import Contested
from omnigraph.storage.root import GraphRoot

# How many times branches may have been merged both ways since one commit that all descend from.
MOST_LEVELS = 100


def common_state(
    root: GraphRoot, bases: Bases, branch: str, differ: Differ = diff_versions
) -> State:
    """The state that branches whose newest common ancestors are `bases` have in common."""
    return _Merger(root, branch, differ).state(bases, MOST_LEVELS)


def places_needed(root: GraphRoot, bases: Bases) -> Iterator[Place]:
    """The commits whose states the common state is made of."""
    ordered = bases.places[::-1]
    yield from ordered
    for number, place in enumerate(ordered[1:], 1):
        yield from places_needed(root, merge_bases(root, ordered[:number], [place], bases.heads))


@dataclass
class _Merger:
    root: GraphRoot
    branch: str
    differ: Differ
    _made: dict[frozenset[str], State] = field(default_factory=dict)

    def state(self, bases: Bases, levels: int) -> State:
        key = frozenset(place.commit.id for place in bases.places)
        if key not in self._made:
            self._made[key] = self._make(bases, levels)
        return self._made[key]

    def _make(self, bases: Bases, levels: int) -> State:
        if levels == 0:
            raise LimitExceededError(
                f"The branches were merged both ways more than {MOST_LEVELS} times in a row.",
                resource="merge bases",
                limit=MOST_LEVELS,
                hint="Apply the commits of one branch to the other with `commit cherry-pick`.",
            )
        ordered = bases.places[::-1]
        state = State(ordered[0].snapshot(self.root, self.branch))
        for number, place in enumerate(ordered[1:], 1):
            below = merge_bases(self.root, ordered[:number], [place], bases.heads)
            lower = self.state(below, levels - 1)
            theirs = State(place.snapshot(self.root, self.branch))
            state = self._merge(lower, state, theirs)
        return state

    def _merge(self, base: State, ours: State, theirs: State) -> State:
        sides = Sides.of(
            self.root, base, ours, theirs, branch_id="", may_adopt=True, differ=self.differ
        )
        if sides.schema.clashes:
            return replace(ours, clashes=sides.schema.clashes)
        steps = merge_tables(sides, Choices(strategy=Side.OURS))
        tables, overlays = {}, {}
        for step in steps:
            version = sides.version(step.ground, step.table.id)
            if version is not None:
                tables[step.table.id] = version
            overlays[step.table.id] = _overlay(sides, step)
        snapshot = replace(ours.snapshot, catalog=sides.schema.catalog, tables=tables)
        return State(snapshot, {key: one for key, one in overlays.items() if not one.is_empty})


def _overlay(sides: Sides, step: TableStep) -> TableOverlay:
    """What the merged state of a table has that the side it builds on has not on disk."""
    table_id = step.table.id
    below = sides.state(step.ground).overlay(table_id)
    columns = {item.column for item in step.table.properties}
    filled = [item for item in (*below.filled, *step.added) if item.column in columns]
    contested = [sides.state(side).overlay(table_id).contested for side in (Side.OURS, Side.THEIRS)]
    return TableOverlay(
        merged(below.delta, step.delta),
        tuple({item.column: item for item in filled}.values()),
        _united([*contested, step.contested]),
    )


def _united(parts: Sequence[Contested]) -> Mapping[str, frozenset[str]]:
    """What is contested in any of the parts; an entity as a whole outweighs its columns."""
    found: dict[str, frozenset[str]] = {}
    for part in parts:
        for entity_id, columns in part.items():
            known = found.get(entity_id, columns)
            found[entity_id] = known | columns if known and columns else frozenset()
    return found
