"""Delimited text, cut into stretches of whole records.

A record ends with a line end outside of quotes. Arrow's own reader finds record ends too, but it
takes a quote that is never closed for a field that reaches to the end of the file, glues text after
a closing quote to the field, and refuses fields that are larger than its blocks.

Guarantees: every record is in exactly one stretch; a quote that is not closed, and text after a
closing quote, are refused with the line of the quote; a quote inside a field that does not begin
with one is an ordinary character. Memory is bounded by a block or by the largest record.
Deliberately absent: cells and their values (`delimited`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from omnigraph.errors import InvalidDataError, Violation
from omnigraph.rows.findings import Numbers

CSV = "csv"
# A record may be this large. Beyond it, a quote that is not closed is much more likely.
MOST_RECORD_BYTES = 256 << 20
_QUOTE, _NEWLINE, _RETURN = b'"\n\r'
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Stretch:
    """Whole records: their bytes, where and on which line each of them begins (blank lines are no
    records), and the size of the largest."""

    data: bytes
    starts: Numbers
    lines: Numbers
    longest: int

    def first(self) -> bytes:
        """The first record."""
        end = self.starts[1] if len(self.starts) > 1 else len(self.data)
        return self.data[self.starts[0] : end].rstrip(b"\r\n")

    def without_first(self) -> Stretch | None:
        if len(self.starts) < 2:
            return None
        at = int(self.starts[1])
        return Stretch(self.data[at:], self.starts[1:] - at, self.lines[1:], self.longest)


def whole_records(
    blocks: Iterable[bytes],
    delimiter: str,
    file: str | None = None,
    most_bytes: int = MOST_RECORD_BYTES,
) -> Iterator[Stretch]:
    """Cut text that comes in blocks of any size."""
    cutter = _Cutter(delimiter, file, most_bytes)
    for block in blocks:
        if block:
            yield from cutter.take(block)
    yield from cutter.rest()


class _Cutter:
    def __init__(self, delimiter: str, file: str | None, most_bytes: int) -> None:
        self._delimiter = ord(delimiter)
        self._file = file
        self._most_bytes = most_bytes
        self._held = b""
        self._line = 1
        self._is_first = True

    def take(self, block: bytes) -> Iterator[Stretch]:
        self._held += block
        if self._is_first and len(self._held) >= len(_BYTE_ORDER_MARK):
            self._held = self._held.removeprefix(_BYTE_ORDER_MARK)
            self._is_first = False
        yield from self._cut(final=False)
        if len(self._held) > self._most_bytes:
            raise self._refused(0, f"the record has more than {self._most_bytes:,} bytes", _CLOSE)

    def rest(self) -> Iterator[Stretch]:
        if self._held:
            yield from self._cut(final=True)

    def _cut(self, *, final: bool) -> Iterator[Stretch]:
        content = np.frombuffer(self._held, np.uint8)
        line_ends = _line_ends(content, final)
        ends = self._record_ends(content, line_ends, final)
        if final and (not len(ends) or ends[-1] != len(content)):
            ends = np.append(ends, len(content))
        if not len(ends):
            return
        starts = np.concatenate([[0], ends[:-1]])
        lines = self._line + np.searchsorted(line_ends, starts, side="right")
        blank = (content[starts] == _NEWLINE) | (content[starts] == _RETURN)
        data, self._held = self._held[: ends[-1]], self._held[ends[-1] :]
        self._line += int(np.searchsorted(line_ends, ends[-1], side="right"))
        if not blank.all():
            yield Stretch(data, starts[~blank], lines[~blank], int((ends - starts).max()))

    def _record_ends(self, content: Numbers, line_ends: Numbers, final: bool) -> Numbers:
        """The places after which records begin."""
        quotes = np.flatnonzero(content == _QUOTE)
        if not len(quotes):
            return line_ends
        if not self._is_strict(content, quotes) or (final and len(quotes) % 2):
            return self._step_through(final)
        # Every quote opens or closes: a line end after an even number of them ends a record.
        outside: Numbers = np.searchsorted(quotes, line_ends) % 2 == 0
        return np.compress(outside, line_ends)

    def _is_strict(self, content: Numbers, quotes: Numbers) -> bool:
        """Whether each first quote begins a field and each second one ends it; two quotes in a row
        within a field do both."""
        edges = np.array([self._delimiter, _NEWLINE, _RETURN, _QUOTE], np.uint8)
        openers, closers = quotes[0::2], quotes[1::2]
        before = content[openers[openers > 0] - 1]
        after = content[closers[closers < len(content) - 1] + 1]
        return bool(np.isin(before, edges).all() and np.isin(after, edges).all())

    def _step_through(self, final: bool) -> Numbers:
        """The same, field by field: slow and exact."""
        data, at = self._held, 0
        field_end = re.compile(b"[" + re.escape(bytes([self._delimiter])) + rb"\r\n]")
        ends: list[int] = []
        while at < len(data):
            if data[at] == _QUOTE:
                closed = self._closing_quote(at, final)
                if closed is None:
                    break
                end = closed + 1
            else:
                found = field_end.search(data, at)
                end = len(data) if found is None else found.start()
            at = end + 1
            if end < len(data) and data[end] != self._delimiter:
                if data[end] == _RETURN and data[end + 1 : end + 2] == b"\n":
                    at += 1
                elif data[end] == _RETURN and at == len(data) and not final:
                    break  # a line feed may follow
                ends.append(at)
        return np.array(ends, np.int64)

    def _closing_quote(self, opened: int, final: bool) -> int | None:
        """Where a quoted field ends; None if that is not in the bytes that are known."""
        data, at = self._held, opened + 1
        while True:
            at = data.find(b'"', at)
            if at < 0:
                if final:
                    raise self._refused(opened, "a quote is opened and never closed", _CLOSE)
                return None
            if data[at + 1 : at + 2] == b'"':
                at += 2
                continue
            if at + 1 == len(data):
                return at if final else None
            if data[at + 1] in (self._delimiter, _NEWLINE, _RETURN):
                return at
            closed = self._line_at(at)
            where = "" if closed == self._line_at(opened) else f" on line {closed}"
            raise self._refused(
                opened, f"a quote is opened, and text follows after it is closed{where}", _DOUBLE
            )

    def _line_at(self, place: int) -> int:
        content = np.frombuffer(self._held, np.uint8)
        return self._line + int(np.searchsorted(_line_ends(content, True), place, side="right"))

    def _refused(self, place: int, reason: str, hint: str) -> InvalidDataError:
        violation = Violation(CSV, reason, file=self._file, line=self._line_at(place))
        return InvalidDataError(f"{violation}.", violations=[violation], hint=hint)


_CLOSE = "Close the quote, or double it if it belongs to the text; nothing was written."
_DOUBLE = "Double a quote that belongs to the text; nothing was written."


def _line_ends(content: Numbers, final: bool) -> Numbers:
    """The places after which lines begin: after LF, CR LF, or a CR alone."""
    ends = np.flatnonzero(content == _NEWLINE) + 1
    returns = np.flatnonzero(content == _RETURN) + 1
    if not len(returns):
        return ends
    inner = returns[returns < len(content)]
    alone = inner[content[inner] != _NEWLINE]
    if final and returns[-1] == len(content):
        alone = np.append(alone, len(content))
    return np.sort(np.concatenate([ends, alone])) if len(alone) else ends
