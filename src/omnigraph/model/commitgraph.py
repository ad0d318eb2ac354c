"""The graph of the newest commits, as text and as a picture.

    for commit in graph.commit_graph(20): ...

Guarantees: newest first; a commit stands in the column of its branch, and a line leads to each
parent that is shown.
Deliberately absent: reading them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape

from omnigraph.model.commit import Commit

_ROW, _LANE, _DOT = 24, 18, 5
_COLOURS = ("#3366cc", "#dc3912", "#109618", "#ff9900", "#990099", "#0099c6", "#dd4477")


@dataclass(frozen=True)
class CommitGraph:
    """Commits, newest first, and the branches whose heads they are."""

    commits: tuple[Commit, ...]
    heads: Mapping[str, str]  # branch -> commit id

    def __iter__(self) -> Iterator[Commit]:
        return iter(self.commits)

    def __len__(self) -> int:
        return len(self.commits)

    def __str__(self) -> str:
        lanes = self._lanes()
        lines = []
        for commit in self.commits:
            marks = ["·"] * len(lanes)
            marks[lanes[commit.branch]] = "●"
            names = self._names(commit)
            told = f"  ({', '.join(names)})" if names else ""
            lines.append(f"{' '.join(marks)}  {commit.id}  {_told(commit)}{told}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        lanes = self._lanes()
        places = {commit.id: row for row, commit in enumerate(self.commits)}
        columns = {commit.id: lanes[commit.branch] for commit in self.commits}
        left = _LANE * len(lanes) + 12
        parts = [
            _line(columns[commit.id], row, columns[parent], places[parent])
            for row, commit in enumerate(self.commits)
            for parent in commit.parents
            if parent in places
        ]
        for row, commit in enumerate(self.commits):
            x, y = _x(columns[commit.id]), _y(row)
            colour = _colour(columns[commit.id])
            parts.append(f'<circle cx="{x}" cy="{y}" r="{_DOT}" fill="{colour}"/>')
            parts.append(self._label(commit, left, y))
        height = _ROW * max(len(self.commits), 1) + 4
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="900" height="{height}" '
            f'font-family="monospace" font-size="12" fill="currentColor">{"".join(parts)}</svg>'
        )

    def _label(self, commit: Commit, left: int, y: int) -> str:
        names = "".join(f" [{name}]" for name in self._names(commit))
        text = f"{commit.id[-8:].lower()}{names} {_told(commit)}"
        return f'<text x="{left}" y="{y + 4}">{escape(text)}</text>'

    def _lanes(self) -> dict[str, int]:
        """A column for each branch, main first and then by age."""
        names = dict.fromkeys(commit.branch for commit in reversed(self.commits))
        ordered = sorted(names, key=lambda name: name != "main")
        return {name: lane for lane, name in enumerate(ordered)}

    def _names(self, commit: Commit) -> list[str]:
        return [name for name, head in self.heads.items() if head == commit.id]


def _told(commit: Commit) -> str:
    when = datetime.fromtimestamp(commit.created_at_us / 1_000_000, UTC)
    message = f" {commit.message}" if commit.message else ""
    return f"{when:%Y-%m-%d %H:%M} {commit.actor} {commit.kind}{message}"


def _x(lane: int) -> int:
    return _LANE * lane + 10


def _y(row: int) -> int:
    return _ROW * row + 14


def _colour(lane: int) -> str:
    return _COLOURS[lane % len(_COLOURS)]


def _line(lane: int, row: int, to_lane: int, to_row: int) -> str:
    """Down the younger commit's lane, then over to the older one."""
    x, y, to_x, to_y = _x(lane), _y(row), _x(to_lane), _y(to_row)
    bend = to_y - _ROW // 2
    path = f"M{x} {y} L{x} {max(bend, y)} L{to_x} {to_y}"
    return f'<path d="{path}" fill="none" stroke="{_colour(max(lane, to_lane))}"/>'
