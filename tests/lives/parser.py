"""Reads the text of a query back, by the grammar that the language reference describes.

It shares nothing with the program's own parser, and knows only what the generator can write.
"""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import Any

from tests.lives.syntax import (
    Bind,
    Block,
    Cond,
    Delete,
    Expr,
    Insert,
    Query,
    Stage,
    Update,
    Walk,
    Write,
)

TOKEN = re.compile(
    r"""\s*(?:
    (?P<text>"(?:\\.|[^"\\])*")
  | (?P<number>\d+\.\d+(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+|\d+)
  | (?P<var>\$[A-Za-z_][A-Za-z_0-9]*)
  | (?P<word>[A-Za-z_][A-Za-z_0-9]*)
  | (?P<sign><-|<=|>=|!=|->|[-+*/%=<>(){}\[\],:.|?])
)""",
    re.VERBOSE,
)
AGGREGATES = {"count", "sum", "avg", "min", "max", "collect"}
COMPARISONS = {
    "=", "!=", "<", "<=", ">", ">=", "contains", "starts_with", "ends_with",
    "icontains", "istarts_with", "iends_with", "ieq", "matches",
}  # fmt: skip
UNESCAPED = {'"': '"', "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}


def lit(value: Any) -> Expr:
    return ("lit", type(value).__name__, value)


class Parser:
    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, str]] = []
        place, text = 0, text.rstrip()
        while place < len(text):
            found = TOKEN.match(text, place)
            assert found is not None, f"no token at {text[place : place + 20]!r}"
            assert found.lastgroup is not None
            self.tokens.append((found.lastgroup, found.group(found.lastgroup)))
            place = found.end()
        self.at = 0
        self.writing = False
        self.params: set[str] = set()

    def peek(self, ahead: int = 0) -> str:
        place = self.at + ahead
        return self.tokens[place][1] if place < len(self.tokens) else ""

    def kind(self, ahead: int = 0) -> str:
        place = self.at + ahead
        return self.tokens[place][0] if place < len(self.tokens) else ""

    def take(self, *wanted: str) -> str:
        token = self.peek()
        assert not wanted or token in wanted, f"{token!r} where {wanted} was expected"
        self.at += 1
        return token

    def accept(self, *words: str) -> bool:
        """Take these tokens, if they are next."""
        if all(self.peek(n) == word for n, word in enumerate(words)):
            self.at += len(words)
            return True
        return False

    # Declarations.

    def declaration(self) -> Query | Write:
        self.take("query")
        self.take()
        params = self._params()
        self.params = {name for name, _ in params}
        self.take("{")
        if self.peek() in ("insert", "update", "upsert", "delete"):
            self.writing = True
            statements = []
            while not self.accept("}"):
                statements.append(self._statement())
            return Write(tuple(statements), params)
        stages = []
        while not self.accept("}"):
            stages.append(self._stage())
        return Query(tuple(stages), params)

    def _params(self) -> tuple[tuple[str, str], ...]:
        self.take("(")
        found = []
        while not self.accept(")"):
            name = self.take()[1:]
            self.take(":")
            kind = self.take()
            if kind == "[":
                kind = f"[{self.take()}]"
                self.take("]")
            elif self.accept("("):
                kind = f"{kind}({self.take()})"
                self.take(")")
            kind += "?" if self.accept("?") else ""
            found.append((name, kind))
            self.accept(",")
        return tuple(found)

    # Reads.

    def _stage(self) -> Stage:
        clauses: tuple[Any, ...] = ()
        if self.accept("match"):
            clauses = self._clauses()
        self.take("return", "with")
        parts: dict[str, Any] = {"distinct": self.accept("distinct")}
        values = self._values()
        while self.peek() in ("having", "order", "offset", "limit"):
            word = self.take()
            if word in ("offset", "limit"):
                parts[word] = int(self.take())
                continue
            self.take("{")
            parts[word] = self.expr() if word == "having" else self._keys()
            self.take("}")
        return Stage(clauses, values, **parts)

    def _values(self) -> tuple[tuple[Expr, str | None], ...]:
        self.take("{")
        found = []
        while not self.accept("}"):
            value = self.expr()
            found.append((value, self.take() if self.accept("as") else None))
            self.accept(",")
        return tuple(found)

    def _keys(self) -> tuple[tuple[Expr, bool], ...]:
        found = []
        while self.peek() != "}":
            key = self.expr()
            found.append((key, self.accept("desc")))
            self.accept("asc")
            self.accept(",")
        return tuple(found)

    def _clauses(self) -> tuple[Any, ...]:
        self.take("{")
        found = []
        while not self.accept("}"):
            found.append(self._clause())
        return tuple(found)

    def _clause(self) -> Any:
        if self.peek() in ("not", "optional") and self.peek(1) == "{":
            return Block(self.take(), self._clauses())
        if self.kind() == "var":
            if self.peek(1) == ":":
                return self._bind()
            if self._starts_walk():
                return self._walk()
        return Cond(self.expr())

    def _bind(self) -> Bind:
        var = self.take()[1:]
        self.take(":")
        return Bind(var, self.take(), self._fields() if self.peek() == "{" else ())

    def _starts_walk(self) -> bool:
        """Whether an edge and another variable follow the variable at hand."""
        if self.kind(1) == "var" or self.peek(1) in ("<-", "shortest"):
            return True
        if self.peek(1) == "<":
            return self.kind(2) == "word" and self.peek(3) in ("|", ">")
        return self.kind(1) == "word" and (self.kind(2) == "var" or self.peek(2) in ("|", "{"))

    def _walk(self) -> Walk:
        src, short = self.take()[1:], self.accept("shortest")
        direction = "derived"
        if self.accept("<-"):
            direction = "reverse"
        elif self.accept("<"):
            direction = "both"
        edge_var = None
        if self.kind() == "var":
            edge_var = self.take()[1:]
            self.take(":")
        edges = [self.take()]
        while self.accept("|"):
            edges.append(self.take())
        if direction == "both":
            self.take(">")
        least, most = self._bounds()
        hops = self.take()[1:] if self.accept("as") else None
        named = tuple(e[0].upper() + e[1:] for e in edges if e != "_")
        dst = self.take()[1:]
        return Walk(src, dst, named, direction, least, most, hops, short, edge_var)

    def _bounds(self) -> tuple[int, int | None]:
        if not self.accept("{"):
            return 1, None
        least = int(self.take())
        self.take(",")
        most = -1 if self.peek() == "}" else int(self.take())
        self.take("}")
        return least, most

    # Writes.

    def _statement(self) -> Any:
        word, type_ = self.take("insert", "update", "upsert", "delete"), self.take()
        if word == "delete":
            self.take("where")
            return Delete(type_, self.expr())
        if word == "update":
            self.take("set")
            sets = self._fields()
            self.take("where")
            return Update(type_, sets, self.expr())
        values = self._fields()
        if word == "insert":
            return Insert(type_, values)
        self.take("on")
        self.take("conflict")
        policy = self.take("update", "replace", "nothing", "error")
        return Insert(type_, values, policy, self._fields() if self.accept("set") else ())

    def _fields(self) -> tuple[tuple[str, Expr], ...]:
        self.take("{")
        found = []
        while not self.accept("}"):
            name = self.take()
            self.take(":")
            found.append((name, self.expr()))
            self.accept(",")
        return tuple(found)

    # Expressions, from loosely to tightly binding.

    def expr(self) -> Expr:
        left = self._and()
        while self.accept("or"):
            left = ("bin", "or", left, self._and())
        return left

    def _and(self) -> Expr:
        left = self._not()
        while self.accept("and"):
            left = ("bin", "and", left, self._not())
        return left

    def _not(self) -> Expr:
        if self.accept("not"):
            return ("not", self._not())
        return self._comparison()

    def _comparison(self) -> Expr:
        left = self._sum()
        if self.accept("is", "not", "null"):
            return ("null", left, True)
        if self.accept("is", "null"):
            return ("null", left, False)
        negated = self.accept("not", "in")
        if negated or self.accept("in"):
            return ("in", left, self._items(), negated)
        if self.peek() in COMPARISONS:
            op = self.take()
            return ("bin", op, left, self._sum())
        return left

    def _items(self) -> Expr:
        if self.kind() == "var":
            return ("param", self.take()[1:])
        return ("list", tuple(lit(item) for item in self._list()))

    def _list(self) -> list[Any]:
        self.take("[")
        found = []
        while not self.accept("]"):
            found.append(self._unary()[2])
            self.accept(",")
        return found

    def _sum(self) -> Expr:
        left = self._product()
        while self.peek() in ("+", "-"):
            left = ("bin", self.take(), left, self._product())
        return left

    def _product(self) -> Expr:
        left = self._unary()
        while self.peek() in ("*", "/", "%"):
            left = ("bin", self.take(), left, self._unary())
        return left

    def _unary(self) -> Expr:
        if self.accept("-"):
            value = self._unary()
            return lit(-value[2]) if value[0] == "lit" else ("neg", value)
        return self._atom()

    def _atom(self) -> Expr:
        kind = self.kind()
        if self.accept("("):
            inner = self.expr()
            self.take(")")
            return inner
        if self.peek() == "[":
            return lit(self._list())
        token = self.take()
        if kind == "text":
            return lit(re.sub(r"\\(.)", lambda m: UNESCAPED[m[1]], token[1:-1]))
        if kind == "number":
            return lit(float(token) if re.search("[.eE]", token) else int(token))
        if kind == "var":
            if self.accept("."):
                return ("prop", token[1:], self.take())
            return ("param" if token[1:] in self.params else "var", token[1:])
        assert kind == "word", f"{token!r} where a value was expected"
        return self._word(token)

    def _word(self, word: str) -> Expr:
        if word in ("true", "false", "null"):
            return lit({"true": True, "false": False, "null": None}[word])
        if self.accept("("):
            return self._call(word)
        return ("prop", None, word) if self.writing else ("alias", word)

    def _call(self, word: str) -> Expr:
        if word in ("date", "datetime"):
            text = self._atom()[2]
            self.take(")")
            return lit(date.fromisoformat(text) if word == "date" else datetime.fromisoformat(text))
        if word in AGGREGATES:
            distinct = self.accept("distinct")
            arg = None if self.accept("*") else self.expr()
            self.take(")")
            return ("agg", word, distinct, arg)
        args = []
        while not self.accept(")"):
            args.append(self.expr())
            self.accept(",")
        return ("call", word, tuple(args))


def parse(text: str) -> Query | Write:
    parser = Parser(text)
    found = parser.declaration()
    assert parser.at == len(parser.tokens), "text after the end of the query"
    return found
