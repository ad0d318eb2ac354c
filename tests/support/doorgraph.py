"""A small graph for tests of the write door: three tables, and writes without a query language.

`new_graph` makes one; `write` goes through staging and the door as every operation does; `rows`
reads a snapshot back. A second `GraphRoot.at(uri)` shares nothing with the first and so stands for
another process as far as handles go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pyarrow as pa

from omnigraph.commit import door, journal
from omnigraph.commit.branches import create_branch
from omnigraph.commit.genesis import create_graph
from omnigraph.commit.idempotency import UsedKeyError
from omnigraph.history.log import BranchLog, line_of, walk
from omnigraph.history.manifestrows import advance, encode_state
from omnigraph.history.refs import MAIN, Branch, read_branch
from omnigraph.history.resolve import Target, resolve
from omnigraph.model.catalog import Catalog, EdgeType, NodeType, Property
from omnigraph.model.commit import Commit, CommitKind, FastForward, Proposal, StagedWrite
from omnigraph.model.schema_ir import with_hash
from omnigraph.model.snapshot import Snapshot
from omnigraph.model.types import Kind, ValueType
from omnigraph.model.ulid import new_ulid
from omnigraph.storage import auditlog
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.stagedwrites import Stager
from omnigraph.storage.table import open_table

ACTOR = "act-anna"
Rows = Mapping[str, int]


class HaltError(Exception):
    """Stands for a crash: nothing of ours catches it, so that every lock falls open as it flies."""


def _number(property_id: int) -> Property:
    return Property(property_id, "n", ValueType(Kind.I64, nullable=True), "n")


def catalog_of(types: int = 2) -> Catalog:
    """Node types `A`, `B`, … and the edge type `Link` between `A` and `B`."""
    names = [chr(ord("A") + i) if i < 26 else f"T{i}" for i in range(types)]
    nodes = tuple(NodeType(2 * i + 1, name, (_number(2 * i + 2),)) for i, name in enumerate(names))
    last = 2 * types
    link = EdgeType(last + 1, "Link", (_number(last + 2),), src_type="A", dst_type="B")
    return with_hash(Catalog(nodes=nodes, edges=(link,), next_id=last + 3))


def new_graph(uri: str, types: int = 2) -> GraphRoot:
    root = GraphRoot.at(uri)
    create_graph(root, catalog_of(types), "// a test schema\n", ACTOR)
    return root


def head(root: GraphRoot, branch: str = MAIN) -> Snapshot:
    return resolve(root, Target(branch=branch))


def propose(
    root: GraphRoot,
    tables: Mapping[str, Rows] | None = None,
    *,
    branch: str = MAIN,
    base: Snapshot | None = None,
    kind: CommitKind = CommitKind.MUTATE,
    actor: str = ACTOR,
    **more: Any,
) -> Proposal:
    """A proposal that upserts `{type: {id: n}}`, staged against `base` or the branch's head."""
    base = base or head(root, branch)
    staged = tuple(stage(root, base, name, rows) for name, rows in (tables or {}).items())
    return Proposal(base, staged, actor, kind, **more)


def stage(root: GraphRoot, base: Snapshot, name: str, rows: Rows) -> StagedWrite:
    table = base.catalog.node(name) or base.catalog.edge(name)
    assert table is not None
    ids = list(rows)
    columns: dict[str, Iterable[Any]] = {"id": ids}
    if isinstance(table, EdgeType):
        columns |= {"src": ids, "dst": ids}
    columns |= {p.column: pa.nulls(len(ids), p.type.to_arrow()) for p in table.properties}
    number = next(p.type.to_arrow() for p in table.properties if p.column == "n")
    columns["n"] = pa.array(list(rows.values()), number)
    stager = Stager(root, read_branch(root, base.branch).id)
    return stager.upsert(table, base.table(table.id), pa.table(columns))


def write(
    root: GraphRoot, tables: Mapping[str, Rows] | None = None, *, branch: str = MAIN, **more: Any
) -> Commit:
    try:
        return commit(root, propose(root, tables, branch=branch, **more))
    except UsedKeyError as used:
        return used.commit


def commit(root: GraphRoot, proposal: Proposal, **more: Any) -> Commit:
    """Publish a proposal that was prepared before; returns the first of its commits."""
    return commit_all(root, proposal, **more)[0]


def commit_all(root: GraphRoot, proposal: Proposal, **more: Any) -> list[Commit]:
    branch = proposal.base.branch
    return door.commit(root, branch, proposal.actor, proposal.kind, lambda line: proposal, **more)


def fast_forward(root: GraphRoot, branch: str, commits: Sequence[Commit], actor: str) -> Commit:
    """Let a branch take over another one's commits; returns its new head."""
    offer = FastForward(tuple(commits))
    return door.commit(root, branch, actor, CommitKind.MERGE, lambda line: offer)[-1]


def rows(root: GraphRoot, snapshot: Snapshot | str = MAIN) -> dict[str, dict[str, int]]:
    """Everything that a snapshot or a branch's head shows, as `{type: {id: n}}`."""
    shown = head(root, snapshot) if isinstance(snapshot, str) else snapshot
    found: dict[str, dict[str, int]] = {}
    for table in shown.catalog.tables():
        version = shown.table(table.id)
        if version is None:
            continue
        data = open_table(root.location, version).read(["id", "n"]).to_pydict()
        assert len(data["id"]) == len(set(data["id"])), f"ids repeat in {table.name}"
        assert len(data["id"]) == version.rows, f"the row count of {table.name} is wrong"
        found[table.name] = dict(sorted(zip(data["id"], data["n"], strict=True)))
    return found


def branch(root: GraphRoot, name: str, start: str = MAIN, sequence: int | None = None) -> Branch:
    """Begin a branch at another's head, or at one of its sequences."""
    branch_id = read_branch(root, start).id
    line = BranchLog(root, branch_id) if sequence is None else line_of(root, branch_id, sequence)
    return create_branch(root, name, line, sequence or line.state.head.sequence, ACTOR)


def audit_rows(root: GraphRoot) -> list[dict[str, Any]]:
    return auditlog.rows(root)


def pending(root: GraphRoot) -> list[str]:
    """The names of the sidecars that wait."""
    return list(root.objects.list(journal.DIRECTORY))


def log_of(root: GraphRoot, branch: str = MAIN) -> list[Commit]:
    """The whole history of a branch, newest first; checks that it is one unbroken line."""
    commits = list(walk(root, read_branch(root, branch).id))
    for newer, older in pairwise(commits):
        assert newer.parents[0] == older.id
        assert newer.sequence == older.sequence + 1
        assert newer.created_at_us > older.created_at_us
    assert commits[-1].sequence == 1
    return commits


def age(root: GraphRoot, count: int, branch: str = MAIN) -> None:
    """Give a branch a longer history: commits without content, published one by one, without the
    locks and checks that would only take time."""
    branch_id = read_branch(root, branch).id
    line = BranchLog(root, branch_id)
    image, state = line.image, line.state
    for _ in range(count):
        head = state.head
        commit = replace(
            head,
            id=new_ulid(),
            sequence=head.sequence + 1,
            parents=(head.id,),
            kind=CommitKind.MUTATE,
            created_at_us=head.created_at_us + 1,
            changes=(),
            dropped=(),
            idempotency_key=None,
        )
        state, sealed = advance(state, [commit], state.fence)
        image = root.manifest(branch_id).publish(image, encode_state(state), sealed)
