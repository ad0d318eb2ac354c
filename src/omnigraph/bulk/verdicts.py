"""Set checks as tasks: each checks some keys and reports staged rows that violate a constraint.

Guarantees: the same verdicts as in-process; a task holds at most about `MOST_KEYS` keys of either
side at a time; its result counts all rows and lists at most `most` of them.
Deliberately absent: words for what is wrong (`rows.breaches`), and where the rows came from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.bulk.absence import without
from omnigraph.bulk.stagedkeys import CommittedKeys, KeyRange, StagedKeys, gathered, spelled
from omnigraph.model.catalog import ID_COLUMN, SRC_COLUMN, Cardinality
from omnigraph.model.temporal import python_rows
from omnigraph.rows.columns import combined
from omnigraph.rows.findings import Numbers
from omnigraph.rows.setchecks import repeats
from omnigraph.storage.distributed import Removed, Target, remove_rows
from omnigraph.storage.rowrewrite import ROW_ADDRESS

_NONE: Numbers = np.empty(0, np.int64)


@dataclass(frozen=True)
class Verdict:
    """Rows that break a rule. `places` are the first of them, `others` what each collides with (a
    place, an id, a count), `values` what they hold. `dropped`: rows that a later one replaces."""

    total: int = 0
    places: Numbers = field(default_factory=lambda: _NONE)
    values: tuple[Any, ...] = ()
    others: tuple[Any, ...] = ()
    dropped: Numbers = field(default_factory=lambda: _NONE)
    removed: Removed | None = None


def _in_range(
    staged: StagedKeys, columns: tuple[str, ...], keys: tuple[str, ...], range_: KeyRange
) -> tuple[pa.Table, pa.Array, Numbers]:
    """Staged rows whose key lies in a range: columns, keys and places."""
    tables, places = [], []
    for table, numbers in staged.read(columns):
        mask = range_.mask(spelled(table, keys))
        if pc.all(mask, min_count=0).as_py():
            chosen, mine = table, numbers
        else:
            chosen = table.filter(mask)
            mine = numbers[mask.to_numpy(zero_copy_only=False)]
        tables.append(chosen)
        places.append(mine)
    whole = pa.concat_tables(tables)
    return whole, spelled(whole, keys), np.concatenate(places)


@dataclass(frozen=True)
class RepeatTask:
    """Rows whose id another row of the input has: later ones are wrong, or earlier ones go."""

    staged: StagedKeys
    range: KeyRange
    last_wins: bool
    most: int

    def run(self) -> Verdict:
        _, ids, places = _in_range(self.staged, (ID_COLUMN,), (ID_COLUMN,), self.range)
        if self.last_wins:
            earlier, _ = repeats(ids[::-1])
            return Verdict(dropped=places[::-1][earlier])
        later, firsts = repeats(ids)
        some = later[: self.most]
        return Verdict(
            len(later),
            places[some],
            tuple(ids.take(pa.array(some)).to_pylist()),
            tuple(places[firsts[: self.most]].tolist()),
        )


@dataclass(frozen=True)
class TakenTask:
    """Staged rows whose ids committed rows have."""

    staged: StagedKeys
    committed: CommittedKeys
    most: int

    def run(self) -> Verdict:
        taken = combined(pa.concat_tables(self.committed.read([ID_COLUMN])).column(ID_COLUMN))
        total, found, ids = 0, [], []
        for table, places in gathered(self.staged.read([ID_COLUMN])):
            column = combined(table.column(ID_COLUMN))
            rows = _where(pc.is_in(column, value_set=taken))
            total += len(rows)
            found.append(places[rows[: self.most]])
            ids += column.take(pa.array(rows[: self.most])).to_pylist()
        return Verdict(total, np.concatenate(found) if found else _NONE, tuple(ids))


@dataclass(frozen=True)
class ReplaceTask:
    """Committed rows whose ids the input has: they are marked as gone."""

    target: Target
    staged: StagedKeys
    committed: CommittedKeys

    def run(self) -> Verdict:
        rows = pa.concat_tables(self.committed.read([ID_COLUMN], with_address=True))
        ids = combined(rows.column(ID_COLUMN))
        goes = np.zeros(len(ids), bool)
        for given in self.staged.ids():
            goes |= pc.is_in(ids, value_set=given).to_numpy(zero_copy_only=False)
        addresses = rows.column(ROW_ADDRESS).to_numpy()[goes]
        return Verdict(removed=remove_rows(self.target, addresses))


@dataclass(frozen=True)
class UniqueTask:
    """Rows that share a key with another row of the input, or with a committed row that stays."""

    staged: StagedKeys
    committed: CommittedKeys | None
    columns: tuple[str, ...]
    range: KeyRange
    most: int

    def run(self) -> Verdict:
        wanted = tuple(dict.fromkeys((ID_COLUMN, *self.columns)))
        rows, keys, places = _in_range(self.staged, wanted, self.columns, self.range)
        later, firsts = repeats(keys)
        with_input = [
            (int(row), int(places[first])) for row, first in zip(later, firsts, strict=True)
        ]
        with_graph = list(self._held(rows, keys, later))
        chosen = sorted([*with_input[: self.most], *with_graph[: self.most]])[: self.most]
        at = np.array([row for row, _ in chosen], np.int64)
        held = python_rows(rows.select(list(self.columns)).take(pa.array(at)))
        values = tuple(tuple(row[name] for name in self.columns) for row in held)
        others = tuple(other for _, other in chosen)
        return Verdict(len(with_input) + len(with_graph), places[at], values, others)

    def _held(self, rows: pa.Table, keys: pa.Array, later: Numbers) -> Iterator[tuple[int, str]]:
        """First rows of their key, and the id of a committed row that has it and stays."""
        if self.committed is None:
            return
        holders: dict[str, tuple[int, str]] = {}
        for table in self.committed.read(list(dict.fromkeys((ID_COLUMN, *self.columns)))):
            theirs = spelled(table, self.columns)
            found = pc.index_in(theirs, value_set=keys)
            for at in _where(pc.is_valid(found)):
                if theirs[int(at)].is_valid:
                    id_ = table.column(ID_COLUMN)[int(at)].as_py()
                    holders[id_] = (found[int(at)].as_py(), id_)
        for id_ in self._leaving(list(holders)):
            del holders[id_]
        yield from sorted({row: (row, id_) for row, id_ in holders.values()}.values())

    def _leaving(self, ids: list[str]) -> list[str]:
        """Those ids that the input has too, so that their committed rows are replaced."""
        if not ids or self.staged.fresh:
            return []
        asked = pa.array(ids, pa.string())
        leaves = np.zeros(len(ids), bool)
        for given in self.staged.ids():
            leaves |= pc.is_in(asked, value_set=given).to_numpy(zero_copy_only=False)
        return [ids[at] for at in np.flatnonzero(leaves)]


@dataclass(frozen=True)
class EndpointTask:
    """Edges one of whose ends is no node, neither of the input nor committed."""

    edges: StagedKeys
    column: str
    nodes: StagedKeys | None
    committed: CommittedKeys | None
    most: int

    def run(self) -> Verdict:
        table = pa.concat_tables([t for t, _ in self.edges.read([self.column])])
        places = np.concatenate([file.places() for file in self.edges.files])
        ends = combined(table.column(self.column))
        absent = without(ends, self._known()).unique()
        if not len(absent):
            return Verdict()
        rows = _where(pc.is_in(ends, value_set=absent))
        some = rows[: self.most]
        return Verdict(len(rows), places[some], tuple(ends.take(pa.array(some)).to_pylist()))

    def _known(self) -> Iterator[pa.Array]:
        if self.nodes is not None:
            yield from self.nodes.ids()
        if self.committed is not None:
            pieces = ((table, _NONE) for table in self.committed.read([ID_COLUMN]))
            for piece, _ in gathered(pieces):
                yield combined(piece.column(ID_COLUMN))


@dataclass(frozen=True)
class AttachedTask:
    """Committed edges that stay while the node they point to goes."""

    edges: CommittedKeys
    column: str
    nodes: StagedKeys | None
    most: int

    def run(self) -> Verdict:
        rows = pa.concat_tables(self.edges.read([ID_COLUMN, self.column]))
        ends = combined(rows.column(self.column))
        stays = np.zeros(len(ends), bool)
        for known in self.nodes.ids() if self.nodes else ():
            stays |= pc.is_in(ends, value_set=known).to_numpy(zero_copy_only=False)
        wrong = np.flatnonzero(~stays)
        some = pa.array(wrong[: self.most])
        return Verdict(
            len(wrong),
            values=tuple(ends.take(some).to_pylist()),
            others=tuple(combined(rows.column(ID_COLUMN)).take(some).to_pylist()),
        )


@dataclass(frozen=True)
class CountTask:
    """Nodes with too many or too few edges, of those whose edges come or go."""

    staged: StagedKeys | None
    committed: CommittedKeys | None
    replaces: bool
    rule: Cardinality
    nodes: StagedKeys | None  # all nodes, when those are replaced; others do not count
    nodes_replaced: bool
    range: KeyRange
    most: int

    def run(self) -> Verdict:
        new, places = pa.array([], pa.string()), _NONE
        if self.staged is not None:
            _, new, places = _in_range(self.staged, (SRC_COLUMN,), (SRC_COLUMN,), self.range)
        staying, leaving = self._before()
        sources = self._remaining(pa.concat_arrays([new, leaving]).unique())
        if not len(sources):
            return Verdict()
        after = pc.index_in(pa.concat_arrays([staying, new]), value_set=sources).drop_null()
        counts = np.bincount(after.to_numpy(zero_copy_only=False), minlength=len(sources))
        high = np.inf if self.rule.maximum is None else self.rule.maximum
        wrong = np.flatnonzero((counts < self.rule.minimum) | (counts > high))
        chosen = sources.take(pa.array(wrong))
        first = pc.index_in(chosen, value_set=new).to_pylist()
        at = np.array([-1 if row is None else places[row] for row in first], np.int64)
        return Verdict(
            len(wrong),
            at[: self.most],
            tuple(chosen[: self.most].to_pylist()),
            tuple(counts[wrong[: self.most]].tolist()),
            places[_where(pc.is_in(new, value_set=chosen))],
        )

    def _before(self) -> tuple[pa.Array, pa.Array]:
        """Sources of committed edges that stay, and of those that are replaced."""
        empty = pa.array([], pa.string())
        if self.committed is None:
            return empty, empty
        pieces = []
        for table in self.committed.read([ID_COLUMN, SRC_COLUMN]):
            pieces.append(table.filter(self.range.mask(combined(table.column(SRC_COLUMN)))))
        rows = pa.concat_tables(pieces)
        sources = combined(rows.column(SRC_COLUMN))
        if self.replaces:
            return empty, sources
        leaves = np.zeros(rows.num_rows, bool)
        if self.staged is not None and not self.staged.fresh:
            ids = combined(rows.column(ID_COLUMN))
            for given in self.staged.ids():
                leaves |= pc.is_in(ids, value_set=given).to_numpy(zero_copy_only=False)
        return sources.filter(pa.array(~leaves)), sources.filter(pa.array(leaves))

    def _remaining(self, sources: pa.Array) -> pa.Array:
        if not self.nodes_replaced:
            return sources
        there = np.zeros(len(sources), bool)
        for known in self.nodes.ids() if self.nodes else ():
            there |= pc.is_in(sources, value_set=known).to_numpy(zero_copy_only=False)
        return sources.filter(pa.array(there))


Task = RepeatTask | TakenTask | ReplaceTask | UniqueTask | EndpointTask | AttachedTask | CountTask


def run_task(task: Task) -> Verdict:
    return task.run()


def _where(mask: pa.Array) -> Numbers:
    return np.flatnonzero(pc.fill_null(mask, False).to_numpy(zero_copy_only=False))
