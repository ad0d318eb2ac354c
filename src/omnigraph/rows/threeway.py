"""Three-way merge of one type, as a pure function over changed rows.

Each side comes as the rows that it changed since the base: `before` as they were (updated and
deleted ones), `after` as they are (inserted and updated ones). The result is what must be done to
one of them, by default ours, so that it holds both sides' changes, and what cannot be combined.

Guarantees: only entities that both sides changed are looked at one by one; the cost follows the
changes. Merging is symmetric in content: swapping the sides gives the same rows and conflicts.
Where the branches share several last states, these are combined into one base first. What they
disagree about has no value in that base (it is contested): there the sides agree or clash.
Deliberately absent: constraints across entities; they are checked on the merged result.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.model.catalog import ID_COLUMN, EdgeType, NodeType
from omnigraph.model.conflict import ConflictKind, MergeConflict, Side
from omnigraph.model.equality import same, same_row
from omnigraph.model.references import address_of
from omnigraph.model.temporal import python_rows

Row = dict[str, Any]
# Columns without a value in the base, by entity; no columns: the entity as a whole.
Contested = Mapping[str, frozenset[str]]
_WHOLE: frozenset[str] = frozenset()


class Granularity(StrEnum):
    PROPERTY = "property"  # both may change one entity, in different properties
    ENTITY = "entity"  # both changing one entity is a conflict


@dataclass(frozen=True)
class ChangedRows:
    """One side's changes since the base, in physical columns with unique ids."""

    before: pa.Table
    after: pa.Table


@dataclass(frozen=True)
class Resolution:
    """A decision about one entity: a side, or the row itself (None: it shall not be there)."""

    side: Side | None = None
    row: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class MergedTable:
    """What to do to the side that is built on: rows to put in, ids to take out. Conflicts leave
    it as it is. `mixed` are the ids of rows that neither side has like this, `contested` what the
    sides clash about, also where a strategy decides."""

    upserts: pa.Table
    deletes: tuple[str, ...]
    conflicts: tuple[MergeConflict, ...]
    mixed: frozenset[str]
    contested: Contested = field(default_factory=dict)


def merge_table(
    table: NodeType | EdgeType,
    ours: ChangedRows,
    theirs: ChangedRows,
    *,
    granularity: Granularity = Granularity.PROPERTY,
    strategy: Side | None = None,
    resolutions: Mapping[str, Resolution] | None = None,
    onto: Side = Side.OURS,
    contested: Contested | None = None,
    lacking: Mapping[Side, Collection[str]] | None = None,
) -> MergedTable:
    """Combine the two sides. `strategy` decides what would be a conflict; `resolutions` decide
    for single entities and come first. `contested`: what has no value in the base. `lacking`:
    columns that a side does not know; it agrees with whatever the other one has there."""
    decided, loose = resolutions or {}, contested or {}
    mine, others = _touched(ours), _touched(theirs)
    asked = pa.array(dict.fromkeys([*decided, *loose]), pa.string())
    both = pa.concat_arrays([_within(mine, others), _within(asked, mine), _within(asked, others)])
    both = both.unique().sort()
    settle = _Settler(table, granularity, strategy, decided, onto, loose)
    pairs = _pairs(ours, theirs, mine, others, both, onto)
    outcome = settle.all([_agreed(pair, lacking or {}) for pair in pairs])
    incoming = theirs if onto is Side.OURS else ours
    deleted = _without(_without(_ids(incoming.before), _ids(incoming.after)), both)
    rows = pa.Table.from_pylist(outcome.rows, schema=incoming.after.schema)
    return MergedTable(
        upserts=pa.concat_tables([_rows_without(incoming.after, both), rows]),
        deletes=tuple(sorted({*deleted.to_pylist(), *outcome.deletes})),
        conflicts=tuple(outcome.conflicts),
        mixed=frozenset(row[ID_COLUMN] for row in outcome.rows),
        contested=outcome.contested,
    )


@dataclass(frozen=True)
class _Pair:
    """One entity that both sides changed: as it was, and as each side left it. `held` is what the
    side that is built on holds."""

    id: str
    base: Row | None
    ours: Row | None
    theirs: Row | None
    held: Row | None


class _Outcome:
    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.deletes: list[str] = []
        self.conflicts: list[MergeConflict] = []
        self.contested: dict[str, frozenset[str]] = {}


class _Settler:
    """Settles entities that both sides changed."""

    def __init__(
        self,
        table: NodeType | EdgeType,
        granularity: Granularity,
        strategy: Side | None,
        resolutions: Mapping[str, Resolution],
        onto: Side,
        contested: Contested,
    ) -> None:
        self._onto = onto
        self._contested = contested
        self._table = table
        self._granularity = granularity
        self._strategy = strategy
        self._resolutions = resolutions
        self._names = {item.column: item.name for item in table.properties}
        self._columns = {item.name: item.column for item in table.properties}

    def all(self, pairs: list[_Pair]) -> _Outcome:
        outcome = _Outcome()
        for pair in pairs:
            self._settle(pair, outcome)
        return outcome

    def _settle(self, pair: _Pair, outcome: _Outcome) -> None:
        if pair.id in self._resolutions:
            self._take(pair, self._resolved(pair, self._resolutions[pair.id]), outcome)
            return
        if same_row(pair.ours, pair.theirs):  # both did the same
            self._take(pair, pair.ours, outcome)
            return
        for changed, other in ((pair.ours, pair.theirs), (pair.theirs, pair.ours)):
            # Rewritten with equal values. A contested value equals no value.
            if pair.id not in self._contested and same_row(other, pair.base):
                self._take(pair, changed, outcome)
                return
        merged, clashes = self._combine(pair)
        if clashes:
            outcome.contested[pair.id] = _WHOLE if merged is None else frozenset(clashes)
        if not clashes:
            self._take(pair, merged, outcome)
        elif self._strategy is Side.THEIRS:
            self._take(pair, self._prefer(pair, Side.THEIRS), outcome)
        elif self._strategy is Side.OURS:
            self._take(pair, self._prefer(pair, Side.OURS), outcome)
        else:
            outcome.conflicts.append(self._conflict(pair, clashes))

    def _combine(self, pair: _Pair) -> tuple[Row | None, tuple[str, ...]]:
        """The combined row, and the columns on which the sides clash. Without a row they clash as
        a whole: one side deleted it, or the base says nothing about it."""
        loose = self._contested.get(pair.id)
        if pair.base is None or pair.ours is None or pair.theirs is None or loose == _WHOLE:
            return None, tuple(self._differing(pair.ours or {}, pair.theirs or {}))
        if self._granularity is Granularity.ENTITY:
            return None, tuple(self._differing(pair.ours, pair.theirs))
        merged, clashes = dict(pair.ours), []
        for column, value in pair.theirs.items():
            was, is_ours = pair.base[column], pair.ours[column]
            if same(value, is_ours):
                continue
            if loose is not None and column in loose:
                clashes.append(column)
            elif same(is_ours, was):
                merged[column] = value
            elif not same(value, was):
                clashes.append(column)
        return merged, tuple(clashes)

    def _prefer(self, pair: _Pair, side: Side) -> Row | None:
        """One side wins where they clash; what does not clash is still combined."""
        chosen, other = (pair.ours, pair.theirs) if side is Side.OURS else (pair.theirs, pair.ours)
        loose = self._contested.get(pair.id)
        if chosen is None or other is None or pair.base is None or loose == _WHOLE:
            return chosen
        if self._granularity is Granularity.ENTITY:
            return chosen
        keeps = loose or _WHOLE
        return {
            column: value
            if column in keeps or not same(value, pair.base[column])
            else other[column]
            for column, value in chosen.items()
        }

    def _resolved(self, pair: _Pair, resolution: Resolution) -> Row | None:
        if resolution.side is not None:
            return self._prefer(pair, resolution.side)
        if resolution.row is None:
            return None
        start = pair.ours or pair.theirs or pair.base or {}
        given = {self._columns.get(name, name): value for name, value in resolution.row.items()}
        given = {column: _as_known(pair, column, value) for column, value in given.items()}
        return {**start, **given, ID_COLUMN: pair.id}

    def _take(self, pair: _Pair, row: Row | None, outcome: _Outcome) -> None:
        if row is None and pair.held is not None:
            outcome.deletes.append(pair.id)
        elif row is not None and not same_row(row, pair.held):
            outcome.rows.append(row)

    def _differing(self, ours: Row, theirs: Row) -> list[str]:
        columns = dict.fromkeys([*ours, *theirs])
        return [name for name in columns if not same(ours.get(name), theirs.get(name))]

    def _conflict(self, pair: _Pair, columns: tuple[str, ...]) -> MergeConflict:
        kind = _kind(pair, pair.id in self._contested)
        names = tuple(self._names.get(column, column) for column in columns)
        return MergeConflict(
            kind=kind,
            entity_kind=self._table.kind,
            type_name=self._table.name,
            entity_id=pair.id,
            message=_message(kind, self._table.name, pair.id, names),
            properties=names if kind is not ConflictKind.DELETE_VS_UPDATE else (),
            base=self._image(self._known(pair)),
            ours=self._image(pair.ours),
            theirs=self._image(pair.theirs),
        )

    def _known(self, pair: _Pair) -> Row | None:
        """What the base says about an entity."""
        loose = self._contested.get(pair.id)
        if loose is None or pair.base is None:
            return pair.base
        return {k: v for k, v in pair.base.items() if k not in loose} if loose else None

    def _image(self, row: Row | None) -> Row | None:
        if row is None:
            return None
        return {self._names.get(key, key): value for key, value in row.items() if key != ID_COLUMN}


def _kind(pair: _Pair, is_contested: bool) -> ConflictKind:
    if pair.base is None and not is_contested:
        return ConflictKind.DIVERGENT_INSERT
    if pair.ours is None or pair.theirs is None:
        return ConflictKind.DELETE_VS_UPDATE
    return ConflictKind.DIVERGENT_UPDATE


def _message(kind: ConflictKind, type_name: str, entity_id: str, names: tuple[str, ...]) -> str:
    what = f"{type_name} {entity_id!r}"
    match kind:
        case ConflictKind.DIVERGENT_INSERT:
            return f"{what} was inserted on both sides with different values of {_list(names)}."
        case ConflictKind.DELETE_VS_UPDATE:
            return f"{what} was deleted on one side and updated on the other."
        case _:
            return f"{what} was updated on both sides to different values of {_list(names)}."


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(names)


def _pairs(
    ours: ChangedRows,
    theirs: ChangedRows,
    mine: pa.Array,
    others: pa.Array,
    ids: pa.Array,
    onto: Side,
) -> list[_Pair]:
    if len(ids) == 0:
        return []
    was = {**_rows(ours.before, ids), **_rows(theirs.before, ids)}
    left, right = _rows(ours.after, ids), _rows(theirs.after, ids)
    by_us, by_them = (set(_within(ids, touched).to_pylist()) for touched in (mine, others))
    found = []
    for key in ids.to_pylist():
        base = was.get(key)
        sides = (
            left.get(key) if key in by_us else base,
            right.get(key) if key in by_them else base,
        )
        found.append(_Pair(key, base, *sides, held=sides[0 if onto is Side.OURS else 1]))
    return found


def _agreed(pair: _Pair, lacking: Mapping[Side, Collection[str]]) -> _Pair:
    """An entity with the other side's values where a side knows none."""
    ours, theirs = pair.ours, pair.theirs
    if ours is None or theirs is None or not any(lacking.values()):
        return pair
    to_ours = {column: theirs[column] for column in lacking[Side.OURS]}
    to_theirs = {column: ours[column] for column in lacking[Side.THEIRS]}
    return replace(pair, ours={**ours, **to_ours}, theirs={**theirs, **to_theirs})


# Ids stay in Arrow: as Python's texts in sets, those of many rows take ten times the memory.


def _rows(table: pa.Table, ids: pa.Array) -> dict[str, Row]:
    chosen = table.filter(pc.is_in(table.column(ID_COLUMN), ids))
    return {row[ID_COLUMN]: row for row in python_rows(chosen)}


def _rows_without(table: pa.Table, ids: pa.Array) -> pa.Table:
    return table.filter(pc.invert(pc.is_in(table.column(ID_COLUMN), ids))) if len(ids) else table


def _within(ids: pa.Array, others: pa.Array) -> pa.Array:
    return ids.filter(pc.is_in(ids, others))


def _without(ids: pa.Array, others: pa.Array) -> pa.Array:
    return ids.filter(pc.invert(pc.is_in(ids, others)))


def _touched(side: ChangedRows) -> pa.Array:
    return pa.concat_arrays([_ids(side.before), _ids(side.after)])


def _ids(table: pa.Table) -> pa.Array:
    return table.column(ID_COLUMN).combine_chunks()


def _as_known(pair: _Pair, column: str, value: Any) -> Any:
    """A reference that one of the sides holds already is that side's, and needs no new leave."""
    address = address_of(value) if isinstance(value, bytes) else None
    if address is None:
        return value
    for side in (pair.ours, pair.theirs, pair.base):
        held = None if side is None else side.get(column)
        if isinstance(held, bytes) and address_of(held) == address:
            return held
    return value
