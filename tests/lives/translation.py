"""Queries and writes with first names become queries with the names that a branch uses now."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

from tests.lives.blueprint import Names
from tests.lives.syntax import Bind, Delete, Insert, Update, Walk


def translate(part: Any, names: Names) -> Any:
    """`Type.name` becomes a property's name; types and edges get theirs."""
    if isinstance(part, tuple):
        return _tuple(part, names)
    if isinstance(part, Walk):
        return replace(part, edges=tuple(names.get(e, e) for e in part.edges))
    if is_dataclass(part) and not isinstance(part, type):
        changed = {f.name: translate(getattr(part, f.name), names) for f in fields(part)}
        if isinstance(part, Bind | Insert | Update | Delete):
            changed["type"] = names.get(part.type, part.type)
        return replace(part, **changed)
    return part


def _tuple(part: tuple[Any, ...], names: Names) -> tuple[Any, ...]:
    if part and part[0] == "lit":
        return part
    if part and part[0] == "prop":
        return ("prop", part[1], _property(part[2], names))
    if len(part) == 2 and isinstance(part[0], str) and "." in part[0]:
        return (_property(part[0], names), translate(part[1], names))
    return tuple(translate(item, names) for item in part)


def _property(name: str, names: Names) -> str:
    return names.get(name, name.split(".")[-1])
