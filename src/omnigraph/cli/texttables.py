"""Text tables that are fitted to the terminal.

Guarantees: on a terminal no line is wider than it, whatever the rows hold, and where columns would
be too narrow to be read, each row is a block of names and values; elsewhere nothing is cut; letters
that take two places count as two.
"""

from __future__ import annotations

import shutil
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from omnigraph.cli.terminal import styled

_GAP = 2
_READABLE = 8  # a column that has to be cut keeps as much


@dataclass(frozen=True)
class Layout:
    """How wide a column may become on a terminal, and what happens to text that is wider."""

    widest: int = 60
    wraps: bool = False


DEFAULT = Layout()


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], layout: Layout = DEFAULT) -> str:
    """An aligned text table, narrowed to the terminal if there is one."""
    widths = [
        max([width(name), *(width(row[place]) for row in rows)])
        for place, name in enumerate(columns)
    ]
    if sys.stdout.isatty():
        room = shutil.get_terminal_size().columns
        widths = _fitted(widths, layout.widest, room)
        if sum(widths) + _GAP * (len(widths) - 1) > room:
            return "\n".join(_blocks(columns, rows, layout, room))
    body = [["-" * each for each in widths], *rows]
    lines = [styled(line, "head", err=False) for line in _lines(columns, widths, layout)]
    lines += [line for row in body for line in _lines(row, widths, layout)]
    return "\n".join(lines)


def _blocks(
    columns: Sequence[str], rows: Sequence[Sequence[str]], layout: Layout, room: int
) -> Iterator[str]:
    """Each row as lines of a name and a value."""
    names = max(min(max(map(width, columns)), room - _GAP - _READABLE), 1)
    widths = [names, max(room - _GAP - names, 1)]
    for number, row in enumerate(rows or [[""] * len(columns)]):
        if number:
            yield ""
        for name, value in zip(columns, row, strict=True):
            for line in _lines([name, value], widths, layout):
                yield _cut(line, room)


def width(text: str) -> int:
    """How many places a text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(_places(letter) for letter in text)


def _places(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def _fitted(widths: list[int], widest: int, room: int) -> list[int]:
    """Narrow the widest columns until the table fits, or until none can be narrower."""
    fitted = [min(each, widest) for each in widths]
    room -= _GAP * (len(fitted) - 1)
    while sum(fitted) > room and max(fitted) > _READABLE:
        place = max(range(len(fitted)), key=lambda place: fitted[place])
        fitted[place] -= 1
    return fitted


def _lines(row: Sequence[str], widths: Sequence[int], layout: Layout) -> Iterator[str]:
    """A row as lines: one, or several where cells are wrapped."""
    pieces = [
        _wrapped(text, room) if layout.wraps else [_cut(text, room)]
        for text, room in zip(row, widths, strict=True)
    ]
    for number in range(max((len(each) for each in pieces), default=1)):
        cells = (
            _padded(each[number] if number < len(each) else "", room)
            for each, room in zip(pieces, widths, strict=True)
        )
        yield (" " * _GAP).join(cells).rstrip()


def _cut(text: str, room: int) -> str:
    return text if width(text) <= room else _first(text, max(room - 1, 0)) + "…"


def _wrapped(text: str, room: int) -> list[str]:
    pieces = []
    while width(text) > room:
        piece = _first(text, room) or text[0]
        pieces.append(piece)
        text = text[len(piece) :]
    return [*pieces, text]


def _first(text: str, room: int) -> str:
    """The beginning of a text that fits."""
    used = 0
    for place, letter in enumerate(text):
        used += _places(letter)
        if used > room:
            return text[:place]
    return text


def _padded(text: str, room: int) -> str:
    return text + " " * (room - width(text))
