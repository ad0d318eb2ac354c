"""Read a query text into a tree.

What it does: `read` parses a whole file and reports as many mistakes as it can find, going on
after each with the next clause, item, statement or query.
Guarantees: terminates on any text and raises nothing; without an error in the report the tree
says exactly what the text says; a query that mixes deletes with other writes is refused here,
before anyone looks at a catalog.
Deliberately absent: types and names that only a catalog can judge.
"""

from __future__ import annotations

from typing import NamedTuple

from omnigraph.lang.diagnostics import Report
from omnigraph.lang.gq import ast
from omnigraph.lang.gq.syntax.clauses import STATEMENTS
from omnigraph.lang.gq.syntax.cursor import QUERY_FORM, Abandon, describe
from omnigraph.lang.gq.syntax.lexer import (
    END,
    INT,
    STRING,
    TYPE,
    VAR,
    WORD,
    Comment,
    Token,
    decode_string,
)
from omnigraph.lang.gq.syntax.stages import StageReader
from omnigraph.lang.gq.syntax.statements import StatementReader

ANNOTATIONS = ("description", "instruction")
MAX_DIM = 2**31 - 1


class Reading(NamedTuple):
    """A tree and the comments that stand between its parts."""

    file: ast.File
    comments: list[Comment]
    tokens: list[Token]


def read(report: Report) -> Reading:
    """Parse the report's source. The tree is whole only if the report holds no error."""
    parser = Parser(report)
    return Reading(parser.file(), parser.comments, parser.tokens)


class Parser(StageReader, StatementReader):
    """Files and queries."""

    def file(self) -> ast.File:
        queries: list[ast.Query] = []
        while self.token.kind is not END and not self.report.full:
            begun = self.at
            try:
                queries.append(self._query())
            except Abandon:
                self.depth = 0
                self._skip_to_query(begun)
        return ast.File(tuple(queries))

    def _skip_to_query(self, begun: int) -> None:
        if self.at == begun:
            self.take()
        while self.token.kind is not END:
            if self.is_word("query") and self.starts_line() and self.ahead(1).kind is WORD:
                return
            self.take()

    def _query(self) -> ast.Query:
        start = self.token.start
        self.form = QUERY_FORM
        self.expect_word("query", "to start a query")
        name = self.name(self.expect(WORD, "for the query"))
        params = self._params()
        annotations = self._annotations(name.text)
        body = self._body(name.text)
        return ast.Query(name, params, annotations, body).at(self.since(start))

    # Heads ----------------------------------------------------------------------------------

    def _params(self) -> tuple[ast.Param, ...]:
        self.expect("(", "after the query's name")
        params: list[ast.Param] = []
        while not self.accept(")"):
            if self.token.kind in (END, "{"):
                self.unexpected("`)` to close the parameters")
            begun = self.at
            try:
                params.append(self._param())
                if not self.accept(",") and self.token.kind != ")":
                    self.unexpected("`,` or `)` after a parameter")
            except Abandon:
                self.skip_to_next(begun, ")", comma=True)
                self.accept(",")
        return tuple(params)

    def _param(self) -> ast.Param:
        var = self.expect(VAR, "for a parameter")
        self.expect(":", f"and a type after `{var.text}`")
        return ast.Param(self.name(var), self._type()).at(self.since(var.start))

    def _type(self) -> ast.TypeRef:
        start = self.token.start
        is_list = self.accept("[") is not None
        name = self.expect(TYPE, "for the parameter").text
        dim: int | None = None
        if name == "Vector":
            self.expect("(", "and a length after `Vector`")
            dim = self.integer(self.expect(INT, "for the vector's length"), MAX_DIM)
            self.expect(")", "after the vector's length")
        if is_list:
            self.expect("]", "to close the list type")
        nullable = self.accept("?") is not None
        return ast.TypeRef(name, is_list, dim, nullable).at(self.since(start))

    def _annotations(self, owner: str) -> tuple[ast.Annotation, ...]:
        found: dict[str, ast.Annotation] = {}
        while self.token.kind == "@":
            annotation = self._annotation()
            name = annotation.name.text
            if name not in ANNOTATIONS:
                message = f"queries do not know the annotation `@{name}`"
                hint = "there are `@description` and `@instruction`"
                self.report.add("Q003", message, annotation.span, hint=hint)
            elif name in found:
                message = f"query `{owner}` has more than one `@{name}`"
                self.report.add("Q002", message, annotation.span, hint="keep one of them")
            found.setdefault(name, annotation)
        return tuple(found.values())

    def _annotation(self) -> ast.Annotation:
        start = self.take().start
        name = self.name(self.expect(WORD, "after `@`"))
        self.expect("(", f"after `@{name.text}`")
        token = self.expect(STRING, f"for `@{name.text}`")
        value = ast.Literal("string", decode_string(token, self.report)).at(token.span)
        self.expect(")", f"to close `@{name.text}`")
        return ast.Annotation(name, value).at(self.since(start))

    # Bodies ---------------------------------------------------------------------------------

    def _body(self, owner: str) -> ast.Read | ast.Write:
        self.expect("{", "to open the query")
        start = self.token.start
        body: ast.Read | ast.Write
        if self.is_word("match"):
            body = ast.Read(self.stages())
        elif self.token.kind is WORD and self.token.text in STATEMENTS:
            body = ast.Write(self.statements(owner))
        else:
            hint = "a query reads with `match { … } return { … }`, or writes with statements"
            if self.token.text.lower() in STATEMENTS | {"match"}:
                hint = f"write it in small letters: `{self.token.text.lower()}`"
            self.unexpected("`match`, `insert`, `update`, `upsert` or `delete`", hint)
        body.at(self.since(start))
        self._close(owner)
        return body

    def _close(self, owner: str) -> None:
        token = self.token
        if token.kind is WORD and token.text in STATEMENTS:
            message = f"a query either reads or writes, found {describe(token)} after a `match`"
            self.fail(message, token.span, hint="make it two queries")
        self.form = "close the query with `}`; a query ends with `return` or its last statement"
        self.expect("}", f"to close query `{owner}`")
