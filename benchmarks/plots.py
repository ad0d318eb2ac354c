"""Plots as SVG text: bars on a logarithmic scale, a group per measure, a colour per subject.

Guarantees: equal figures give equal text, so that a page can be checked against its records;
readable on a light and on a dark page.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

from benchmarks.measure import number

_COLOURS = ("#1f6feb", "#bf8700", "#8250df", "#2da44e", "#cf222e", "#57606a")
_LEFT, _WIDTH, _RIGHT = 330, 400, 90
_BAR, _GAP, _TOP = 13, 12, 46
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#57606a}"
    "@media(prefers-color-scheme:dark){text{fill:#9ea7b3}}"
)

Group = tuple[str, Mapping[str, float]]


def bars(title: str, unit: str, groups: Sequence[Group]) -> str:
    """A bar for each subject of each group; shorter is less, whatever that means."""
    subjects = list(dict.fromkeys(s for _, values in groups for s in values))
    scale = _Scale([v for _, values in groups for v in values.values() if v > 0])
    parts: list[str] = []
    y = _TOP + 18
    for label, values in groups:
        middle = y + len(values) * _BAR / 2 + 4
        parts.append(_text(_LEFT - 8, middle, label, "end"))
        for subject, value in values.items():
            colour = _COLOURS[subjects.index(subject) % len(_COLOURS)]
            length = scale.length(value)
            parts.append(
                f'<rect x="{_LEFT}" y="{y}" width="{length:.1f}" height="{_BAR - 2}"'
                f' fill="{colour}"/>'
            )
            parts.append(_text(_LEFT + length + 5, y + _BAR - 3, number(value), "start"))
            y += _BAR
        y += _GAP
    head = [_text(8, 18, f"{title}, {unit} (logarithmic)", "start"), *_legend(subjects)]
    width = _LEFT + _WIDTH + _RIGHT
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y}"'
        f' viewBox="0 0 {width} {y}" role="img" aria-label="{escape(title)}">'
        f"<style>{_STYLE}</style>{''.join(head)}{''.join(parts)}</svg>\n"
    )


class _Scale:
    """From a little below the least value to the greatest, by powers."""

    def __init__(self, values: Sequence[float]) -> None:
        self.low = math.log10(min(values, default=1.0)) - 0.3
        self.high = max(math.log10(max(values, default=1.0)), self.low + 0.1)

    def length(self, value: float) -> float:
        if value <= 0:
            return 0.0
        return _WIDTH * (math.log10(value) - self.low) / (self.high - self.low)


def _legend(subjects: Sequence[str]) -> list[str]:
    found = []
    x = _LEFT
    for place, subject in enumerate(subjects):
        colour = _COLOURS[place % len(_COLOURS)]
        found.append(f'<rect x="{x}" y="28" width="10" height="10" fill="{colour}"/>')
        found.append(_text(x + 14, 37, subject, "start"))
        x += 30 + 7 * len(subject)
    return found


def _text(x: float, y: float, words: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'
