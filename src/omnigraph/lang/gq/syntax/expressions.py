"""Read expressions, by operator precedence.

    or  <  and  <  not  <  = != < <= > >= contains … in is  <  + -  <  * / %  <  unary -

Guarantees: operators of the same level bind to the left; comparisons do not chain; a word is an
operator only where a value stands before it and can stand after it, so that aliases, properties
and edges may be called `in` or `contains`.
Deliberately absent: types, and which functions exist.
"""

from __future__ import annotations

import re
from typing import Final, NoReturn

from omnigraph.lang.diagnostics import Span
from omnigraph.lang.gq import ast
from omnigraph.lang.gq.syntax.cursor import MAX_DEPTH, Cursor
from omnigraph.lang.gq.syntax.lexer import (
    END,
    FLOAT,
    INT,
    STRING,
    TYPE,
    VAR,
    WORD,
    Token,
    decode_string,
)

OR, AND, NOT, COMPARISON, ADDITIVE, MULTIPLICATIVE, UNARY = range(1, 8)

STRING_OPERATORS: Final = frozenset(
    {
        "contains",
        "starts_with",
        "ends_with",
        "icontains",
        "istarts_with",
        "iends_with",
        "ieq",
        "matches",
    }
)
WORD_OPERATORS: Final[dict[str, int]] = {
    **dict.fromkeys(STRING_OPERATORS, COMPARISON),
    "in": COMPARISON,
    "is": COMPARISON,
    "not": COMPARISON,  # only as `not in`
    "and": AND,
    "or": OR,
}
MARK_OPERATORS: Final[dict[str, int]] = {
    **dict.fromkeys(("=", "!=", "<", "<=", ">", ">=", "<-"), COMPARISON),
    **dict.fromkeys(("+", "-"), ADDITIVE),
    **dict.fromkeys(("*", "/", "%"), MULTIPLICATIVE),
}
# What cannot follow an operator: here the word is a name after all.
_NO_OPERAND: Final = frozenset({"}", ",", ")", "]", ":", END})
_BOOLEANS: Final = {"true": True, "false": False}
MAX_U64: Final = 2**64 - 1


class ExpressionReader(Cursor):
    """The expression part of the parser."""

    height = 0  # of the expression that was read last, as a tree

    def expression(self, minimum: int = OR) -> ast.Expr:
        """An expression whose operators all bind at least as tightly as `minimum`."""
        self.enter()
        try:
            return self._climb(minimum)
        finally:
            self.leave()

    def _climb(self, minimum: int) -> ast.Expr:
        start = self.token.start
        left = self._prefix()
        height = self.height
        while (level := self.operator_level()) >= minimum:
            left = self._infix(left, level).at(self.since(start))
            # A chain of operators is as deep a tree as nested brackets are.
            height = max(height, self.height) + 1
            if height > MAX_DEPTH:
                self.too_deep()
            if level == COMPARISON and self.operator_level() == COMPARISON:
                self._refuse_chain(start)
        self.height = height
        return left

    def _refuse_chain(self, start: int) -> NoReturn:
        hint = "join them with `and`: `a < b and b < c`"
        text = self.report.source.text[start : self.token.start]
        if re.search(r"\n\s*-", text):
            hint = "a line that starts with `-` belongs to the one above; put it in parentheses"
        self.fail("comparisons do not chain", self.token.span, hint=hint)

    def operator_level(self) -> int:
        """How tightly the operator at hand binds; 0 when there is none."""
        token = self.token
        if token.kind is not WORD:
            return MARK_OPERATORS.get(token.kind, 0)
        level = WORD_OPERATORS.get(token.text, 0)
        if not level:
            return 0
        after = self.ahead(1)
        if after.kind in _NO_OPERAND or (after.kind is WORD and after.text == "as"):
            return 0
        if token.text == "not":
            return level if after.kind is WORD and after.text == "in" else 0
        if token.text == "is":
            return level if after.kind is WORD and after.text in ("null", "not") else 0
        return level

    def _infix(self, left: ast.Expr, level: int) -> ast.Expr:
        if self.token.kind == "<-":
            self._split_arrow()
        op = self.take().text
        self.height = 0
        if level in (AND, OR):
            return self._logic(op, left, level)
        if op == "is":
            negated = self.accept_word("not") is not None
            self.expect_word("null", "after `is`")
            return ast.IsNull(left, negated)
        if op in ("in", "not"):
            if op == "not":
                self.take()
            return ast.Member(left, self.expression(ADDITIVE), op == "not")
        return ast.Binary(op, left, self.expression(level + 1))

    def _split_arrow(self) -> None:
        # `a <-1` is read as one arrow by the lexer; in an expression it is `a < -1`.
        arrow = self.token
        middle = arrow.start + 1
        self.tokens[self.at : self.at + 1] = [
            Token("<", "<", arrow.start, middle),
            Token("-", "-", middle, arrow.end),
        ]

    def _logic(self, op: str, left: ast.Expr, level: int) -> ast.Expr:
        items = [left, self.expression(level + 1)]
        tallest = self.height
        while self.operator_level() == level:
            self.take()
            items.append(self.expression(level + 1))
            tallest = max(tallest, self.height)
        self.height = tallest
        return ast.Logic("and" if op == "and" else "or", tuple(items))

    def _prefix(self) -> ast.Expr:
        token = self.token
        kind = token.kind
        self.height = 1
        if kind is VAR:
            return self._variable()
        if kind is WORD:
            return self._word()
        if kind in (INT, FLOAT, STRING):
            return self._constant(self.take())
        if kind == "(":
            return self._parenthesized()
        if kind == "[":
            return self._list()
        if kind == "-":
            self.take()
            item = self.expression(UNARY)
            self.height += 1
            return ast.Negative(item).at(self.since(token.start))
        hint = _foreign_hint(token, self.tokens[self.at - 1])
        return self.unexpected("an expression", hint)

    def _variable(self) -> ast.Expr:
        token = self.take()
        if self.token.kind != ".":
            return ast.Variable(token.text[1:]).at(token.span)
        self.take()
        var = ast.Name(token.text[1:]).at(token.span)
        name = self.expect(WORD, "after the dot")
        return ast.Property(var, ast.Name(name.text).at(name.span)).at(self.since(token.start))

    def _word(self) -> ast.Expr:
        token = self.take()
        word = token.text
        if word in _BOOLEANS:
            return ast.Literal("bool", _BOOLEANS[word]).at(token.span)
        if word == "null":
            return ast.Literal("null", None).at(token.span)
        if self.token.kind == "(" and word != "not":
            return self._call(token)
        if word == "not" and self.token.kind not in _NO_OPERAND:
            item = self.expression(NOT)
            self.height += 1
            return ast.Inverse(item).at(self.since(token.start))
        return ast.Word(word).at(token.span)

    def _parenthesized(self) -> ast.Expr:
        self.take()
        inner = self.expression()
        self.expect(")", "to close the parenthesis")
        return inner

    def _list(self) -> ast.Expr:
        start = self.take().start
        items = self._items("]", "to close the list")
        return ast.ListOf(items).at(self.since(start))

    def _items(self, close: str, purpose: str) -> tuple[ast.Expr, ...]:
        items: list[ast.Expr] = []
        tallest = 0
        while not self.accept(close):
            items.append(self.expression())
            tallest = max(tallest, self.height)
            if not self.accept(",") and self.token.kind != close:
                self.unexpected(f"`,` or `{close}` {purpose}")
        self.height = tallest + 1
        return tuple(items)

    def _call(self, token: Token) -> ast.Expr:
        self.take()
        name = ast.Name(token.text).at(token.span)
        if self.token.kind == "*" and self.ahead(1).kind == ")":
            self.take()
            self.take()
            return ast.Call(name, (), False, True).at(self.since(token.start))
        distinct = self._accept_distinct()
        args = self._items(")", "to close the arguments")
        span = self.since(token.start)
        if token.text in ("date", "datetime") and len(args) == 1:
            text = args[0]
            if isinstance(text, ast.Literal) and text.kind == "string":
                kind: ast.LiteralKind = "date" if token.text == "date" else "datetime"
                return ast.Literal(kind, text.value).at(span)
        return ast.Call(name, args, distinct, False).at(span)

    def _accept_distinct(self) -> bool:
        if not self.is_word("distinct") or self.ahead(1).kind in (")", ","):
            return False
        if self.ahead(1).kind in MARK_OPERATORS and self.ahead(1).kind != "-":
            return False  # an alias of that name
        self.take()
        return True

    def _constant(self, token: Token) -> ast.Expr:
        if token.kind is STRING:
            return ast.Literal("string", decode_string(token, self.report)).at(token.span)
        if token.kind is INT:
            return ast.Literal("int", self.integer(token, MAX_U64)).at(token.span)
        value = float(token.text)
        if value == float("inf"):
            self.fail("the number is too large", token.span, code="Q004")
        return ast.Literal("float", value).at(token.span)

    def integer(self, token: Token, maximum: int) -> int:
        """The value of an integer token that may be at most `maximum`."""
        digits = token.text.lstrip("0") or "0"
        # The length is looked at first: Python refuses to read very long numbers.
        value = int(digits) if len(digits) <= len(str(maximum)) else maximum + 1
        if value > maximum:
            self.fail(f"the integer is larger than {maximum}", token.span, code="Q004")
        return value

    def name(self, token: Token) -> ast.Name:
        """A name node from a word, type or variable token."""
        text = token.text[1:] if token.kind is VAR else token.text
        return ast.Name(text).at(Span(token.start, token.end))


def _foreign_hint(token: Token, before: Token) -> str | None:
    """What people write out of habit from the schema or from other languages."""
    if before.end == token.start and before.text + token.text in _FOREIGN_MARKS:
        return _FOREIGN_MARKS[before.text + token.text]
    if token.kind is not TYPE:
        return None
    if token.text.isupper() and token.text.lower() in WORD_OPERATORS:
        return f"write it in small letters: `{token.text.lower()}`"
    if before.kind is VAR:
        edge = token.text[0].lower() + token.text[1:]
        return f"an edge is walked with a small first letter: `{before.text} {edge} …`"
    return "a type name is not a value"


_FOREIGN_MARKS = {"==": "write a single `=`", "<>": "write `!=`"}
