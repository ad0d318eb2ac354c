"""Looking at a graph without asking it anything: snapshots, commits, schema, recoveries.

Guarantees: reads only.
Deliberately absent: printing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from omnigraph.arguments import checked
from omnigraph.commit import journal
from omnigraph.commit.journal import Sidecar
from omnigraph.errors import InvalidArgumentError
from omnigraph.history.log import walk
from omnigraph.history.refs import list_branches, read_branch
from omnigraph.history.resolve import Target, find_record
from omnigraph.lang import pg
from omnigraph.model.commit import Commit, CommitKind
from omnigraph.model.commitgraph import CommitGraph
from omnigraph.model.schematext import SchemaText
from omnigraph.model.snapshot import Snapshot
from omnigraph.operations.context import Context
from omnigraph.operations.requests import (
    FindCommit,
    ListCommits,
    ListRecoveries,
    PinSnapshot,
    ReadCommitGraph,
    ReadSchema,
)
from omnigraph.storage import auditlog


@checked
@dataclass(frozen=True, slots=True)
class CommitFilter:
    """Filter of commits; None disables a condition."""

    actor: str | None = None
    kind: CommitKind | None = None
    since_us: int | None = None

    def keeps(self, commit: Commit) -> bool:
        return (self.actor is None or commit.actor == self.actor) and (
            self.kind is None or commit.kind is self.kind
        )


@dataclass(frozen=True)
class Recoveries:
    """Pending sidecars, and the audit of finished recoveries."""

    pending: tuple[Sidecar, ...]
    audit: tuple[dict[str, Any], ...]


def snapshot(context: Context, request: PinSnapshot) -> Snapshot:
    return context.snapshot(request.target)


def schema(context: Context, request: ReadSchema) -> SchemaText:
    """The schema as `.pg` text, with the catalog that it was written from."""
    catalog = context.snapshot(request.target).catalog
    return SchemaText(pg.catalog_to_source(catalog), catalog)


def schema_source(context: Context, target: Target) -> str:
    """The schema as `.pg` text, written from what the graph accepted."""
    return pg.catalog_to_source(context.snapshot(target).catalog)


def commits(context: Context, request: ListCommits) -> Iterator[Commit]:
    """The commits that a branch is built on, newest first."""
    wanted = request.filter or CommitFilter()
    for commit in walk(context.root, read_branch(context.root, request.branch).id):
        if wanted.since_us is not None and commit.created_at_us < wanted.since_us:
            return
        if wanted.keeps(commit):
            yield commit


def commit_graph(context: Context, request: ReadCommitGraph) -> CommitGraph:
    """The newest commits of all branches together."""
    if request.limit < 1:
        raise InvalidArgumentError(f"A limit is at least 1, not {request.limit}.")
    branches = list_branches(context.root)
    found: dict[str, Commit] = {}
    heads: dict[str, str] = {}
    for branch in branches:
        for each in islice(walk(context.root, branch.id), request.limit):
            heads.setdefault(branch.name, each.id)
            found.setdefault(each.id, each)
    newest = sorted(found.values(), key=lambda each: (each.created_at_us, each.id), reverse=True)
    return CommitGraph(tuple(newest[: request.limit]), heads)


def commit(context: Context, request: FindCommit) -> Commit:
    return find_record(context.root, request.prefix, request.branch)


def recoveries(context: Context, request: ListRecoveries) -> Recoveries:
    return Recoveries(tuple(journal.pending(context.root)), tuple(auditlog.rows(context.root)))
