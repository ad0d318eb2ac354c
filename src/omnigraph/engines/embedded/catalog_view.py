"""A snapshot as the engine sees it: every type with its table, and spaces of several types.

A `Space` lays the numbers of its types end to end, so that one array can hold nodes of one type or
of many; binding an interface, any edge and alternation all come down to this.

Guarantees: views are cheap and made per query; what they load is shared by table version.
Deliberately absent: predicates and expressions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.engines.embedded.arrays import Arrays
from omnigraph.engines.embedded.bounds import Bounds
from omnigraph.engines.embedded.rownumbers import Array, Numbering
from omnigraph.engines.embedded.tablecache import Resident
from omnigraph.model.catalog import DST_COLUMN, ID_COLUMN, SRC_COLUMN, EdgeType, NodeType

_PLAIN_COLUMNS = frozenset({ID_COLUMN, SRC_COLUMN, DST_COLUMN})


class TypeView:
    """A node or edge type at the version that a snapshot names."""

    def __init__(self, type_: NodeType | EdgeType, resident: Resident, bounds: Bounds) -> None:
        self.type = type_
        self.resident = resident
        self._bounds = bounds
        self._arrays: Arrays | None = None

    @property
    def name(self) -> str:
        return self.type.name

    @property
    def arrays(self) -> Arrays:
        """What is known by number. Taken once, so that a query sees one numbering throughout."""
        if self._arrays is None:
            self._arrays = self.resident.arrays(self._bounds)
        return self._arrays

    @property
    def is_numbered(self) -> bool:
        """Whether the numbering is known already."""
        if self._arrays is not None or self.resident.rows == 0:
            return True
        return self.resident.is_numbered

    @property
    def numbering(self) -> Numbering:
        return (self._arrays or self.arrays).numbering

    def physical(self, name: str) -> tuple[str, Any] | None:
        """The column and Arrow type of a property; None if the type has no such property."""
        if name in _PLAIN_COLUMNS:
            return name, pa.string()
        found = self.type.get(name)
        return None if found is None else (found.column, found.type.to_arrow())

    def column(self, name: str) -> pa.Array | None:
        """A property of all rows, by number; None if it is too large to be kept."""
        physical = self.physical(name)
        if physical is None or not self.resident.has(physical[0]):
            return pa.nulls(self.numbering.size, physical[1] if physical else pa.null())
        if not self.arrays.fits(physical[0]):
            return None
        return _typed(self.arrays.column(physical[0]), physical[1])

    def values(self, name: str, numbers: Array) -> pa.Array:
        """A property of some rows."""
        physical = self.physical(name)
        if physical is None or not self.resident.has(physical[0]):
            return pa.nulls(len(numbers), physical[1] if physical else pa.null())
        return _typed(self.arrays.values(physical[0], numbers), physical[1])

    def find(self, ids: Sequence[str]) -> Array:
        return self.arrays.find(ids)


@dataclass(frozen=True, eq=False)
class Space:
    """The numbers of several types, laid end to end; `bases` says where each begins."""

    views: tuple[TypeView, ...]
    bases: tuple[int, ...]
    size: int

    @staticmethod
    def over(views: Iterable[TypeView]) -> Space:
        found = tuple(views)
        bases: list[int] = []
        size = 0
        for view in found:
            bases.append(size)
            size += view.numbering.size
        return Space(found, tuple(bases), size)

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(view.name for view in self.views)

    @property
    def is_single(self) -> bool:
        return len(self.views) == 1

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.int32 if self.size < 2**31 else np.int64)

    def base(self, type_name: str) -> int | None:
        for view, base in zip(self.views, self.bases, strict=True):
            if view.name == type_name:
                return base
        return None

    def places(self, numbers: Array) -> Array:
        """For each number the index of its type; -1 for `NOBODY`."""
        if self.is_single:
            return np.where(numbers < 0, -1, 0)
        return np.where(
            numbers < 0, -1, np.searchsorted(np.array(self.bases), numbers, side="right") - 1
        )

    def everything(self) -> Array:
        """All rows of all types."""
        if self.is_single:
            return self.views[0].numbering.everything()
        parts = [
            view.numbering.everything().astype(self.dtype) + base
            for view, base in zip(self.views, self.bases, strict=True)
        ]
        return np.concatenate(parts) if parts else np.empty(0, np.int32)

    def moved(self, numbers: Array, other: Space) -> Array:
        """The same nodes as numbers of another space; `NOBODY` where it lacks their type."""
        if self.types == other.types:
            return numbers
        shifts = np.array(
            [
                _shift(base, other.base(v.name))
                for v, base in zip(self.views, self.bases, strict=True)
            ]
            + [_LOST],
            np.int64,
        )
        shift = shifts[self.places(numbers)]
        found: Array = np.where(shift == _LOST, -1, numbers + shift)
        return found.astype(other.dtype)


_LOST = np.iinfo(np.int64).min


def _shift(base: int, target: int | None) -> int:
    return int(_LOST) if target is None else target - base


def _typed(values: pa.Array, wanted: Any) -> pa.Array:
    """Old files may hold a narrower type than the property has by now."""
    return values if values.type == wanted else values.cast(wanted)
