"""Merges of two states over their base, property by property, as the guide describes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.lives.blueprint import Blueprint
from tests.lives.rules import RefusedError, check
from tests.lives.state import Row, State

ABSENT = object()


class Junction:
    """`state` is the result; `conflicts` says what clashes. With a winner clashes are decided."""

    def __init__(
        self, blueprint: Blueprint, base: State, ours: State, theirs: State, winner: str | None
    ):
        self.winner = winner
        self.conflicts: list[str] = []
        names = self._combine(base.names, ours.names, theirs.names, "SchemaConflict")
        if self.conflicts:
            self.broken = True
            return
        self.state = State({}, names)
        for type_ in blueprint.types:
            rows = [side.rows[type_.name] for side in (base, ours, theirs)]
            self.state.rows[type_.name] = self._table(*rows)
        try:
            check(blueprint, self.state)
            self.broken = False
        except RefusedError as error:
            self.conflicts.append(str(error))
            self.broken = True

    def _table(
        self, base: dict[str, Row], ours: dict[str, Row], theirs: dict[str, Row]
    ) -> dict[str, Row]:
        found = {}
        for id_ in {**ours, **theirs}:
            row = self._row(base.get(id_), ours.get(id_), theirs.get(id_), id_)
            if row is not None:
                found[id_] = row
        return found

    def _row(self, base: Row | None, ours: Row | None, theirs: Row | None, id_: str) -> Row | None:
        if ours == theirs or theirs == base:
            return ours
        if ours == base:
            return theirs
        if base is None or ours is None or theirs is None:
            self.conflicts.append(
                f"{'DivergentInsert' if base is None else 'DeleteVsUpdate'} {id_}"
            )
            return theirs if self.winner == "theirs" else ours
        return self._combine(base, ours, theirs, f"DivergentUpdate {id_}")

    def _combine(
        self, base: Mapping[str, Any], ours: Mapping[str, Any], theirs: Mapping[str, Any], what: str
    ) -> dict[str, Any]:
        found = {}
        for name in {**ours, **theirs}:
            b, o, t = (side.get(name, ABSENT) for side in (base, ours, theirs))
            value = o if o == t or t == b else t
            if b not in (o, t) and o != t:
                self.conflicts.append(what)
                value = t if self.winner == "theirs" else o
            if value is not ABSENT:
                found[name] = value
        return found
