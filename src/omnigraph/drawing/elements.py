"""Which dots and lines a result stands for.

A column that holds nodes gives a dot for each node. Lines lead from each such column to the next
in the same row, unless `edges` says which columns are joined; it may name any columns, so that
ids and names can be drawn, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Protocol, runtime_checkable

from omnigraph.arguments import checked
from omnigraph.drawing.layout import place
from omnigraph.drawing.svg import Drawing, Line, Mark
from omnigraph.errors import InvalidArgumentError, LimitExceededError

MOST_NODES = 400
# The default label of a node: the first of these properties that it has.
_NAMES = ("name", "title", "label", "slug", "id")


@runtime_checkable
class Rows(Protocol):
    """A result, as far as drawing it needs."""

    @property
    def columns(self) -> tuple[str, ...]: ...
    def rows(self) -> list[dict[str, Any]]: ...


@checked
def draw(
    result: Rows | Iterable[Mapping[str, Any]],
    edges: Sequence[tuple[str, str] | tuple[str, str, str]] | None = None,
    *,
    label: str | None = None,
    width: int = 720,
    height: int = 480,
) -> Drawing:
    """A picture of a result. `edges` are pairs of columns, each with an optional label; `label` is
    the property that labels the nodes."""
    rows = result.rows() if hasattr(result, "rows") else [dict(row) for row in result]
    joined = [(*edge, "")[:3] for edge in edges] if edges is not None else _chain(rows)
    found = _Elements(label)
    for row in rows:
        found.add(row, joined)
    if len(found.names) > MOST_NODES:
        raise LimitExceededError(
            f"A picture of {len(found.names)} nodes would be unreadable.",
            resource="nodes drawn",
            limit=float(MOST_NODES),
            actual=float(len(found.names)),
            hint="Add a limit to the query.",
        )
    return found.picture(width, height)


def _chain(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """Each column of nodes joined with the next."""
    columns = [name for name in (rows[0] if rows else {}) if _holds_nodes(rows, name)]
    if rows and not columns:
        raise InvalidArgumentError(
            "No column of this result holds nodes.",
            hint="Return nodes, as `return { $p, $f }`, or name columns: edges=[('a', 'b')].",
        )
    return [(one, other, "") for one, other in pairwise(columns)] or [
        (name, name, "") for name in columns
    ]


def _holds_nodes(rows: Sequence[Mapping[str, Any]], name: str) -> bool:
    first = next((row[name] for row in rows if row[name] is not None), None)
    return isinstance(first, dict) and "id" in first


class _Elements:
    """Dots by what they stand for, and the lines between them, each once."""

    def __init__(self, label: str | None) -> None:
        self._label = label
        self.names: dict[tuple[str, str], str] = {}
        self.groups: dict[tuple[str, str], str] = {}
        self._lines: dict[tuple[int, int, str], None] = {}
        self._numbers: dict[tuple[str, str], int] = {}
        self._kinds: dict[str, str] = {}

    def add(self, row: Mapping[str, Any], joined: Sequence[tuple[str, ...]]) -> None:
        for one, other, name in joined:
            ends = [self._dot(row, column) for column in (one, other)]
            if one != other and ends[0] is not None and ends[1] is not None:
                self._lines[ends[0], ends[1], name] = None

    def _dot(self, row: Mapping[str, Any], column: str) -> int | None:
        if column not in row:
            raise InvalidArgumentError(
                f"The result has no column {column!r}.", hint=f"It has: {', '.join(row)}."
            )
        value = row[column]
        if value is None:
            return None
        kind = _kind_of(value)
        key = (kind, str(value["id"] if isinstance(value, dict) else value))
        if key not in self._numbers:
            self._numbers[key] = len(self._numbers)
            self.names[key] = self._name(value)
            self.groups[key] = self._kinds.setdefault(kind, str(_type_of(value) or column))
        return self._numbers[key]

    def _name(self, value: Any) -> str:
        if not isinstance(value, dict):
            return str(value)
        for name in (self._label, *_NAMES):
            if name and value.get(name) is not None:
                return str(value[name])
        return ""

    def picture(self, width: int, height: int) -> Drawing:
        groups = list(dict.fromkeys(self.groups.values()))
        spots = place(len(self.names), [(a, b) for a, b, _ in self._lines])
        marks = [
            Mark(float(x), float(y), name, groups.index(group))
            for (x, y), name, group in zip(
                spots, self.names.values(), self.groups.values(), strict=True
            )
        ]
        lines = [Line(a, b, name) for a, b, name in self._lines]
        return Drawing(tuple(marks), tuple(lines), tuple(groups), width, height)


def _type_of(value: Any) -> Any:
    return value.get("__type") if isinstance(value, dict) else None


def _kind_of(value: Any) -> str:
    """Nodes of one type have the same properties, so that a node in two columns is one dot."""
    if not isinstance(value, dict):
        return ""
    return str(_type_of(value) or " ".join(sorted(value)))
