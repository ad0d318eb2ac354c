"""Mutations: queries of insert, update, upsert or delete statements.

Guarantees: statements are atomic; each sees the effects of those before it; all share one timestamp
and one commit. A predicate that matches nothing changes nothing, and if nothing changes there is no
commit.
Deliberately absent: concurrency (`writes.attempt`), and what predicates mean (`engines`).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import NoneType
from typing import Any

import orjson
import pyarrow as pa

from omnigraph.engines.embedded.mutation import Mutation, affected_rows
from omnigraph.engines.embedded.mutationrows import Moment
from omnigraph.engines.embedded.sharedinserts import can_share, insert_together
from omnigraph.engines.embedded.view import View
from omnigraph.errors import InvalidArgumentError, OmniGraphError
from omnigraph.history.log import BranchLog
from omnigraph.history.refs import read_branch
from omnigraph.history.resolve import head_snapshot
from omnigraph.ir.query import InsertEdge, InsertNode, Update, UpsertNode, WriteQuery
from omnigraph.lang import gq
from omnigraph.model.catalog import Catalog
from omnigraph.model.commit import CommitKind
from omnigraph.model.visibility import EVERYTHING, Visibility
from omnigraph.model.write import WriteResult
from omnigraph.operations.context import Context
from omnigraph.operations.requests import Mutate
from omnigraph.writes.groupcommit import write_in_group
from omnigraph.writes.request import (
    Conditions,
    Evaluated,
    EvaluatedTogether,
    Portable,
)
from omnigraph.writes.requiredvectors import RequiredVectors, required_vectors

# The fields of a request, and their types.
_TOLD: dict[str, tuple[type, ...]] = {
    "text": (str,),
    "name": (str, NoneType),
    "params": (dict,),
    "inserts_only": (bool,),
    "message": (str,),
    "details": (dict,),
}


@dataclass(frozen=True)
class MutationRequest(Portable):
    """A mutation text with its parameters. It is compiled against the current schema."""

    text: str
    conditions: Conditions
    name: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    is_strict: bool = False
    inserts_only: bool = False
    embed: RequiredVectors | None = None
    visibility: Visibility = EVERYTHING

    @property
    def joint(self) -> _SameInsert | None:
        alone = not self.inserts_only or self.embed is not None or self._is_restricted
        return None if alone else _SameInsert(self.text, self.name)

    @property
    def _is_restricted(self) -> bool:
        return not self.visibility.is_everything

    @property
    def kind(self) -> CommitKind:
        return CommitKind.MUTATE

    @property
    def fingerprint(self) -> str | None:
        plain = orjson.dumps(
            [self.text, self.name, dict(self.params)],
            default=repr,
            option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS,
        )
        return hashlib.blake2b(plain, digest_size=16).hexdigest()

    def to_text(self) -> bytes | None:
        conditions = self.conditions
        conditional = conditions.if_commit or conditions.idempotency_key
        # Another process may have another provider of embeddings, or none, and see other rows.
        must_stay = bool(
            self.is_strict
            or conditional
            or self.embed is not None
            or conditions.principal is None
            or self._is_restricted
        )
        told = {
            "text": self.text,
            "name": self.name,
            "params": dict(self.params),
            "inserts_only": self.inserts_only,
            "message": conditions.message,
            "details": dict(conditions.details),
        }
        if must_stay or not _is_plain(told):
            return None
        try:
            return orjson.dumps(told)
        except TypeError:  # a number of more than 64 bits, or a lone surrogate
            return None

    @classmethod
    def from_text(cls, told: Any, author: Conditions) -> MutationRequest:
        for name, kind in _TOLD.items():
            if not isinstance(told[name], kind):
                raise TypeError(f"{name} is {told[name]!r}")
        try:
            conditions = Conditions(
                author.actor,
                told["message"],
                details=told["details"],
                principal=author.principal,
            )
        except InvalidArgumentError as error:
            raise ValueError(error.message) from error
        return cls(
            told["text"],
            conditions,
            told["name"],
            told["params"],
            inserts_only=told["inserts_only"],
        )

    def evaluate(self, view: View) -> Evaluated:
        seen = view.snapshot.seen_through(self.visibility)
        query = compile_write(self.text, self.name, seen.catalog)
        params = gq.bind_params(query, self.params)
        moment = Moment(view.snapshot, params)
        mutation = Mutation(view, moment, embed=self.embed, visibility=self.visibility)
        for number, statement in enumerate(query.statements):
            mutation.run(statement, number)
        delta = mutation.finish()
        return Evaluated(delta, mutation.affected(delta))


@dataclass(frozen=True, slots=True)
class _SameInsert:
    """One text of inserts that several writers run with different parameters."""

    text: str
    name: str | None

    def evaluate(self, view: View, requests: Sequence[MutationRequest]) -> EvaluatedTogether | None:
        try:
            query = compile_write(self.text, self.name, view.snapshot.catalog)
            bound = [gq.bind_params(query, request.params) for request in requests]
        except OmniGraphError:  # the schema has changed; each request reports its own error
            return None
        moments = [Moment(view.snapshot, params) for params in bound]
        shared = insert_together(view, query.statements, moments)
        if shared is None:
            return None
        each = tuple(Evaluated(delta, affected_rows(delta)) for delta in shared.each)
        return EvaluatedTogether(shared.whole, each)


def mutate(context: Context, request: Mutate) -> WriteResult:
    """Run a mutation on a branch. `if_commit`: fail unless the head of the branch is that
    commit."""
    root = context.root
    # Errors in the text and its parameters are found before any lock is taken.
    log = BranchLog(root, read_branch(root, request.branch).id)
    snapshot = head_snapshot(root, request.branch, log)
    seen = snapshot.seen_through(context.visibility)
    query = compile_write(request.text, request.name, seen.catalog)
    bound = gq.bind_params(query, request.params or {})
    embed = _embedder(query, Moment(snapshot, bound), snapshot.catalog)
    write = MutationRequest(
        request.text,
        Conditions(
            context.actor,
            request.message,
            request.if_commit,
            request.idempotency_key,
            embed.details if embed else {},
            context.principal.digest,
        ),
        request.name,
        request.params or {},
        is_strict=changes_rows(query),
        inserts_only=can_share(query.statements),
        embed=embed,
        visibility=context.visibility,
    )
    # While a provider makes vectors the branch may move, so it is read again.
    return write_in_group(root, request.branch, write, None if embed else log)


def _embedder(query: WriteQuery, moment: Moment, catalog: Catalog) -> RequiredVectors | None:
    """The function that computes missing vectors of inserted rows, while no lock is held."""
    inserts = [
        (table, {a.property: a.value for a in statement.assignments})
        for statement in _inserts(query)
        if (table := catalog.node(statement.type_name) or catalog.edge(statement.type_name))
    ]
    embed = required_vectors(table for table, _ in inserts)
    if embed is None:
        return None
    for table, given in inserts:
        for item in table.properties:
            if item.embed is None or item.name in given or item.embed.source not in given:
                continue
            text = moment.value(given[item.embed.source])
            if isinstance(text, str):
                embed(table, pa.table({item.embed.source: [text]}))
    return embed


def _inserts(query: WriteQuery) -> list[InsertNode | InsertEdge | UpsertNode]:
    kinds = InsertNode | InsertEdge | UpsertNode
    return [statement for statement in query.statements if isinstance(statement, kinds)]


def compile_write(text: str, name: str | None, catalog: Catalog) -> WriteQuery:
    query = gq.compile_query(text, catalog, name).query
    if not isinstance(query, WriteQuery):
        raise InvalidArgumentError(
            f"{query.name} reads the graph; it changes nothing.",
            hint="Run it as a query, not as a mutation.",
        )
    return query


def _is_plain(value: Any) -> bool:
    """Whether a JSON round trip preserves the value."""
    if isinstance(value, dict):
        return all(type(key) is str and _is_plain(item) for key, item in value.items())
    if type(value) is list:
        return all(map(_is_plain, value))
    return value is None or type(value) in (str, int, bool) or _is_finite(value)


def _is_finite(value: Any) -> bool:
    return type(value) is float and math.isfinite(value)


def changes_rows(query: WriteQuery) -> bool:
    """Whether a query changes or removes rows that it finds, rather than only adding some."""
    return query.deletes or any(isinstance(s, Update) for s in query.statements)
