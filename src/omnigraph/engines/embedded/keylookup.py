"""An in-memory lookup of rows by key.

A lookup holds the ids of a table's rows and the spelling of one key for each (its id, the source
of an edge, the members of a uniqueness constraint). It grows with the table: what a write adds
becomes a new segment, and what it takes away is remembered as gone.

Guarantees: immutable, so that a later lookup shares its segments with an earlier one; finding a
key costs the logarithm of the table, adding rows costs their own number and little more.
Deliberately absent: the rows themselves, and null keys, which equal nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Numbers: TypeAlias = np.ndarray[Any, Any]

_HASH_AT_ONCE = 65_536
# A newer segment is joined to its neighbour until the neighbour is this many times larger.
_GROWTH = 4


@dataclass(frozen=True, eq=False)
class _Segment:
    """Rows with keys: `hashes` ascend, `order` says which row each belongs to."""

    ids: pa.Array
    keys: pa.Array
    hashes: Numbers
    order: Numbers

    @property
    def nbytes(self) -> int:
        shared = 0 if self.keys is self.ids else int(self.keys.nbytes)
        return int(self.ids.nbytes) + shared + int(self.hashes.nbytes) + int(self.order.nbytes)


def _segment(ids: pa.Array, keys: pa.Array) -> _Segment:
    if keys.null_count:
        there = pc.is_valid(keys)
        ids, keys = ids.filter(there), keys.filter(there)
    hashes = np.empty(len(keys), np.int64)
    for at in range(0, len(keys), _HASH_AT_ONCE):
        part = keys[at : at + _HASH_AT_ONCE].to_pylist()
        hashes[at : at + len(part)] = [hash(key) for key in part]
    order = np.argsort(hashes, kind="stable").astype(np.int32)
    return _Segment(ids, keys, hashes[order], order)


class Lookup:
    """The ids of a table's rows by key."""

    def __init__(
        self, segments: tuple[_Segment, ...] = (), gone: Mapping[str, int] | None = None
    ) -> None:
        self._segments = segments
        # By id: rows in segments before this place are no longer there.
        self._gone: Mapping[str, int] = gone or {}

    @staticmethod
    def of(ids: pa.Array, keys: pa.Array) -> Lookup:
        return Lookup((_segment(ids, keys),))

    @property
    def nbytes(self) -> int:
        return sum(s.nbytes for s in self._segments) + 100 * len(self._gone)

    @property
    def is_worn(self) -> bool:
        """Whether so many rows are deleted that a rebuild is cheaper."""
        return len(self._gone) > 1000 + sum(len(s.ids) for s in self._segments) // 4

    def find(self, keys: Sequence[str]) -> list[tuple[int, str]]:
        """For each row whose key is among `keys`: the place of that key, and the row's id."""
        wanted = np.fromiter((hash(key) for key in keys), np.int64, len(keys))
        spelled = pa.array(keys, pa.string())
        found: list[tuple[int, str]] = []
        for number, segment in enumerate(self._segments):
            places, rows = _candidates(segment, wanted)
            if not len(places):
                continue
            equal = pc.equal(segment.keys.take(rows), spelled.take(places))
            ids = segment.ids.take(rows.filter(equal)).to_pylist()
            for place, id_ in zip(places.filter(equal).to_pylist(), ids, strict=True):
                if self._gone.get(id_, 0) <= number:
                    found.append((place, id_))
        return found

    def holds(self, keys: Sequence[str]) -> Numbers:
        """For each key, whether some row has it."""
        there = np.zeros(len(keys), bool)
        for place, _ in self.find(keys):
            there[place] = True
        return there

    def changed(self, gone: Iterable[str], ids: pa.Array, keys: pa.Array) -> Lookup:
        """After the rows with ids `gone` left and others came. A replaced row does both."""
        if not self._segments:
            return Lookup.of(ids, keys)
        place = len(self._segments)
        marks = {**self._gone, **dict.fromkeys(gone, place)}
        if not len(ids):
            return Lookup(self._segments, marks)
        return Lookup((*self._segments, _segment(ids, keys)), marks)._joined()

    def _joined(self) -> Lookup:
        """Join the newest segment with those before it while they are of about one size."""
        older, newest = list(self._segments[:-1]), self._segments[-1]
        parts, size = [(newest.ids, newest.keys)], len(newest.ids)
        while older and len(older[-1].ids) <= _GROWTH * size:
            parts.insert(0, _alive(older.pop(), len(older), self._gone))
            size += len(parts[0][0])
        if len(parts) == 1:
            return self
        ids = pa.concat_arrays([part[0] for part in parts])
        same = all(part[1] is part[0] for part in parts)
        keys = ids if same else pa.concat_arrays([part[1] for part in parts])
        # What is gone has left the joined segment; marks go on speaking of those before it.
        place = len(older)
        gone = {id_: min(at, place) for id_, at in self._gone.items()} if place else {}
        return Lookup((*older, _segment(ids, keys)), gone)


def _candidates(segment: _Segment, wanted: Numbers) -> tuple[pa.Array, pa.Array]:
    """Places of wanted hashes, and the rows of the segment that share them."""
    first = np.searchsorted(segment.hashes, wanted, "left")
    counts = np.searchsorted(segment.hashes, wanted, "right") - first
    places = np.repeat(np.arange(len(wanted)), counts)
    # Where several rows share a hash, they lie side by side.
    beside = np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
    return pa.array(places), pa.array(segment.order[first[places] + beside])


def _alive(segment: _Segment, number: int, gone: Mapping[str, int]) -> tuple[pa.Array, pa.Array]:
    dead = [id_ for id_, place in gone.items() if place > number]
    if not dead:
        return segment.ids, segment.keys
    kept = pc.invert(pc.is_in(segment.ids, value_set=pa.array(dead, pa.string())))
    ids = segment.ids.filter(kept)
    return ids, ids if segment.keys is segment.ids else segment.keys.filter(kept)
