"""Findings in a source text: places, excerpts with carets, hints, and several at once.

What it does: `Source` turns character offsets into lines, columns and excerpts; `Report` collects
findings; `suggest` and `offer` propose the name that was probably meant.
Guarantees: a finding always points into the text, even at its very end; findings come out in
order of position, each only once; any text will do, also one with stray control characters; a
finding without a hint of its own gets that of its code.
Deliberately absent: codes and wording. Each language owns its own.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

from omnigraph.errors import Diagnostic, Severity, SourceError

# A text with more findings than this is most likely not a program at all.
MAX_FINDINGS = 100
_MAX_EXCERPT_WIDTH = 160
_MAX_OFFERED = 8


class Span(NamedTuple):
    """Character offsets into a text; `end` is exclusive. A tuple, because parsers make many."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        """The span from the start of this one to the end of the other."""
        return Span(self.start, other.end)


NOWHERE = Span(0, 0)


class Source:
    """A text, the name of the file it came from, and where its lines start."""

    def __init__(self, text: str, file: str | None = None) -> None:
        self.text = text
        self.file = file

    @cached_property
    def _line_starts(self) -> list[int]:
        starts = [0]
        find = self.text.find
        at = find("\n")
        while at >= 0:
            starts.append(at + 1)
            at = find("\n", at + 1)
        return starts

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, both counted from 1."""
        offset = min(max(offset, 0), len(self.text))
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def line(self, number: int) -> str:
        """The text of one line, without its end."""
        start = self._line_starts[number - 1]
        end = self.text.find("\n", start)
        return self.text[start : end if end >= 0 else len(self.text)].rstrip("\r")

    def excerpt(self, span: Span) -> str:
        """The line in which a span starts, and carets under the part that the span covers."""
        line, column = self.position(span.start)
        end_line, end_column = self.position(span.end)
        text = self.line(line)
        width = (end_column if end_line == line else len(text) + 1) - column
        return _draw(line, text, column - 1, max(width, 1))

    def diagnostic(
        self,
        code: str,
        message: str,
        span: Span = NOWHERE,
        *,
        severity: Severity = "error",
        hint: str | None = None,
    ) -> Diagnostic:
        line, column = self.position(span.start)
        end_line, end_column = self.position(max(span.end, span.start))
        return Diagnostic(
            code=code,
            message=message,
            severity=severity,
            file=self.file,
            line=line,
            column=column,
            end_line=end_line,
            end_column=end_column,
            excerpt=self.excerpt(span),
            hint=hint or _general_hint(code),
        )


def _general_hint(code: str) -> str | None:
    from omnigraph.lang.hints import HINTS  # only on the way to an error, so not at start-up

    return HINTS.get(code)


def _draw(number: int, text: str, start: int, width: int) -> str:
    # A very long line (a generated file) is cut to a window around the finding.
    if len(text) > _MAX_EXCERPT_WIDTH:
        begin = max(0, min(start - _MAX_EXCERPT_WIDTH // 4, len(text) - _MAX_EXCERPT_WIDTH))
        text = text[begin : begin + _MAX_EXCERPT_WIDTH]
        start -= begin
    width = min(width, max(len(text) - start, 1))
    shown = "".join(
        c if c.isprintable() or c == "\t" else "\N{REPLACEMENT CHARACTER}" for c in text
    )
    # Tabs are kept under tabs, so that the carets stand right at any tab width.
    pad = "".join("\t" if c == "\t" else " " for c in shown[:start])
    gutter = str(number)
    blank = " " * len(gutter)
    return f"{gutter} | {shown}\n{blank} | {pad}{'^' * width}"


class Report:
    """Findings of one compilation, in the order in which they were found."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._found: list[tuple[Span, Diagnostic]] = []
        self._seen: set[tuple[str, Span, str]] = set()
        self._errors = 0

    def add(
        self,
        code: str,
        message: str,
        span: Span = NOWHERE,
        *,
        severity: Severity = "error",
        hint: str | None = None,
    ) -> None:
        identity = (code, span, message)
        grave = severity == "error"
        # Errors and remarks are counted apart: remarks must never crowd out an error.
        room = self._errors if grave else len(self._found) - self._errors
        if identity in self._seen or room >= MAX_FINDINGS:
            return
        self._seen.add(identity)
        self._errors += grave
        found = self.source.diagnostic(code, message, span, severity=severity, hint=hint)
        self._found.append((span, found))

    @property
    def full(self) -> bool:
        """Enough errors were found; a parser may stop looking."""
        return self._errors >= MAX_FINDINGS

    @property
    def has_errors(self) -> bool:
        return self._errors > 0

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """All findings, in order of position."""
        ordered = sorted(self._found, key=lambda entry: entry[0].start)
        return tuple(found for _, found in ordered)

    def raise_if_errors(self, error: type[SourceError]) -> None:
        """Raise `error` with every finding, if at least one of them is an error."""
        if self.has_errors:
            raise failure(error, self.diagnostics)


def failure(error: type[SourceError], diagnostics: Iterable[Diagnostic]) -> SourceError:
    """An exception that carries findings and whose message shows the first error in full."""
    found = tuple(diagnostics)
    errors = [d for d in found if d.severity == "error"]
    message = render(errors[0]) if errors else "the text does not compile"
    if len(errors) > 1:
        more = len(errors) - 1
        message += f"\n({more} more {'error' if more == 1 else 'errors'})"
    return error(message, diagnostics=found)


def render(diagnostic: Diagnostic) -> str:
    """One finding as people read it: place and message, excerpt, hint."""
    parts = [str(diagnostic)]
    if diagnostic.excerpt:
        parts.append(diagnostic.excerpt)
    if diagnostic.hint:
        parts.append(f"hint: {diagnostic.hint}")
    return "\n".join(parts)


def closest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that `name` was probably meant to be, or nothing."""
    from difflib import get_close_matches  # only on the way to an error, so not at start-up

    by_lower: dict[str, str] = {}
    for candidate in sorted(candidates):
        by_lower.setdefault(candidate.lower(), candidate)
    lowered = name.lower()[:64]
    if lowered in by_lower:
        return by_lower[lowered]
    found = get_close_matches(lowered, list(by_lower), n=1, cutoff=0.6)
    return by_lower[found[0]] if found else None


def suggest(name: str, candidates: Iterable[str]) -> str | None:
    """A hint of the form "did you mean `knows`?", or nothing when no name is near."""
    found = closest(name, candidates)
    return None if found is None or found == name else f"did you mean `{found}`?"


def offer(name: str, candidates: Iterable[str]) -> str | None:
    """As `suggest`, but where no name is near, those that exist; nothing when there are none."""
    known = sorted(set(candidates))
    if not known:
        return None
    shown = ", ".join(f"`{each}`" for each in known[:_MAX_OFFERED])
    more = f" and {len(known) - _MAX_OFFERED} more" if len(known) > _MAX_OFFERED else ""
    return suggest(name, known) or f"known here: {shown}{more}"


def first_hint(*hints: str | None) -> str | None:
    """The first hint that says something."""
    return next((hint for hint in hints if hint), None)
