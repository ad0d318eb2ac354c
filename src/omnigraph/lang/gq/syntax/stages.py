"""Read the stages of a read query: `match`, `with` or `return`, and what may follow them.

Guarantees: the parts after `with` and `return` may come in any order, each at most once; `return`
ends the query.
Deliberately absent: which names a stage can see.
"""

from __future__ import annotations

from omnigraph.lang.gq import ast
from omnigraph.lang.gq.syntax.clauses import ClauseReader
from omnigraph.lang.gq.syntax.expressions import MAX_U64
from omnigraph.lang.gq.syntax.lexer import INT, VAR, WORD, Token

_TAIL = frozenset({"having", "order", "offset", "limit"})
_SELECT_FORM = "values are written `{ $x.name, count($y) as friends }`"
_TAIL_FORMS = {
    "having": "a condition on groups is written `having { friends > 3 }`",
    "order": "keys are separated by commas: `order { $x.age desc, $x.name }`",
    "offset": "write `offset 10`, or `offset $n` with a parameter `$n: I64`",
    "limit": "write `limit 10`, or `limit $n` with a parameter `$n: I64`",
}


class _Tail:
    """The parts that have been read so far."""

    def __init__(self) -> None:
        self.having: ast.Having | None = None
        self.order: ast.Order | None = None
        self.offset: ast.Bound | None = None
        self.limit: ast.Bound | None = None


class StageReader(ClauseReader):
    """The reading half of the parser."""

    def stages(self) -> tuple[ast.Stage, ...]:
        stages: list[ast.Stage] = []
        while True:
            stage = self._stage()
            stages.append(stage)
            if stage.select.keyword == "return":
                return tuple(stages)

    def _stage(self) -> ast.Stage:
        start = self.token.start
        match: ast.Match | None = None
        if self.accept_word("match"):
            match = ast.Match(self.clauses("match")).at(self.since(start))
        select = self._select()
        tail = _Tail()
        while self.token.kind is WORD and self.token.text in _TAIL:
            self._tail_part(tail)
        node = ast.Stage(match, select, tail.having, tail.order, tail.offset, tail.limit)
        return node.at(self.since(start))

    def _select(self) -> ast.Select:
        token = self.token
        if token.kind is not WORD or token.text not in ("return", "with"):
            self.unexpected("`return` or `with`", "a read ends with `return { … }`")
        self.take()
        self.form = _SELECT_FORM
        distinct = self.accept_word("distinct") is not None
        opened = self.token
        items = self.block(token.text, self._projection, comma=True)
        if not items and not self.report.has_errors:
            self.fail(f"`{token.text}` needs at least one value", opened.span, hint=self.form)
        keyword: ast.SelectKeyword = "with" if token.text == "with" else "return"
        return ast.Select(keyword, distinct, items).at(self.since(token.start))

    def _projection(self) -> ast.Projection:
        start = self.token.start
        expr = self.expression()
        alias: ast.Name | None = None
        if self.accept_word("as"):
            alias = self.name(self.expect(WORD, "for the column"))
        return ast.Projection(expr, alias).at(self.since(start))

    def _tail_part(self, tail: _Tail) -> None:
        token = self.take()
        keyword = token.text
        self.form = _TAIL_FORMS[keyword]
        if getattr(tail, keyword) is not None:
            self.fail(f"`{keyword}` is given twice", token.span, hint="keep one of them")
        if keyword == "having":
            tail.having = self._having(token)
        elif keyword == "order":
            tail.order = self._order(token)
        elif keyword == "offset":
            tail.offset = ast.Bound("offset", self._count(token)).at(self.since(token.start))
        else:
            tail.limit = ast.Bound("limit", self._count(token)).at(self.since(token.start))

    def _having(self, token: Token) -> ast.Having:
        self.expect("{", "to open `having`")
        expr = self.expression()
        self.expect("}", "to close `having`; join conditions with `and`")
        return ast.Having(expr).at(self.since(token.start))

    def _order(self, token: Token) -> ast.Order:
        keys = self.block("order", self._order_key, comma=True)
        if not keys and not self.report.has_errors:
            self.fail("`order` needs at least one key", token.span, hint=self.form)
        return ast.Order(keys).at(self.since(token.start))

    def _order_key(self) -> ast.OrderKey:
        start = self.token.start
        expr = self.expression()
        direction: ast.SortDirection | None = None
        if self.accept_word("asc"):
            direction = "asc"
        elif self.accept_word("desc"):
            direction = "desc"
        if direction and isinstance(expr, ast.Call) and expr.name.text == "nearest":
            self.fail(
                f"`nearest` is always ordered nearest first and takes no `{direction}`",
                self.since(start),
                hint=f"order by its value instead: `score(nearest(…)) {direction}`",
            )
        if self.token.kind not in (",", "}"):
            self.unexpected("`,` or `}` after an order key")
        return ast.OrderKey(expr, direction).at(self.since(start))

    def _count(self, keyword: Token) -> ast.Expr:
        token = self.token
        if token.kind is INT:
            return ast.Literal("int", self.integer(self.take(), MAX_U64)).at(token.span)
        if token.kind is VAR:
            return ast.Variable(self.take().text[1:]).at(token.span)
        return self.unexpected(f"an integer or a parameter after `{keyword.text}`")
