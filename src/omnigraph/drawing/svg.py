"""A picture as SVG text, which notebooks and browsers show.

Guarantees: every text is escaped; nothing is loaded from elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path

_COLOURS = ("#3366cc", "#dc3912", "#109618", "#ff9900", "#990099", "#0099c6", "#dd4477", "#66aa00")
_MARGIN, _RADIUS, _LONGEST = 48, 9, 24


@dataclass(frozen=True)
class Mark:
    """A dot. `group` decides its colour; x and y are between 0 and 1."""

    x: float
    y: float
    name: str
    group: int


@dataclass(frozen=True)
class Line:
    """From one dot to another, by their places in the list."""

    start: int
    end: int
    name: str = ""


@dataclass(frozen=True)
class Drawing:
    """A picture. Notebooks show it; `save` writes it to a file."""

    marks: tuple[Mark, ...]
    lines: tuple[Line, ...]
    groups: tuple[str, ...]
    width: int = 720
    height: int = 480

    def __repr__(self) -> str:
        return f"<Drawing of {len(self.marks)} nodes and {len(self.lines)} edges>"

    def _repr_svg_(self) -> str:
        return self.to_svg()

    def save(self, path: str | Path) -> Path:
        """Write the picture to a file and return its path."""
        place = Path(path)
        place.write_text(self.to_svg(), encoding="utf-8")
        return place

    def to_svg(self) -> str:
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{self.height}" '
            f'viewBox="0 0 {self.width} {self.height}" font-family="sans-serif" font-size="11">',
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" '
            'markerHeight="7" orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="#888"/></marker>'
            "</defs>",
        ]
        parts += [self._line(line) for line in self.lines]
        parts += [self._mark(mark) for mark in self.marks]
        parts += [self._legend(number, name) for number, name in enumerate(self.groups)]
        return "".join([*parts, "</svg>"])

    def _spot(self, mark: Mark) -> tuple[float, float]:
        wide, high = self.width - 2 * _MARGIN, self.height - 2 * _MARGIN
        return _MARGIN + mark.x * wide, _MARGIN + mark.y * high

    def _line(self, line: Line) -> str:
        (x, y), (to_x, to_y) = self._spot(self.marks[line.start]), self._spot(self.marks[line.end])
        length = max(((to_x - x) ** 2 + (to_y - y) ** 2) ** 0.5, 1e-6)
        back_x, back_y = (to_x - x) / length * _RADIUS, (to_y - y) / length * _RADIUS
        drawn = (
            f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x - back_x:.1f}" y2="{to_y - back_y:.1f}" '
            f'stroke="#888" marker-end="url(#tip)"/>'
        )
        if not line.name:
            return drawn
        middle = f'x="{(x + to_x) / 2:.1f}" y="{(y + to_y) / 2 - 3:.1f}"'
        return f'{drawn}<text {middle} text-anchor="middle" fill="#888">{escape(line.name)}</text>'

    def _mark(self, mark: Mark) -> str:
        x, y = self._spot(mark)
        name = mark.name if len(mark.name) <= _LONGEST else f"{mark.name[: _LONGEST - 1]}…"
        return (
            f'<g><title>{escape(mark.name)}</title><circle cx="{x:.1f}" cy="{y:.1f}" r="{_RADIUS}" '
            f'fill="{_COLOURS[mark.group % len(_COLOURS)]}"/><text x="{x:.1f}" '
            f'y="{y + _RADIUS + 12:.1f}" text-anchor="middle" fill="currentColor">'
            f"{escape(name)}</text></g>"
        )

    def _legend(self, number: int, name: str) -> str:
        y = 16 + 16 * number
        return (
            f'<circle cx="12" cy="{y}" r="5" fill="{_COLOURS[number % len(_COLOURS)]}"/>'
            f'<text x="22" y="{y + 4}" fill="currentColor">{escape(name)}</text>'
        )
