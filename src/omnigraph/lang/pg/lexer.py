"""Cut a schema text into tokens, and keep its comments.

What it does: one pass over the text with two regular expressions, one for the language and one
for the inside of `enum( … )`, where values may start with a digit or hold hyphens.
Guarantees: never raises; every stray character is reported once and left out; tokens come in
order and do not overlap; the last token is always `END`.
Deliberately absent: any idea of which tokens belong together.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from omnigraph.lang.diagnostics import Report, Span

WORD = "word"
NUMBER = "number"
STRING = "string"
VALUE = "enum value"
END = "end of text"

_TOKEN = re.compile(
    r"""
    (?P<space>[ \t\r\n]+)
  | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<mark>->|\.\.|[{}()\[\]:,?@=*])
  | (?P<number>-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
  | (?P<string>"[^"\\]*(?:\\.[^"\\]*)*")
  | (?P<line>//[^\n]*)
  | (?P<block>/\*.*?\*/)
    """,
    re.VERBOSE | re.DOTALL,
)
_ENUM = re.compile(
    r"""
    (?P<space>[ \t\r\n]+)
  | (?P<value>[A-Za-z0-9_-]+)
  | (?P<mark>[,)])
  | (?P<line>//[^\n]*)
  | (?P<block>/\*.*?\*/)
    """,
    re.VERBOSE | re.DOTALL,
)
_KINDS = {"word": WORD, "number": NUMBER, "string": STRING, "value": VALUE}
_STRAY = re.compile(r"[^ \t\r\nA-Za-z0-9_{}()\[\]:,?@=*\"/]+|.", re.DOTALL)
_FOREIGN_WORD = re.compile(r"\w+")
_STRAY_HINTS = {
    "'": "strings stand in double quotes",
    ";": "properties need no separator; remove the semicolon",
    "-": "an edge is written `edge Name: From -> To`",
    ".": "a range is written with two dots: `0..10`",
}


class Token(NamedTuple):
    """`kind` is one of the names above, or the mark itself, such as `{` or `->`."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def span(self) -> Span:
        return Span(self.start, self.end)


class Comment(NamedTuple):
    text: str
    start: int
    end: int


def tokenize(report: Report) -> tuple[list[Token], list[Comment]]:
    """All tokens and comments of the report's source; stray characters go to the report."""
    text = report.source.text
    tokens: list[Token] = []
    comments: list[Comment] = []
    at = _skip_preamble(text, report)
    pattern = _TOKEN
    while at < len(text):
        match = pattern.match(text, at)
        if match is None:
            if pattern is _ENUM:
                pattern = _TOKEN  # an enum that is never closed ends at the first odd mark
            elif text[at].isalpha():
                at = _take_foreign_word(text, at, tokens, report)
            else:
                at = _skip_stray(text, at, report)
            continue
        name, start, at = match.lastgroup, at, match.end()
        if name == "space":
            continue
        if name == "line" or name == "block":
            comments.append(Comment(match.group(), start, at))
            continue
        spelled = match.group()
        tokens.append(Token(_KINDS.get(name or "", spelled), spelled, start, at))
        if spelled == "(" and _opens_enum(tokens):
            pattern = _ENUM
        elif spelled == ")":
            pattern = _TOKEN
    tokens.append(Token(END, "", len(text), len(text)))
    return tokens, comments


def _opens_enum(tokens: list[Token]) -> bool:
    if len(tokens) < 2 or tokens[-2].text != "enum":
        return False
    return len(tokens) < 3 or tokens[-3].kind != "@"  # `@enum(…)` is an annotation


def _skip_preamble(text: str, report: Report) -> int:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        span = Span(error.start, error.end)
        message = "the text holds characters that are not valid Unicode"
        report.add("S002", message, span, hint="save the text as UTF-8")
    return 1 if text.startswith("\ufeff") else 0


def _take_foreign_word(text: str, at: int, tokens: list[Token], report: Report) -> int:
    """Report a name with letters that names cannot have, and go on as if it could."""
    match = _FOREIGN_WORD.match(text, at)
    assert match is not None  # it starts with a letter
    start, end = at, match.end()
    if tokens and tokens[-1].end == at and tokens[-1].kind == WORD:
        start = tokens.pop().start
    span = Span(start, end)
    hint = "names are made of the letters a to z, digits and `_`"
    report.add("S002", f"`{text[start:end][:40]}` cannot be a name", span, hint=hint)
    tokens.append(Token(WORD, text[start:end], start, end))
    return end


def _skip_stray(text: str, at: int, report: Report) -> int:
    if text[at] == '"':
        line_end = text.find("\n", at)
        end = len(text) if line_end < 0 else line_end
        report.add("S003", "the string is not closed", Span(at, end), hint='add a closing `"`')
        return end
    if text.startswith("/*", at):
        message = "the comment is not closed"
        report.add("S004", message, Span(at, at + 2), hint="add a closing `*/`")
        return len(text)
    if text[at] == "#":
        return _skip_foreign_comment(text, at, report)
    match = _STRAY.match(text, at)
    assert match is not None  # the pattern's last branch takes any character
    shown = match.group()[:20]
    shown = shown if shown.isprintable() else ascii(shown)[1:-1]
    hint = _STRAY_HINTS.get(text[at])
    report.add("S002", f"`{shown}` has no place here", Span(at, match.end()), hint=hint)
    return match.end()


def _skip_foreign_comment(text: str, at: int, report: Report) -> int:
    line_end = text.find("\n", at)
    message = "`#` has no place here"
    report.add("S002", message, Span(at, at + 1), hint="comments start with `//`")
    return len(text) if line_end < 0 else line_end
