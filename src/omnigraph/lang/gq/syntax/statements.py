"""Read the statements of a write query: `insert`, `update`, `upsert`, `delete`.

Guarantees: a query that mixes deletes with other writes is refused here, before anyone looks at
a catalog; after a mistake, reading goes on with the next statement.
Deliberately absent: which types and properties exist.
"""

from __future__ import annotations

from omnigraph.lang.gq import ast
from omnigraph.lang.gq.syntax.clauses import STATEMENTS, ClauseReader
from omnigraph.lang.gq.syntax.cursor import Abandon
from omnigraph.lang.gq.syntax.lexer import END, TYPE, WORD

POLICIES = ("update", "replace", "nothing", "error")
_FORMS = {
    "insert": "an insert is written `insert Type { property: value, … }`",
    "upsert": "an upsert is written `upsert Type { property: value, … } on conflict update`",
    "update": "an update is written `update Type set { property: value, … } where condition`",
    "delete": "a delete is written `delete Type where condition`",
}


class StatementReader(ClauseReader):
    """The writing half of the parser."""

    def statements(self, owner: str) -> tuple[ast.Statement, ...]:
        statements: list[ast.Statement] = []
        while self.token.kind is WORD and self.token.text in STATEMENTS:
            begun = self.at
            try:
                statements.append(self._statement())
            except Abandon:
                self._skip_to_statement(begun)
        self._refuse_mixture(owner, statements)
        return tuple(statements)

    def _skip_to_statement(self, begun: int) -> None:
        while True:
            self.skip_to_next(begun, "}", comma=False)
            begun = self.at
            token = self.token
            if token.kind is END or token.kind == "}" or token.text in STATEMENTS:
                return
            if self.is_word("query") and self.ahead(1).kind is WORD:
                raise Abandon

    def _statement(self) -> ast.Statement:
        token = self.take()
        self.form = _FORMS[token.text]
        kind = self.name(self.expect(TYPE, f"after `{token.text}`"))
        statement: ast.Statement
        if token.text == "insert":
            statement = ast.Insert(kind, self.fields(kind.text))
        elif token.text == "upsert":
            statement = self._upsert(kind)
        elif token.text == "update":
            self.expect_word("set", "and assignments after the type")
            fields = self.fields("set")
            statement = ast.Update(kind, fields, self._where("update"))
        else:
            statement = ast.Delete(kind, self._where("delete"))
        return statement.at(self.since(token.start))

    def _where(self, owner: str) -> ast.Expr:
        if not self.accept_word("where"):
            hint = f"say which rows: `{owner} … where name = $name`"
            self.unexpected("`where`", hint)
        return self.expression()

    def _upsert(self, kind: ast.Name) -> ast.Upsert:
        fields = self.fields(kind.text)
        self.expect_word("on", "and `conflict` with a policy after the values")
        self.expect_word("conflict", "after `on`")
        token = self.token
        if token.kind is not WORD or token.text not in POLICIES:
            self.unexpected("`update`, `replace`, `nothing` or `error` after `on conflict`")
        policy = self.name(self.take())
        updates: tuple[ast.Field, ...] = ()
        if self.accept_word("set"):
            updates = self.fields("set")
        return ast.Upsert(kind, fields, policy, updates)

    def _refuse_mixture(self, owner: str, statements: list[ast.Statement]) -> None:
        if not statements:
            return
        first_deletes = isinstance(statements[0], ast.Delete)
        for statement in statements:
            if isinstance(statement, ast.Delete) != first_deletes:
                self.report.add(
                    "Q001",
                    f"query `{owner}` mixes deletes with inserts or updates",
                    statement.span,
                    hint="split it into two queries: first one with the inserts and updates, "
                    "then one with the deletes; to publish both at once, run them on a branch "
                    "and merge it",
                )
                return
