"""Frames: the rows of a plan as numbers of nodes and edges, values, and a weight.

Guarantees: immutable; all columns have the same length; selecting rows never fetches a property.
Deliberately absent: properties. They are fetched by number when an expression asks for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from omnigraph.engines.embedded.catalog_view import Space
from omnigraph.engines.embedded.rownumbers import NOBODY, Array
from omnigraph.ir.expr import Score


@dataclass(frozen=True, slots=True)
class Entities:
    """A bound node or edge per row, as a number of its space; `NOBODY` where there is none.

    `whole`: the numbers are all places of the space in order, holes included.
    """

    space: Space
    numbers: Array
    whole: bool = False

    def take(self, rows: Array) -> Entities:
        return Entities(self.space, self.numbers.take(rows))


@dataclass(frozen=True)
class Frame:
    """`rows` rows. Names are either entities or values."""

    rows: int
    entities: Mapping[str, Entities] = field(default_factory=dict)
    values: Mapping[str, pa.Array] = field(default_factory=dict)
    scores: tuple[tuple[Score, pa.Array], ...] = ()
    weight: Array | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.entities, *self.values)

    @property
    def nbytes(self) -> int:
        held = sum(int(e.numbers.nbytes) for e in self.entities.values())
        held += sum(int(v.nbytes) for v in self.values.values())
        return held + (0 if self.weight is None else int(self.weight.nbytes))

    def take(self, rows: Array) -> Frame:
        """These rows, in this order."""
        indices = pa.array(rows)
        return Frame(
            len(rows),
            {name: e.take(rows) for name, e in self.entities.items()},
            {name: v.take(indices) for name, v in self.values.items()},
            tuple((score, v.take(indices)) for score, v in self.scores),
            None if self.weight is None else self.weight.take(rows),
        )

    def where(self, mask: Array) -> Frame:
        """The rows whose mark is set."""
        if bool(mask.all()):
            return self
        return self.take(np.flatnonzero(mask))

    def cut(self, first: int, count: int) -> Frame:
        """Neighbouring rows, without copying."""
        last = min(self.rows, first + count)
        first = min(first, self.rows)
        if first == 0 and last == self.rows:
            return self
        return Frame(
            last - first,
            {n: Entities(e.space, e.numbers[first:last]) for n, e in self.entities.items()},
            {n: v.slice(first, last - first) for n, v in self.values.items()},
            tuple((score, v.slice(first, last - first)) for score, v in self.scores),
            None if self.weight is None else self.weight[first:last],
        )

    def bind(self, name: str, entities: Entities) -> Frame:
        return replace(self, entities={**self.entities, name: entities})

    def bind_value(self, name: str, values: pa.Array) -> Frame:
        return replace(self, values={**self.values, name: values})

    def weighted(self, factor: Array) -> Frame:
        """Rows times this many; rows with none go."""
        weight = factor.astype(np.int64) if self.weight is None else self.weight * factor
        kept = weight > 0
        return replace(self, weight=weight).where(kept)

    def only(self, names: Iterable[str]) -> Frame:
        wanted = frozenset(names)
        return replace(
            self,
            entities={n: e for n, e in self.entities.items() if n in wanted},
            values={n: v for n, v in self.values.items() if n in wanted},
        )

    def beside(self, other: Frame) -> Frame:
        """Two frames of equal length as one; names of `other` win."""
        weight = self.weight if other.weight is None else other.weight
        if self.weight is not None and other.weight is not None:
            weight = self.weight * other.weight
        return Frame(
            self.rows,
            {**self.entities, **other.entities},
            {**self.values, **other.values},
            (*self.scores, *other.scores),
            weight,
        )

    def score(self, wanted: Score) -> pa.Array | None:
        return next((values for score, values in self.scores if score == wanted), None)


def stack(frames: list[Frame]) -> Frame:
    """Frames of equal names and spaces, one below the other."""
    first = frames[0]
    if len(frames) == 1:
        return first
    weights = [f.weight for f in frames]
    weighted = any(w is not None for w in weights)
    return Frame(
        sum(f.rows for f in frames),
        {
            name: Entities(e.space, np.concatenate([f.entities[name].numbers for f in frames]))
            for name, e in first.entities.items()
        },
        {name: concat([f.values[name] for f in frames]) for name in first.values},
        tuple(
            (score, concat([f.scores[place][1] for f in frames]))
            for place, (score, _) in enumerate(first.scores)
        ),
        np.concatenate([_weight(f) for f in frames]) if weighted else None,
    )


def concat(arrays: list[pa.Array]) -> pa.Array:
    return pa.concat_arrays(arrays)


def _weight(frame: Frame) -> Array:
    return np.ones(frame.rows, np.int64) if frame.weight is None else frame.weight


def nobody(rows: int, space: Space) -> Entities:
    return Entities(space, np.full(rows, NOBODY, space.dtype))


UNIT = Frame(1)
