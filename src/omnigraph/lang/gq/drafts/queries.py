"""Reads and mutations, built step by step.

    query("friends", who="String").match(...).returns(f.name).order(f.name).limit(10)
    mutation("hire", name="String").insert("Person", name=var("name"))

Guarantees: every step gives a new value and leaves the old one as it was, so a query may be the
beginning of several; `str(query)` is its text in canonical layout.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

from omnigraph.arguments import checked
from omnigraph.errors import InvalidArgumentError
from omnigraph.lang.gq import ast
from omnigraph.lang.gq.drafts.clauses import Part, trees_of
from omnigraph.lang.gq.drafts.expressions import Expr, Key, Value, name_node, tree_of
from omnigraph.lang.gq.drafts.querytext import read_type, text_of


@dataclass(frozen=True)
class Built:
    """Base of reads and mutations: a name, parameters, and conversion to text."""

    name: str
    params: tuple[tuple[str, str], ...] = ()
    description: str | None = None

    def tree(self) -> ast.Query:
        """The same tree that its text reads as."""
        params = tuple(ast.Param(name_node(name), read_type(kind)) for name, kind in self.params)
        notes: tuple[ast.Annotation, ...] = ()
        if self.description is not None:
            text = ast.Literal("string", self.description)
            notes = (ast.Annotation(ast.Name("description"), text),)
        return ast.Query(name_node(self.name), params, notes, self._body())

    def _body(self) -> ast.Read | ast.Write:
        raise InvalidArgumentError("The query does nothing yet.")

    @cached_property
    def text(self) -> str:
        """The query as text."""
        return text_of(self.tree())

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class ReadDraft(Built):
    """A read. `_done` are the complete stages, `_clauses` the current pattern."""

    _done: tuple[ast.Stage, ...] = ()
    _clauses: tuple[ast.Clause, ...] = ()
    _stage: ast.Stage | None = field(default=None)

    @checked
    def match(self, *parts: Part) -> ReadDraft:
        """Add to the pattern; after `hands_on`, to the pattern of the next stage."""
        draft = self._closed() if self._stage is not None else self
        return replace(draft, _clauses=(*draft._clauses, *trees_of(parts)))

    @checked
    def returns(self, *columns: Expr, distinct: bool = False, **named: Value) -> ReadDraft:
        """The columns of the result; a keyword is the name of a column."""
        return self._select("return", columns, distinct, named)

    @checked
    def hands_on(self, *columns: Expr, distinct: bool = False, **named: Value) -> ReadDraft:
        """The columns that are passed to the next stage (`with`)."""
        return self._select("with", columns, distinct, named)

    @checked
    def having(self, condition: Value) -> ReadDraft:
        return self._with(having=ast.Having(tree_of(condition)))

    @checked
    def order(self, *keys: Expr | Key) -> ReadDraft:
        """Sort by these keys; `x.desc()` sorts descending."""
        trees = tuple(
            ast.OrderKey(tree_of(key.expr), key.direction)
            if isinstance(key, Key)
            else ast.OrderKey(tree_of(key), None)
            for key in keys
        )
        return self._with(order=ast.Order(trees))

    @checked
    def limit(self, count: Value) -> ReadDraft:
        return self._with(limit=ast.Bound("limit", tree_of(count)))

    @checked
    def offset(self, count: Value) -> ReadDraft:
        return self._with(offset=ast.Bound("offset", tree_of(count)))

    def _body(self) -> ast.Read:
        if self._stage is None or self._stage.select.keyword != "return":
            raise InvalidArgumentError(
                f"The query {self.name!r} returns nothing yet.", hint="End it with returns(…)."
            )
        return ast.Read((*self._done, self._stage))

    def _select(
        self,
        keyword: ast.SelectKeyword,
        columns: tuple[Expr, ...],
        distinct: bool,
        named: dict[str, Value],
    ) -> ReadDraft:
        draft = self._closed() if self._stage is not None else self
        items = [ast.Projection(tree_of(column), None) for column in columns]
        items += [ast.Projection(tree_of(v), name_node(name)) for name, v in named.items()]
        match = ast.Match(draft._clauses) if draft._clauses else None
        select = ast.Select(keyword, distinct, tuple(items))
        return replace(draft, _stage=ast.Stage(match, select, None, None, None, None))

    def _closed(self) -> ReadDraft:
        assert self._stage is not None
        if self._stage.select.keyword == "return":
            raise InvalidArgumentError(f"The query {self.name!r} has returned already.")
        return replace(self, _done=(*self._done, self._stage), _clauses=(), _stage=None)

    def _with(self, **parts: object) -> ReadDraft:
        if self._stage is None:
            raise InvalidArgumentError(
                f"The query {self.name!r} returns nothing yet.", hint="Call returns(…) first."
            )
        values = {name: getattr(self._stage, name) for name in ast.Stage.FIELDS} | parts
        return replace(self, _stage=ast.Stage(*(values[name] for name in ast.Stage.FIELDS)))


@dataclass(frozen=True)
class WriteDraft(Built):
    """A mutation: statements in order."""

    _statements: tuple[ast.Statement, ...] = ()

    @checked
    def insert(self, type: str, **values: Value) -> WriteDraft:
        """A new row; an edge has its endpoints in `from_` and `to`."""
        return self._then(ast.Insert(name_node(type), _fields(values)))

    @checked
    def update(self, type: str, where: Value, **values: Value) -> WriteDraft:
        return self._then(ast.Update(name_node(type), _fields(values), tree_of(where)))

    @checked
    def delete(self, type: str, where: Value) -> WriteDraft:
        return self._then(ast.Delete(name_node(type), tree_of(where)))

    @checked
    def upsert(
        self,
        type: str,
        *,
        on_conflict: str = "update",
        updates: dict[str, Value] | None = None,
        **values: Value,
    ) -> WriteDraft:
        """Insert by key; `on_conflict` is update, replace, nothing or error."""
        policy = name_node(on_conflict)
        return self._then(
            ast.Upsert(name_node(type), _fields(values), policy, _fields(updates or {}))
        )

    def _body(self) -> ast.Write:
        if not self._statements:
            raise InvalidArgumentError(f"The mutation {self.name!r} changes nothing yet.")
        return ast.Write(self._statements)

    def _then(self, statement: ast.Statement) -> WriteDraft:
        return replace(self, _statements=(*self._statements, statement))


def _fields(values: dict[str, Value]) -> tuple[ast.Field, ...]:
    """`from` is a word of Python, so `from_` stands for it."""
    return tuple(
        ast.Field(name_node("from" if name == "from_" else name), tree_of(value))
        for name, value in values.items()
    )


@checked
def query(name: str = "built", description: str | None = None, /, **params: str) -> ReadDraft:
    """Start a read query. Keywords declare parameters with their types: `who="String"`."""
    return ReadDraft(name, tuple(params.items()), description)


@checked
def mutation(name: str = "built", description: str | None = None, /, **params: str) -> WriteDraft:
    """Start a mutation."""
    return WriteDraft(name, tuple(params.items()), description)
