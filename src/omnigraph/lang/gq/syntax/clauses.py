"""Read the clauses of a pattern: bindings, traversals, filters, `not { }`, `optional { }`.

A clause that starts with a variable is one of three things, depending on the next tokens:

    $x: Type …            a binding       the name after the colon starts with a capital letter
    $x edge $y            a traversal     a name and a variable; also `$x $w:edge $y`,
                                          `$x <edge> $y`, `$x <-edge $y`
    anything else         a filter

Guarantees: `$x contains $y` is a traversal over an edge called `contains`, and so it is for every
other operator word; with a property on either side (`$x contains $y.name`) or with parentheses
(`($x) contains $y`) it is a filter. After a mistake, reading goes on with the next line.
Deliberately absent: whether the edges and types exist.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from omnigraph.lang.gq import ast
from omnigraph.lang.gq.syntax.cursor import Abandon
from omnigraph.lang.gq.syntax.expressions import WORD_OPERATORS, ExpressionReader
from omnigraph.lang.gq.syntax.lexer import END, INT, TYPE, VAR, WORD, Token

SECTIONS = frozenset({"match", "return", "with", "having", "order", "limit", "offset"})
STATEMENTS = frozenset({"insert", "update", "delete", "upsert"})
MAX_HOPS = 2**31 - 1
_CLAUSE_FORM = "a clause is `$x: Type`, `$x edge $y`, a condition, or `not { … }`"

Item = TypeVar("Item")


class ClauseReader(ExpressionReader):
    """The pattern part of the parser."""

    def block(self, owner: str, read: Callable[[], Item], *, comma: bool) -> tuple[Item, ...]:
        """`{ item … }`; after a mistake in one item, reading goes on with the next."""
        opened = self.expect("{", f"to open `{owner}`")
        self.enter()
        try:
            return self._block_items(owner, opened, read, comma)
        finally:
            self.leave()

    def _block_items(
        self, owner: str, opened: Token, read: Callable[[], Item], comma: bool
    ) -> tuple[Item, ...]:
        items: list[Item] = []
        while self.token.kind != "}":
            if self._runs_on():
                message = f"the block of `{owner}` is not closed"
                self.fail(message, opened.span, hint="add a closing `}`")
            begun = self.at
            try:
                items.append(read())
            except Abandon:
                if self.report.full:
                    raise
                self.skip_to_next(begun, "}", comma=comma)
            if comma:
                self.accept(",")
        self.take()
        return tuple(items)

    def _runs_on(self) -> bool:
        """Whether a block that should have ended runs into the next part of the query."""
        token = self.token
        if token.kind is not WORD:
            return token.kind is END
        after, third = self.ahead(1), self.ahead(2).kind
        if token.text in SECTIONS:
            return after.kind in ("{", INT) or (after.text == "distinct" and third == "{")
        if token.text in STATEMENTS:
            return after.kind is TYPE
        return token.text == "query" and after.kind is WORD and third == "("

    def clauses(self, owner: str) -> tuple[ast.Clause, ...]:
        opened = self.token
        found = self.block(owner, self.clause, comma=False)
        if not found and not self.report.has_errors:
            message = f"`{owner}` needs at least one clause"
            self.fail(message, opened.span, hint="bind something: `$x: Type`")
        return found

    def clause(self) -> ast.Clause:
        start = self.token.start
        self.form = _CLAUSE_FORM
        if self.token.kind is WORD and self.ahead(1).kind == "{":
            if self.accept_word("not"):
                return ast.Negation(self.clauses("not")).at(self.since(start))
            if self.accept_word("optional"):
                return ast.Optional(self.clauses("optional")).at(self.since(start))
        if self.token.kind is VAR:
            if self.ahead(1).kind == ":":
                return self._binding()
            if self._starts_traversal():
                return self._traversal()
        return ast.Filter(self.expression()).at(self.since(start))

    def _binding(self) -> ast.Binding:
        var = self.take()
        self.take()
        kind = self.expect(TYPE, f"for `{var.text}`")
        fields: tuple[ast.Field, ...] = ()
        if self.token.kind == "{":
            fields = self.fields(kind.text)
        node = ast.Binding(self.name(var), self.name(kind), fields)
        return node.at(self.since(var.start))

    def fields(self, owner: str) -> tuple[ast.Field, ...]:
        """`{ name: value, … }`, with or without commas."""
        return self.block(owner, self._field, comma=True)

    def _field(self) -> ast.Field:
        name = self.expect(WORD, "of a property")
        self.expect(":", f"after `{name.text}`")
        return ast.Field(self.name(name), self.expression()).at(self.since(name.start))

    def _starts_traversal(self) -> bool:
        after = self.ahead(1)
        if after.kind == "<-":
            return self.ahead(2).kind is WORD
        if after.kind == "<":
            return self.ahead(2).kind is WORD and self.ahead(3).kind in (">", "|")
        if after.kind is VAR:
            return self.ahead(2).kind == ":" and self.ahead(3).kind in (WORD, "<", "<-")
        if after.kind is not WORD or after.text == "not":
            return False
        return after.text not in WORD_OPERATORS or self._names_edge()

    def _names_edge(self) -> bool:
        """Whether the operator word after the variable at hand is an edge after all."""
        after = self.ahead(2)
        if after.kind is VAR:
            return self.ahead(3).kind != "."
        return after.kind == "|" or (after.kind == "{" and self.ahead(3).kind is INT)

    def _traversal(self) -> ast.Traversal:
        src = self.take()
        edge_var: ast.Name | None = None
        if self.token.kind is VAR:
            edge_var = self.name(self.take())
            self.take()
        shortest = self._accept_shortest()
        direction, edges = self._edges()
        bounds = self._bounds() if self.token.kind == "{" else None
        hops_var: ast.Name | None = None
        if self.accept_word("as"):
            hops_var = self.name(self.expect(VAR, "for the number of hops"))
        dst = self._other_end()
        node = ast.Traversal(
            self.name(src), self.name(dst), edges, direction, bounds, edge_var, hops_var, shortest
        )
        return node.at(self.since(src.start))

    def _other_end(self) -> Token:
        # `$p.age …` or `$p: …` is the next clause, so the variable before it is missing.
        if self.token.kind is VAR and self.ahead(1).kind in (".", ":"):
            self.unexpected("a variable at the other end of the edge", "write `$_` for any node")
        return self.expect(VAR, "at the other end of the edge")

    def _accept_shortest(self) -> bool:
        after = self.ahead(1)
        is_edge = after.kind in ("<", "<-") or (after.kind is WORD and after.text != "as")
        return is_edge and self.accept_word("shortest") is not None

    def _edges(self) -> tuple[ast.EdgeDirection, tuple[ast.Name, ...]]:
        if self.accept("<"):
            edges = self._alternatives()
            self.expect(">", "to close the edge")
            return "both", edges
        if self.accept("<-"):
            return "reverse", self._alternatives()
        return "derived", self._alternatives()

    def _alternatives(self) -> tuple[ast.Name, ...]:
        names = [self.name(self.expect(WORD, "of an edge"))]
        while self.accept("|"):
            names.append(self.name(self.expect(WORD, "of an edge")))
        return tuple(names)

    def _bounds(self) -> tuple[int, int | None]:
        self.take()
        low = self.integer(self.expect(INT, "for the least number of hops"), MAX_HOPS)
        self.expect(",", "between the least and the greatest number of hops")
        high: int | None = None
        if self.token.kind is INT:
            high = self.integer(self.take(), MAX_HOPS)
        self.expect("}", "to close the bounds")
        return low, high
