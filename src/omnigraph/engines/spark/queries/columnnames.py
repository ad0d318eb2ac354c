"""Which column of a DataFrame holds what.

A node or edge is its id, its type where there may be several, and those of its properties that the
plan looks at later. Columns have made-up names, so that joins never confuse them.

Guarantees: plain values, which travel to tasks.
Deliberately absent: DataFrames.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from omnigraph.ir.expr import Score, TextMatch
from omnigraph.model.types import ValueType

# A property by name; with a type, only as that type means it (see `expressions.shapes`).
Field: TypeAlias = tuple[str, str | None]


@dataclass(frozen=True, slots=True)
class Held:
    """A column and the type of its values."""

    column: str
    type: ValueType


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound node or edge. `type_column` None: it has the one type of `types`."""

    types: tuple[str, ...]
    id_column: str
    type_column: str | None = None
    properties: Mapping[Field, Held] = field(default_factory=dict)

    @property
    def identity(self) -> tuple[str, ...]:
        """The columns that tell one from another."""
        return (self.id_column,) if self.type_column is None else (self.type_column, self.id_column)

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.identity, *(held.column for held in self.properties.values()))

    def renamed(self, names: Mapping[str, str]) -> Bound:
        held = {key: Held(names[h.column], h.type) for key, h in self.properties.items()}
        kind = None if self.type_column is None else names[self.type_column]
        return Bound(self.types, names[self.id_column], kind, held)


@dataclass(frozen=True, slots=True)
class Layout:
    """Names of a plan by column. `weight`: how many plain rows a row stands for."""

    entities: Mapping[str, Bound] = field(default_factory=dict)
    values: Mapping[str, Held] = field(default_factory=dict)
    scores: tuple[tuple[Score, str], ...] = ()
    matches: tuple[tuple[TextMatch, str], ...] = ()
    weight: str | None = None

    def columns(self) -> Iterator[str]:
        for bound in self.entities.values():
            yield from bound.columns
        for held in self.values.values():
            yield held.column
        for _, column in (*self.scores, *self.matches):
            yield column
        if self.weight is not None:
            yield self.weight

    def identity(self, name: str) -> tuple[str, ...]:
        """The columns by which rows with equal values of a name can be found."""
        if name in self.entities:
            return self.entities[name].identity
        return (self.values[name].column,)

    def score(self, wanted: Score) -> str | None:
        return next((column for score, column in self.scores if score == wanted), None)

    def match(self, wanted: TextMatch) -> str | None:
        return next((column for held, column in self.matches if held == wanted), None)

    def bind(self, name: str, bound: Bound) -> Layout:
        return replace(self, entities={**self.entities, name: bound})

    def bind_value(self, name: str, held: Held) -> Layout:
        return replace(self, values={**self.values, name: held})

    def beside(self, other: Layout) -> Layout:
        """Both, without weights; names of `other` win."""
        return Layout(
            {**self.entities, **other.entities},
            {**self.values, **other.values},
            (*self.scores, *other.scores),
            (*self.matches, *other.matches),
        )
