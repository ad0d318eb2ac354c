"""Cut a query text into tokens, and keep its comments.

What it does: one pass over the text with one regular expression.
Guarantees: never raises; every stray character is reported once and left out; tokens come in
order and do not overlap; the last token is always `END`.
Deliberately absent: keywords. Every word is a name until its place says otherwise, so that a
property may be called `match`, and an edge `in`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from omnigraph.lang.diagnostics import Report, Span

VAR = "variable"
WORD = "name"
TYPE = "type name"
INT = "integer"
FLOAT = "number"
STRING = "string"
END = "end of text"

_TOKEN = re.compile(
    r"""
    (?P<space>[ \t\r\n]+)
  | (?P<var>\$[A-Za-z_][A-Za-z0-9_]*)
  | (?P<word>[a-z_][A-Za-z0-9_]*)
  | (?P<type>[A-Z][A-Za-z0-9_]*)
  | (?P<float>[0-9]+(?:\.[0-9]+(?:[eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+))
  | (?P<int>[0-9]+)
  | (?P<string>"[^"\\]*(?:\\.[^"\\]*)*"|'[^'\n]*')
  | (?P<comment>//[^\n]*|/\*.*?\*/)
  | (?P<mark><=|>=|!=|<-|/(?!\*)|[{}()\[\],:.|<>=+\-*%@?])
    """,
    re.VERBOSE | re.DOTALL,
)
_KINDS = {"var": VAR, "word": WORD, "type": TYPE, "float": FLOAT, "int": INT, "string": STRING}
_STRAY = re.compile(r"[^ \t\r\nA-Za-z0-9_$\"'/{}()\[\],:.|<>=+\-*%@?!]+|.", re.DOTALL)
_STRAY_HINTS = {
    "'": "strings stand in double quotes",
    ";": "clauses need no separator; remove the semicolon",
    "#": "comments start with `//`",
    "!": "write `not`, or `!=` for unequal",
    "&": "write `and`",
    "$": "a variable is `$` and a name that starts with a small letter",
}


class Token(NamedTuple):
    """`kind` is one of the names above, or the mark itself, such as `{` or `<-`."""

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
    match = _TOKEN.match
    kinds = _KINDS
    while at < len(text):
        found = match(text, at)
        if found is None:
            at = _skip_stray(text, at, report)
            continue
        name, start, at = found.lastgroup, at, found.end()
        if name == "space":
            continue
        spelled = found.group()
        if name == "comment":
            comments.append(Comment(spelled, start, at))
            continue
        if name == "var" or name == "string":
            _check_spelling(spelled, start, report)
        tokens.append(Token(kinds.get(name or "", spelled), spelled, start, at))
    tokens.append(Token(END, "", len(text), len(text)))
    return tokens, comments


def _check_spelling(spelled: str, start: int, report: Report) -> None:
    """Tokens that are wrong, but leave no doubt what they were meant to be."""
    if spelled[0] == "'":
        message, hint = "strings stand in double quotes", f'write `"{spelled[1:-1][:20]}"`'
    elif spelled[0] == "$" and spelled[1].isupper():
        message = f"`{spelled}` is not a variable"
        hint = f"variables start with a small letter: `${spelled[1].lower()}{spelled[2:]}`"
    else:
        return
    report.add("Q000", message, Span(start, start + len(spelled)), hint=hint)


def _skip_preamble(text: str, report: Report) -> int:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        span = Span(error.start, error.end)
        message = "the text holds characters that are not valid Unicode"
        report.add("Q000", message, span, hint="save the text as UTF-8")
    return 1 if text.startswith("\ufeff") else 0


def _skip_stray(text: str, at: int, report: Report) -> int:
    if text[at] == '"':
        line_end = text.find("\n", at)
        end = len(text) if line_end < 0 else line_end
        report.add("Q000", "the string is not closed", Span(at, end), hint='add a closing `"`')
        return end
    if text.startswith("/*", at):
        message = "the comment is not closed"
        report.add("Q000", message, Span(at, at + 2), hint="add a closing `*/`")
        return len(text)
    found = _STRAY.match(text, at)
    assert found is not None  # the pattern's last branch takes any character
    shown = found.group()[:20].encode("ascii", "backslashreplace").decode()
    shown = shown if shown.isprintable() else repr(shown)[1:-1]
    hint = _STRAY_HINTS.get(text[at], "remove it, or put it into a string")
    report.add("Q000", f"`{shown}` has no place here", Span(at, found.end()), hint=hint)
    return found.end()


_ESCAPES = {'"': '"', "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def decode_string(token: Token, report: Report) -> str:
    """The value of a string token. An unknown escape is reported and kept as written."""
    body = token.text[1:-1]
    if "\\" not in body:
        return body

    def decode(found: re.Match[str]) -> str:
        escaped = found.group(1)
        if escaped in _ESCAPES:
            return _ESCAPES[escaped]
        at = token.start + 1 + found.start()
        report.add(
            "Q000",
            f"strings do not know the escape `\\{escaped}`",
            Span(at, at + 2),
            hint='the escapes are `\\"`, `\\\\`, `\\n`, `\\r` and `\\t`',
        )
        return found.group()

    return _ESCAPE.sub(decode, body)
