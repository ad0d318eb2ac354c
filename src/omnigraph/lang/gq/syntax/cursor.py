"""A place in the token list, and the ways in which a parser moves it.

`form` is how the construct at hand is written; the parser of a construct sets it, and a finding
that has no better advice shows it.

Guarantees: the cursor never leaves the list; a failure is reported once, where it happened, and
then raised as `Abandon` so that the nearest list of clauses or statements can go on after it.
Deliberately absent: the grammar.
"""

from __future__ import annotations

from typing import NoReturn

from omnigraph.lang.diagnostics import Report, Span
from omnigraph.lang.gq.syntax.lexer import END, TYPE, VAR, WORD, Token, tokenize

MAX_DEPTH = 64
"""How deep expressions and blocks may nest. Far more than people write, and far less than what
would exhaust the interpreter's stack in any later stage."""

QUERY_FORM = "a query is written `query name($param: Type) { … }`"

_OPEN = frozenset("{([")
_CLOSE = frozenset("})]")


class Abandon(Exception):  # noqa: N818 - control flow, never seen by a caller
    """What is being read makes no sense; the finding is already in the report."""


class Cursor:
    """The tokens of one text. `token` is the next one."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.tokens, self.comments = tokenize(report)
        self.at = 0
        self.depth = 0
        self.form = QUERY_FORM

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def ahead(self, count: int) -> Token:
        """The token that many places further on, or the end."""
        index = self.at + count
        return self.tokens[index] if index < len(self.tokens) else self.tokens[-1]

    def take(self) -> Token:
        token = self.tokens[self.at]
        if token.kind is not END:
            self.at += 1
        return token

    def accept(self, kind: str) -> Token | None:
        """Take the next token if it is of this kind."""
        token = self.tokens[self.at]
        return self.take() if token.kind == kind else None

    def accept_word(self, word: str) -> Token | None:
        return self.take() if self.is_word(word) else None

    def is_word(self, word: str, ahead: int = 0) -> bool:
        token = self.ahead(ahead)
        return token.kind is WORD and token.text == word

    def expect(self, kind: str, purpose: str) -> Token:
        """Take a token of this kind, or report what was expected and give up."""
        token = self.tokens[self.at]
        if token.kind == kind:
            return self.take()
        return self.unexpected(f"{spell(kind)} {purpose}")

    def expect_word(self, word: str, purpose: str) -> Token:
        if self.is_word(word):
            return self.take()
        return self.unexpected(f"`{word}` {purpose}")

    def unexpected(self, wanted: str, hint: str | None = None) -> NoReturn:
        """Report that something else stands here, and give up."""
        token = self.token
        hint = hint or _case_hint(wanted, token) or self.form
        self.fail(f"expected {wanted}, found {describe(token)}", token.span, hint=hint)

    def fail(
        self, message: str, span: Span, *, code: str = "Q000", hint: str | None = None
    ) -> NoReturn:
        self.report.add(code, message, span, hint=hint)
        raise Abandon

    def enter(self) -> None:
        """Enter one nesting level; it is left again on return and on failure."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.too_deep()

    def too_deep(self) -> NoReturn:
        message = f"expressions and blocks nest at most {MAX_DEPTH} levels deep"
        self.fail(message, self.token.span, code="Q005", hint="split the expression")

    def leave(self) -> None:
        self.depth -= 1

    def starts_line(self) -> bool:
        """Whether the next token is the first of its line."""
        before = self.tokens[self.at - 1].end if self.at else 0
        return "\n" in self.report.source.text[before : self.token.start]

    def since(self, start: int) -> Span:
        """From a start offset to the end of the last token taken."""
        return Span(start, max(self.tokens[self.at - 1].end, start) if self.at else start)

    def skip_to_next(self, begun: int, close: str, *, comma: bool) -> None:
        """After a failure in a list: move to what may be its next item, or to its end.

        An item starts a line, or (where the list has them) follows a comma. Brackets that were
        opened on the way are skipped as a whole.
        """
        level = 0
        while (kind := self.token.kind) is not END:
            ends = kind == close or (comma and kind == ",") or self.starts_line()
            if level == 0 and ends and self.at > begun:
                return
            level = max(level + (kind in _OPEN) - (kind in _CLOSE), 0)
            self.take()


def spell(kind: str) -> str:
    """A token kind as people call it: marks in quotes, classes with an article."""
    if kind in (VAR, WORD, TYPE) or kind[0].isalpha():
        return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"
    return f"`{kind}`"


def describe(token: Token) -> str:
    if token.kind is END:
        return "the end of the text"
    shown = token.text if len(token.text) <= 30 else token.text[:27] + "…"
    return f"`{shown}`" if shown.isprintable() else f"`{shown!r}`"


def _case_hint(wanted: str, token: Token) -> str | None:
    if wanted.startswith("a type name") and token.kind is WORD:
        return f"type names start with a capital letter: `{token.text[0].upper()}{token.text[1:]}`"
    if wanted.startswith("a name") and token.kind is TYPE:
        return f"this name starts with a small letter: `{token.text[0].lower()}{token.text[1:]}`"
    if wanted.startswith("a variable") and token.kind is WORD:
        return f"variables start with a dollar sign: `${token.text}`"
    return None
