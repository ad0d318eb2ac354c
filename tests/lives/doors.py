"""Input that every door must refuse: invalid bytes, values outside of their range, broken messages.

An offer is one call; it must raise an error of `omnigraph.errors` and leave the branch as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from random import Random
from typing import Any

import pyarrow as pa
from tests.lives.blueprint import INTEGERS, Blueprint, Names, Node, Prop, spelled
from tests.lives.edits import Edits
from tests.lives.values import to_json

import omnigraph

Offer = tuple[str, Callable[[omnigraph.Graph], Any]]
LONE = "caf\udce9"


class Doors:
    def __init__(self, random: Random, blueprint: Blueprint, names: Names) -> None:
        self.random, self.blueprint, self.names = random, blueprint, names
        self.node = random.choice(blueprint.nodes)

    def offer(self) -> Offer:
        """One call with its description."""
        makers = [self._bytes, self._duplicate_member, self._surrogate_in_row]
        makers += [self._surrogate_in_message, self._surrogate_in_tag]
        if self._prop(("String", "text")):
            makers.append(self._arrow_bytes)
        if self._prop(("Date", "DateTime")):
            makers += [self._written_date, self._arrow_date]
        if self._prop(tuple(INTEGERS)):
            makers += [self._integer, self._integer]
        if self._prop(("vector",)):
            makers.append(self._vector)
        return self.random.choice(makers)()

    def _prop(self, kinds: tuple[str, ...]) -> Prop | None:
        fits = [p for p in self.node.props if p.kind in kinds and not p.many]
        return fits[0] if fits else None

    def _row(self) -> dict[str, Any]:
        """A row that would be right, by the names of now."""
        record = Edits(self.random, self.blueprint).record(self.node)
        row = {spelled(self.names, self.node.name, n): to_json(v) for n, v in record[2].items()}
        return row if self.node.key else {"id": "fresh", **row}

    def _type(self) -> str:
        return spelled(self.names, self.node.name)

    def _name(self, prop: Prop) -> str:
        return spelled(self.names, self.node.name, prop.name)

    def _with(self, prop: Prop, value: Any, what: str) -> Offer:
        row = {**self._row(), self._name(prop): value}
        return (f"{what}: {row!r}", lambda g: g.ingest([row], "merge", type=self._type()))

    def _bytes(self) -> Offer:
        line = b'{"type": "%s", "data": {"name": "caf\xe9"}}\n' % self._type().encode()
        return (f"ingest {line!r}", lambda g: g.ingest(line, "merge"))

    def _duplicate_member(self) -> Offer:
        line = b'{"type": "%s", "data": {}, "data": {}}\n' % self._type().encode()
        return (f"ingest {line!r}", lambda g: g.ingest(line, "merge"))

    def _surrogate_in_row(self) -> Offer:
        prop = self._prop(("String", "text"))
        if prop is None:
            return self._bytes()
        return self._with(prop, LONE, "a lone surrogate")

    def _surrogate_in_message(self) -> Offer:
        row = self._row()
        return ("a message", lambda g: g.ingest([row], "merge", type=self._type(), message=LONE))

    def _surrogate_in_tag(self) -> Offer:
        return ("a tag's message", lambda g: g.create_tag("odd", message=LONE))

    def _arrow_bytes(self) -> Offer:
        prop = self._prop(("String", "text"))
        assert prop is not None
        offsets = pa.array([0, 4], pa.int32()).buffers()[1]
        broken = pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(b"caf\xe9")])
        table = self._table(self._name(prop), broken)
        return ("invalid bytes in Arrow", lambda g: g.ingest(table, "merge", type=self._type()))

    def _table(self, name: str, column: Any) -> pa.Table:
        row = self._row()
        if self._date_names() & set(row) - {name}:
            row = {n: v for n, v in row.items() if n not in self._date_names()}
        columns = {n: _column(v) for n, v in row.items() if v is not None and n != name}
        return pa.table({**columns, name: column})

    def _date_names(self) -> set[str]:
        kinds = ("Date", "DateTime")
        props = (p for p in self.node.props if p.kind in kinds and p.name != self.node.key)
        return {self._name(p) for p in props}

    def _arrow_date(self) -> Offer:
        prop = self._prop(("Date", "DateTime"))
        assert prop is not None
        if prop.kind == "Date":
            days = self.random.choice((-719163, 2932897, 2**31 - 1, -(2**31)))
            column = pa.array([days], pa.int32()).cast(pa.date32())
        else:
            end = int(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()) * 1000 + 999
            moment = self.random.choice((end + 1, 2**62, -(2**62), -62135596800001))
            column = pa.array([moment], pa.int64()).cast(pa.timestamp("ms", "UTC"))
        table = self._table(self._name(prop), column)
        return (
            f"{prop.kind} {column} in Arrow",
            lambda g: g.ingest(table, "merge", type=self._type()),
        )

    def _written_date(self) -> Offer:
        prop = self._prop(("Date", "DateTime"))
        assert prop is not None
        wrong = ("10000-01-01", "2023-02-29", "0000-12-31", "")
        return self._with(prop, self.random.choice(wrong), "a date")

    def _integer(self) -> Offer:
        prop = self._prop(tuple(INTEGERS))
        assert prop is not None
        low, high = INTEGERS[prop.kind]
        return self._with(
            prop, self.random.choice((low - 1, high + 1, 2**70, "3", 3.5, True)), "an integer"
        )

    def _vector(self) -> Offer:
        prop = self._prop(("vector",))
        assert prop is not None
        return self._with(
            prop, self.random.choice(([1.0], [1.0] * 4, [1.0, None, 2.0])), "a vector"
        )


def _column(value: Any) -> pa.Array:
    beyond = type(value) is int and value >= 2**63
    return pa.array([value], pa.uint64() if beyond else None)


__all__ = ["Doors", "Node"]
