"""Which indexes a table should have.

What it does: an index is chosen by the type of its property; ids, ends of edges and keys are
indexed without being asked.
A function of the type only, so the code that builds indexes and the code that finds missing ones
agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from omnigraph.model.catalog import (
    DST_COLUMN,
    ID_COLUMN,
    SRC_COLUMN,
    EdgeType,
    NodeType,
    Property,
)
from omnigraph.model.types import ORDERABLE_KINDS, Kind, ValueType


class IndexKind(StrEnum):
    BTREE = "btree"  # equality, ranges, prefixes
    FTS = "fts"  # words in text
    VECTOR = "vector"  # nearest neighbours


@dataclass(frozen=True, slots=True)
class IndexSpec:
    """One index that a table should have, on a physical column."""

    column: str
    kind: IndexKind


def index_kinds(type_: ValueType) -> tuple[IndexKind, ...]:
    """What `@index` means for a type. Free text gets two: words, and the text as a whole."""
    if type_.kind is Kind.VECTOR:
        return (IndexKind.VECTOR,)
    if type_.kind is Kind.STRING and not type_.enum:
        return (IndexKind.FTS, IndexKind.BTREE)
    return (IndexKind.BTREE,) if type_.kind in ORDERABLE_KINDS else ()


def index_kind(prop: Property) -> IndexKind | None:
    """The main index of a property, or nothing for lists and blobs."""
    return next(iter(index_kinds(prop.type)), None)


def indexes_of(table: NodeType | EdgeType) -> tuple[IndexSpec, ...]:
    """All indexes that a table should have, each once, in a stable order."""
    return tuple(dict.fromkeys(_wanted(table)))


def _wanted(table: NodeType | EdgeType) -> Iterator[IndexSpec]:
    yield IndexSpec(ID_COLUMN, IndexKind.BTREE)
    if isinstance(table, EdgeType):
        yield IndexSpec(SRC_COLUMN, IndexKind.BTREE)
        yield IndexSpec(DST_COLUMN, IndexKind.BTREE)
    else:
        yield from _declared(table, table.key)
    for group in table.indexes:
        yield from _declared(table, group)
    # Uniqueness is checked by looking values up, so it wants the same as equality.
    for group in table.uniques:
        for prop in _members(table, group):
            yield IndexSpec(prop.column, IndexKind.BTREE)


def _declared(table: NodeType | EdgeType, names: Iterable[str]) -> Iterator[IndexSpec]:
    for prop in _members(table, names):
        for kind in index_kinds(prop.type):
            yield IndexSpec(prop.column, kind)


def _members(table: NodeType | EdgeType, names: Iterable[str]) -> Iterator[Property]:
    for name in names:
        prop = table.get(name)
        if prop is not None:  # the ends of an edge are no properties
            yield prop
