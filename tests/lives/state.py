"""A graph as plain dicts: rows by type and id, edges with `src` and `dst` among their values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.lives.blueprint import Blueprint, Names

Row = dict[str, Any]


class Ref(NamedTuple):
    """A node or an edge, by the first name of its type."""

    type: str
    id: str


@dataclass
class State:
    """What one commit shows. Rows are never changed in place, so copies may share them."""

    rows: dict[str, dict[str, Row]]
    names: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def empty(blueprint: Blueprint) -> State:
        return State({t.name: {} for t in blueprint.types})

    def copy(self) -> State:
        return State({name: dict(rows) for name, rows in self.rows.items()}, dict(self.names))

    def row(self, ref: Ref) -> Row:
        return self.rows[ref.type][ref.id]

    def edges(self, blueprint: Blueprint, type_: str) -> Iterator[tuple[Ref, Ref, Ref]]:
        """Each edge of a type with both its ends."""
        edge = blueprint.edge(type_)
        for id_, row in self.rows[type_].items():
            yield Ref(type_, id_), Ref(edge.src, row["src"]), Ref(edge.dst, row["dst"])


class Dictionary:
    """From the names of now to first names."""

    def __init__(self, blueprint: Blueprint, names: Names) -> None:
        self.types = {}
        self.props: dict[str, dict[str, str]] = {}
        for type_ in blueprint.types:
            self.types[names.get(type_.name, type_.name)] = type_.name
            self.props[type_.name] = {
                names.get(f"{type_.name}.{p.name}", p.name): p.name for p in type_.props
            }

    def prop(self, type_: str, now: str) -> str:
        return self.props[type_][now]
