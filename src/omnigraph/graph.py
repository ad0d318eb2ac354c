"""`Graph`: one graph, on one branch, as an object.

    graph = omnigraph.open("shop")
    graph.query("query q() { match { $p: Person } return { $p.name } }").rows()

A thin facade over `operations`: every method is one call. Guarantees: cheap to make, safe to share
between threads, holds nothing that must be closed.
Deliberately absent: logic of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from omnigraph.arguments import checked, microseconds
from omnigraph.errors import DeniedError, InvalidArgumentError
from omnigraph.exhaustion import reports_exhaustion
from omnigraph.history.refs import MAIN, Tag
from omnigraph.history.resolve import Target
from omnigraph.model.change import EVERYTHING, Change, ChangeFilter
from omnigraph.model.commit import Commit
from omnigraph.model.feed import Block, FeedPage
from omnigraph.model.principal import Principal
from omnigraph.model.result import Result
from omnigraph.model.snapshot import Snapshot
from omnigraph.model.write import WriteResult
from omnigraph.operations import lifecycle
from omnigraph.operations import requests as r
from omnigraph.operations.context import Context
from omnigraph.operations.verbs import run as run_verb

if TYPE_CHECKING:  # what only some calls need is loaded by those calls
    from omnigraph.builder import ReadDraft, WriteDraft
    from omnigraph.commit.damage import Loss
    from omnigraph.engines.base import Options
    from omnigraph.engines.explanation import Explanation
    from omnigraph.engines.spark.jobevents import ProgressEvent
    from omnigraph.engines.spark.settings import SparkSettings
    from omnigraph.history.branchlist import BranchInfo
    from omnigraph.model.commitgraph import CommitGraph
    from omnigraph.model.schematext import SchemaText
    from omnigraph.operations import inspection
    from omnigraph.operations.algorithm import AlgorithmOptions
    from omnigraph.operations.blob import BlobStat
    from omnigraph.operations.changes import Baseline
    from omnigraph.operations.cleanup import Cleanup
    from omnigraph.operations.copy import Copied
    from omnigraph.operations.embed import EmbedResult
    from omnigraph.operations.export import ExportResult
    from omnigraph.operations.load import LoadResult
    from omnigraph.operations.maintain import Upkeep
    from omnigraph.operations.merge import MergePreview, MergeResult
    from omnigraph.operations.migrate import SchemaChange, SchemaPlan
    from omnigraph.operations.preparedquery import PreparedQuery
    from omnigraph.operations.reconcile import Bounds, Lag, Reconciler
    from omnigraph.operations.repair import Repair
    from omnigraph.operations.stats import Stats
    from omnigraph.operations.verification import Verification

R = TypeVar("R")


@reports_exhaustion
@checked
class Graph:
    """One branch of the graph at an address."""

    def __init__(self, context: Context, branch: str = MAIN, pinned: Target | None = None) -> None:
        self._context = context
        self.branch_name = branch
        self._pinned = pinned

    def _repr_html_(self) -> str:
        from omnigraph.model import html

        snapshot = self.snapshot()
        rows = [
            {"kind": str(t.kind), "type": t.name, "entities": v.rows if v else 0}
            for t, v in ((t, snapshot.table(t.id)) for t in snapshot.catalog.tables())
        ]
        caption = f"{self.uri}, {self.branch_name} at {snapshot.commit_id}"
        return html.table(("kind", "type", "entities"), rows, caption)

    def __repr__(self) -> str:
        pinned = "" if self._pinned is None else f", commit={self._pinned.commit!r}"
        return f"Graph({self.uri!r}, branch={self.branch_name!r}{pinned})"

    @property
    def uri(self) -> str:
        return self._context.root.uri

    @property
    def actor(self) -> str:
        """The id of the principal, which commits record."""
        return self._context.actor

    @property
    def principal(self) -> Principal:
        """The principal that verbs are admitted for."""
        return self._context.principal

    def on(self, branch: str) -> Graph:
        """The same graph on another branch; a pinned graph is pinned no longer."""
        return Graph(replace(self._context, is_pinned=False), branch)

    def at(
        self,
        *,
        branch: str | None = None,
        commit: str | None = None,
        version: int | None = None,
        time: datetime | None = None,
        tag: str | None = None,
    ) -> Graph:
        """The graph pinned to one state: every read returns that state, whatever is written later.

        Data, schema, blobs and exports are read at the pinned state. Commits, changes, statistics
        and maintenance are those of the branch. A pinned graph cannot be written, but branches
        and tags can be created at its state.

        Args:
            branch: The branch; by default the branch of this graph. Alone: its head as it is now.
            commit: The id of a commit, or a unique prefix of it.
            version: The number of a commit on the branch.
            time: The state of the branch at this time; without a time zone it is local time.
            tag: The commit of a tag.

        Returns:
            A graph that is read-only.

        Raises:
            InvalidArgumentError: Several of commit, version, time and tag are given.
            NotFoundError: There is no such branch, commit, version or tag.

        Example:
            before = graph.at(version=2)
            before.query("query q() { match { $p: Person } return { $p.name } }")
        """
        name = branch or self.branch_name
        moment = None if time is None else microseconds(time, "time")
        wanted = r.PinSnapshot(Target(name, commit, version, moment, tag))
        found = run_verb(self._context, wanted)
        context = replace(self._context, is_pinned=True)
        return Graph(context, name, Target(name, commit=found.commit_id))

    def acting_as(self, actor: str | Principal) -> Graph:
        """The same graph, used by another principal; an id alone has no groups and attributes."""
        return Graph(self._context.acting_as(actor), self.branch_name, self._pinned)

    @property
    def durability(self) -> str:
        """The durability of acknowledged writes: `power` or `process`."""
        return str(self._context.root.durability)

    @property
    def losses(self) -> tuple[Loss, ...]:
        """The damage found by opening, and the commits lost on each branch; normally empty."""
        return self._context.losses

    def with_durability(self, durability: str) -> Graph:
        """The same graph with another durability. `power`: acknowledged commits survive a power
        failure; `process`: they survive only the end of the process."""
        return Graph(self._context.with_durability(durability), self.branch_name, self._pinned)

    def set_durability(self, durability: str) -> None:
        """Store the default durability in the graph, for later opens. This handle does not
        change."""
        self._run(r.SetDurability(durability))

    def refresh(self) -> None:
        """Complete interrupted writes on this branch that can be rolled forward."""
        self._run(r.Refresh(self.branch_name))

    def recover(self) -> None:
        """Complete or roll back interrupted writes on all branches, as opening does."""
        self._run(r.Recover())

    def query(
        self,
        text: str | ReadDraft,
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
        *,
        commit: str | None = None,
        version: int | None = None,
        at: datetime | None = None,
        tag: str | None = None,
        engine: str = "embedded",
        options: Options | None = None,
        spark: SparkSettings | None = None,
    ) -> Result:
        """Run a read query on the head of the branch or on an older state, in this process or, with
        the engine `spark`, on Spark."""
        target = self._target(commit, version, at, tag)
        return self._run(
            r.Query(str(text), name, params or {}, None, target, engine, options, spark)
        )

    def prepare(self, text: str | ReadDraft, name: str | None = None) -> PreparedQuery:
        """Compile and plan a read query, to run it many times.

        Args:
            text: A text with one query, or with several.
            name: Which of several queries.

        Returns:
            A callable that takes the parameters and returns a `Result`. It reads this branch as it
            is at each call, and is planned again when the schema changes.

        Raises:
            QueryError: The text does not compile against the schema.
            InvalidArgumentError: The query changes the graph.
        """
        from omnigraph.operations.preparedquery import KeptPlan, PreparedQuery

        kept, target = KeptPlan(), self._target()
        self._run(r.Explain(str(text), name, target=target, kept=kept))
        return PreparedQuery(
            lambda params, options: self._run(
                r.Query(str(text), name, params, target=target, options=options, kept=kept)
            )
        )

    def explain(
        self,
        text: str | ReadDraft,
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
        *,
        run: bool = False,
        commit: str | None = None,
        version: int | None = None,
        at: datetime | None = None,
        tag: str | None = None,
        engine: str = "embedded",
        options: Options | None = None,
        spark: SparkSettings | None = None,
    ) -> Explanation:
        """The plan of a read query; with `run`, also execute it and show rows and time of each
        step."""
        target = self._target(commit, version, at, tag)
        return self._run(
            r.Explain(str(text), name, params or {}, None, target, run, engine, options, spark)
        )

    def mutate(
        self,
        text: str | WriteDraft,
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
        *,
        message: str = "",
        if_commit: str | None = None,
        idempotency_key: str | None = None,
        durability: str | None = None,
    ) -> WriteResult:
        """Run a mutation as one commit. `if_commit`: fail unless the head of the branch is this
        commit."""
        return run_verb(
            self._context.with_durability(durability),
            r.Mutate(
                str(text), name, params, self.branch_name, message, if_commit, idempotency_key
            ),
        )

    def ingest(
        self,
        data: Any,
        mode: str = "append",
        *,
        type: str | None = None,
        types: Iterable[str] = (),
        edge_key: str | Iterable[str] = (),
        message: str = "",
        if_commit: str | None = None,
        idempotency_key: str | None = None,
        durability: str | None = None,
    ) -> WriteResult:
        """Write rows as one commit, in this process.

        `data` is a path or bytes of JSONL envelopes, envelopes as dicts, or rows of one `type`: an
        Arrow table, a pandas or polars frame, dicts. `mode` is append, merge or overwrite.
        `edge_key` lists the properties that identify edges without an id, such as `("src", "dst")`.
        """
        request = r.Ingest(
            data,
            mode,
            type=type,
            types=types,
            edge_key=edge_key,
            branch=self.branch_name,
            message=message,
            if_commit=if_commit,
            idempotency_key=idempotency_key,
        )
        return run_verb(self._context.with_durability(durability), request)

    def load(
        self,
        source: Any,
        mode: str = "append",
        *,
        type: str | None = None,
        mapping: Any = None,
        format: str | None = None,
        types: Iterable[str] = (),
        edge_key: str | Iterable[str] = (),
        engine: str = "spark",
        on_error: str = "fail",
        rejects: str | None = None,
        embed: bool = False,
        message: str = "",
        if_commit: str | None = None,
        idempotency_key: str | None = None,
        spark: SparkSettings | None = None,
        progress: Callable[[ProgressEvent], None] | None = None,
        durability: str | None = None,
    ) -> LoadResult:
        """Load files, folders, tables or frames of any size as one commit, on Spark.

        `source` is an address, a pattern, a folder, `table:NAME` or a list of those; or a Spark
        DataFrame, an Arrow table or a frame of one `type`; or a dict of frames by type. `edge_key`
        lists the properties that identify edges without an id, such as `("src", "dst")`.
        """
        from omnigraph.operations import load as loading

        options = loading.LoadOptions(
            mode=mode,
            types=tuple(types),
            edge_key=loading.edge_key_names(edge_key),
            branch=self.branch_name,
            message=message,
            if_commit=if_commit,
            idempotency_key=idempotency_key,
            engine=engine,
            on_error=on_error,
            rejects=rejects,
            embed=embed,
            spark=spark,
            progress=progress,
        )
        request = r.Load(source, type, mapping, format, options)
        return run_verb(self._context.with_durability(durability), request)

    def embed(
        self,
        *,
        types: Iterable[str] = (),
        select: Iterable[str] = (),
        everything: bool = False,
        clean: bool = False,
        message: str = "",
        engine: str = "embedded",
        spark: SparkSettings | None = None,
        progress: Callable[[ProgressEvent], None] | None = None,
    ) -> EmbedResult:
        """Compute the vectors of `@embed` properties that are missing or older than their texts, in
        one commit; with `everything`, recompute all of them; with `clean`, remove them.

        `select` restricts the rows: `Type:property=value`.
        """
        from omnigraph.operations import embed as embedding

        options = embedding.EmbedOptions(
            types=tuple(types),
            select=tuple(select),
            everything=everything,
            clean=clean,
            branch=self.branch_name,
            message=message,
            engine=engine,
            spark=spark,
            progress=progress,
        )
        return self._run(r.Embed(options))

    def count_embed(
        self,
        *,
        types: Iterable[str] = (),
        select: Iterable[str] = (),
        everything: bool = False,
        clean: bool = False,
    ) -> dict[str, int]:
        """The number of rows of each type that `embed` would change. Changes nothing."""
        from omnigraph.operations import embed as embedding

        options = embedding.EmbedOptions(
            tuple(types), tuple(select), everything, clean, self.branch_name
        )
        return self._run(r.CountEmbed(options))

    def export(
        self,
        place: str | Path,
        *,
        format: str | None = None,
        types: Iterable[str] = (),
        engine: str = "embedded",
        overwrite: bool = False,
        commit: str | None = None,
        version: int | None = None,
        at: datetime | None = None,
        tag: str | None = None,
        spark: SparkSettings | None = None,
        progress: Callable[[ProgressEvent], None] | None = None,
    ) -> ExportResult:
        """Export the head of the branch, or an older state, to a file or a folder."""
        from omnigraph.operations import export as exporting

        options = exporting.ExportOptions(format, tuple(types), engine, overwrite, spark, progress)
        target = self._target(commit, version, at, tag)
        return self._run(r.Export(str(place), target, options))

    def algorithm(
        self,
        name: str,
        options: AlgorithmOptions | None = None,
        *,
        commit: str | None = None,
        version: int | None = None,
        at: datetime | None = None,
        tag: str | None = None,
    ) -> Any:
        """Run a graph algorithm on Spark: degree, components, pagerank, labels, triangles, paths,
        core. Returns a Spark DataFrame with `type`, `id` and the results."""
        return self._run(r.RunAlgorithm(name, self._target(commit, version, at, tag), options))

    def write_algorithm(
        self,
        name: str,
        property: str,
        options: AlgorithmOptions | None = None,
        *,
        message: str = "",
    ) -> LoadResult:
        """Run a graph algorithm and store its result as a property, in one commit."""
        return self._run(r.WriteAlgorithm(name, property, self.branch_name, options, message))

    def copy(self, place: str | Path) -> Copied:
        """Copy the whole graph to an empty address, with branches, tags and history."""
        return self._run(r.CopyGraph(str(place)))

    def export_lines(
        self,
        *,
        types: Iterable[str] = (),
        commit: str | None = None,
        version: int | None = None,
        at: datetime | None = None,
        tag: str | None = None,
    ) -> Iterator[bytes]:
        """An export as JSONL, in chunks of bytes."""
        return self._run(r.ExportLines(self._target(commit, version, at, tag), tuple(types)))

    def snapshot(
        self,
        *,
        commit: str | None = None,
        version: int | None = None,
        at: datetime | None = None,
        tag: str | None = None,
    ) -> Snapshot:
        """The snapshot that a query would read."""
        return self._run(r.PinSnapshot(self._target(commit, version, at, tag)))

    def schema(self) -> SchemaText:
        """The schema of the branch as `.pg` text; a notebook displays it as tables."""
        return self._run(r.ReadSchema(self._target()))

    def plan_schema(
        self, source: str, *, allow_data_loss: bool = False, file: str | None = None
    ) -> SchemaPlan:
        """The steps of applying this schema. Changes nothing."""
        return self._run(r.PlanSchema(source, self.branch_name, allow_data_loss, file))

    def apply_schema(
        self,
        source: str,
        *,
        allow_data_loss: bool = False,
        message: str = "",
        file: str | None = None,
        engine: str | None = None,
        spark: SparkSettings | None = None,
    ) -> SchemaChange:
        """Apply a schema to the branch and its data, in one commit. `engine` selects where rows are
        written; by default on Spark if there are millions."""
        return self._run(
            r.ApplySchema(source, self.branch_name, allow_data_loss, message, file, engine, spark)
        )

    def commits(self, filter: inspection.CommitFilter | None = None) -> Iterator[Commit]:
        """The commits of the branch, newest first."""
        return self._run(r.ListCommits(self.branch_name, filter))

    def commit(self, prefix: str) -> Commit:
        """One commit, by its id or a unique prefix of it."""
        return self._run(r.FindCommit(prefix, self.branch_name))

    def commit_graph(self, limit: int = 50) -> CommitGraph:
        """The graph of the newest commits of all branches; a notebook displays it as a picture."""
        return self._run(r.ReadCommitGraph(limit))

    def branches(self) -> list[BranchInfo]:
        """Every branch with its head, and the commits it is ahead of and behind its parent."""
        return self._run(r.ListBranches())

    @contextmanager
    def branch(
        self, name: str | None = None, *, merge: bool = True, message: str = ""
    ) -> Iterator[Graph]:
        """A temporary branch for a `with` block, created at the head of this branch.

        At the end it is merged into this branch and deleted; with `merge=False`, or if the block
        fails, it is only deleted. If the merge has a conflict, it raises and keeps the branch.
        """
        from omnigraph.operations.tempbranch import scratch

        if merge and self._pinned is not None:
            raise DeniedError(
                "A branch cannot be merged into a pinned state.",
                hint="Use `merge=False`, or begin at `graph.on(branch)`.",
            )
        home = self.on(self.branch_name)
        with scratch(home._run, name, self._target(), merges=merge, message=message) as made:
            yield self.on(made)

    def create_branch(
        self,
        name: str,
        *,
        commit: str | None = None,
        version: int | None = None,
        at: datetime | None = None,
        tag: str | None = None,
    ) -> Graph:
        """Create a branch at the head, or at an older state; returns the graph on it."""
        self._run(r.CreateBranch(name, self._target(commit, version, at, tag)))
        return self.on(name)

    def delete_branch(self, name: str, *, with_children: bool = False) -> None:
        self._run(r.DeleteBranch(name, with_children))

    def rename_branch(self, old: str, new: str) -> None:
        self._run(r.RenameBranch(old, new))

    def merge(
        self,
        source: str,
        *,
        strategy: str | None = None,
        strategies: Mapping[str, str] | None = None,
        granularity: str = "property",
        resolutions: str | None = None,
        delete_branch: bool = False,
        message: str = "",
        engine: str | None = None,
        spark: SparkSettings | None = None,
    ) -> MergeResult:
        """Merge another branch into this one, as one commit.

        `strategy` (ours or theirs) resolves conflicts, `strategies` does so by type name;
        `resolutions` is the text of an edited conflicts file. Without them a conflict raises
        MergeConflictError and nothing is written. `engine` (embedded or spark) selects where tables
        are compared; the default depends on their size.
        """
        from omnigraph.operations import merge as merging

        options = merging.options(
            strategy,
            strategies or {},
            granularity,
            resolutions,
            message,
            delete_branch,
            engine,
            spark,
        )
        return self._run(r.Merge(source, self.branch_name, options))

    def preview_merge(
        self,
        source: str,
        *,
        strategy: str | None = None,
        strategies: Mapping[str, str] | None = None,
        granularity: str = "property",
        resolutions: str | None = None,
        engine: str | None = None,
        spark: SparkSettings | None = None,
    ) -> MergePreview:
        """The changes and conflicts of a merge. Writes nothing."""
        from omnigraph.operations import merge as merging

        options = merging.options(
            strategy, strategies or {}, granularity, resolutions, engine=engine, spark=spark
        )
        return self._run(r.PreviewMerge(source, self.branch_name, options))

    def revert(
        self,
        commit: str,
        *,
        strategy: str | None = None,
        strategies: Mapping[str, str] | None = None,
        granularity: str = "property",
        resolutions: str | None = None,
        message: str = "",
    ) -> Commit | None:
        """Undo a commit of this branch with a new commit; None if there is nothing to undo.
        Conflicts with later commits are resolved as in `merge`."""
        from omnigraph.operations import merge as merging

        options = merging.options(strategy, strategies, granularity, resolutions, message)
        return self._run(r.Revert(commit, self.branch_name, options)).commit

    def cherry_pick(
        self,
        commit: str,
        *,
        strategy: str | None = None,
        strategies: Mapping[str, str] | None = None,
        granularity: str = "property",
        resolutions: str | None = None,
        message: str = "",
    ) -> Commit | None:
        """Apply the changes of a commit of another branch; None if the branch has them already.
        Conflicts are resolved as in `merge`."""
        from omnigraph.operations import merge as merging

        options = merging.options(strategy, strategies, granularity, resolutions, message)
        return self._run(r.CherryPick(commit, self.branch_name, options)).commit

    def rebase(
        self,
        onto: str = MAIN,
        *,
        strategy: str | None = None,
        strategies: Mapping[str, str] | None = None,
        granularity: str = "property",
        resolutions: str | None = None,
    ) -> tuple[Commit, ...]:
        """Repeat the commits of this branch on top of another branch; returns the new commits.
        Conflicts are resolved as in `merge`; `theirs` are the repeated commits."""
        from omnigraph.operations import merge as merging

        options = merging.options(strategy, strategies, granularity, resolutions)
        return self._run(r.Rebase(self.branch_name, onto, options)).commits

    def diff(
        self,
        before: str | Target,
        after: str | Target,
        filter: ChangeFilter = EVERYTHING,
        *,
        engine: str = "embedded",
        spark: SparkSettings | None = None,
    ) -> Iterator[Change]:
        """The differences between two states, entity by entity. A state is a branch,
        branch@version, a tag or a commit. With the engine `spark`, tables are compared there."""
        return self._run(r.Diff(before, after, filter, engine, spark))

    def commit_changes(self, commit: str, filter: ChangeFilter = EVERYTHING) -> Iterator[Change]:
        """The changes of a commit, compared with its first parent."""
        return self._run(r.ReadCommitChanges(commit, self.branch_name, filter))

    def commit_changes_page(
        self,
        commit: str,
        filter: ChangeFilter = EVERYTHING,
        *,
        page_token: str | None = None,
        limit: int = 1000,
    ) -> FeedPage:
        """One page of the changes of a commit."""
        return self._run(
            r.ReadCommitChangesPage(commit, self.branch_name, filter, page_token, limit)
        )

    def poll_changes(
        self,
        filter: ChangeFilter = EVERYTHING,
        *,
        start: str = "now",
        cursor: str | None = None,
        page_token: str | None = None,
        limit: int = 1000,
    ) -> FeedPage:
        """One page of the change feed, starting at `now`, `beginning`, `after:<commit>`, a cursor
        or a page token."""
        return self._run(r.PollChanges(self.branch_name, filter, start, cursor, page_token, limit))

    def changes(
        self, filter: ChangeFilter = EVERYTHING, *, start: str = "now", cursor: str | None = None
    ) -> Iterator[tuple[Block, str]]:
        """The change feed up to the head, commit by commit, each with the cursor after it."""
        return self._run(r.FollowChanges(self.branch_name, filter, start, cursor))

    def baseline(self, filter: ChangeFilter = EVERYTHING) -> Iterator[dict[str, Any]]:
        """The newest state as records; the last record contains the cursor to continue from."""
        return self._run(r.StreamBaseline(self.branch_name, filter))

    def install_baseline(self, path: str | Path, filter: ChangeFilter = EVERYTHING) -> Baseline:
        """Write the newest state to a file durably; returns its cursor."""
        return self._run(r.InstallBaseline(Path(path), self.branch_name, filter))

    def tags(self) -> list[Tag]:
        return self._run(r.ListTags())

    def create_tag(self, name: str, *, commit: str | None = None, message: str = "") -> Tag:
        """Tag the head of the branch, or an older commit, so that it stays readable."""
        return self._run(r.CreateTag(name, self._target(commit), message))

    def delete_tag(self, name: str) -> None:
        self._run(r.DeleteTag(name))

    def recoveries(self) -> inspection.Recoveries:
        """Pending and finished recoveries."""
        return self._run(r.ListRecoveries())

    def stats(self, *, disk: bool = False) -> Stats:
        """Statistics of the branch: rows, disk usage, index coverage."""
        return self._run(r.ReadStats(self.branch_name, disk))

    def verify(self, *, quick: bool = False) -> Verification:
        """Check the consistency of manifests, tables, indexes and constraints. Changes nothing."""
        return self._run(r.Verify(quick))

    def plan_optimize(
        self, *, types: Collection[str] | None = None, compact: bool = True
    ) -> Upkeep:
        """The work that `optimize` (without `compact`: `ensure_indices`) would do. Changes
        nothing."""
        return self._run(r.PlanOptimize(self.branch_name, types, compact))

    def optimize(
        self,
        *,
        types: Collection[str] | None = None,
        report: Callable[[str], None] | None = None,
        engine: str = "embedded",
        spark: SparkSettings | None = None,
    ) -> Upkeep:
        """Compact files, update and build indexes, and store the adjacency lists of large edge
        types. With the engine `spark`, executors write the files."""
        return self._run(r.Optimize(self.branch_name, types, report, engine, spark))

    def ensure_indices(
        self,
        *,
        types: Collection[str] | None = None,
        report: Callable[[str], None] | None = None,
        engine: str = "embedded",
        spark: SparkSettings | None = None,
    ) -> Upkeep:
        """Build every declared index that is missing; with the engine `spark`, on executors."""
        return self._run(r.EnsureIndices(self.branch_name, types, report, engine, spark))

    def lag(self) -> Lag:
        """The unindexed rows and small files of the branch."""
        return self._run(r.MeasureLag(self.branch_name))

    def reconciler(self, *, bounds: Bounds | None = None, interval_s: float = 30.0) -> Reconciler:
        """A background worker that keeps the branch optimized; use it as a context manager."""
        return self._run(r.Reconcile(self.branch_name, bounds, interval_s))

    def repair(
        self, *, confirm: bool = False, force: bool = False, discard: bool = False
    ) -> Repair:
        """Classify tables that are newer than the manifest; with `confirm`, repair them."""
        return self._run(r.RepairDrift(self.branch_name, confirm, force, discard))

    def cleanup(
        self,
        *,
        keep: int | None = None,
        older_than: timedelta | None = None,
        grace: timedelta = timedelta(hours=1),
        confirm: bool = False,
    ) -> Cleanup:
        """Remove history that neither rule keeps, on all branches; without `confirm`, a preview."""
        from omnigraph.commit.retention import Policy

        older_than_s = None if older_than is None else older_than.total_seconds()
        policy = Policy(keep, older_than_s, grace.total_seconds())
        return self._run(r.CleanUp(policy, confirm))

    def blob_stat(
        self,
        type_name: str,
        id: str,
        property: str,
        *,
        commit: str | None = None,
        version: int | None = None,
        at: datetime | None = None,
        tag: str | None = None,
    ) -> BlobStat:
        """Size and etag of a blob."""
        from omnigraph.operations import blob as blobs

        selector = blobs.BlobSelector(type_name, id, property)
        return self._run(r.StatBlob(selector, self._target(commit, version, at, tag)))

    def blob(
        self,
        type_name: str,
        id: str,
        property: str,
        *,
        offset: int = 0,
        length: int | None = None,
        commit: str | None = None,
        version: int | None = None,
        at: datetime | None = None,
        tag: str | None = None,
    ) -> Iterator[bytes]:
        """The bytes of a blob, or a range of them, in chunks."""
        from omnigraph.operations import blob as blobs

        selector = blobs.BlobSelector(type_name, id, property)
        target = self._target(commit, version, at, tag)
        return self._run(r.ReadBlob(selector, target, offset, length))[1]

    def _run(self, request: r.Request[R]) -> R:
        return run_verb(self._context, request)

    def _target(
        self,
        commit: str | None = None,
        version: int | None = None,
        at: datetime | None = None,
        tag: str | None = None,
    ) -> Target:
        moment = None if at is None else microseconds(at, "at")
        if self._pinned is None:
            return Target(self.branch_name, commit, version, moment, tag)
        if any(each is not None for each in (commit, version, moment, tag)):
            raise InvalidArgumentError(
                "The graph is pinned to one state.",
                hint="Name another state with `graph.at(...)`.",
            )
        return self._pinned


@reports_exhaustion
@checked
def init(
    uri: str | Path,
    schema: str,
    *,
    actor: str | Principal | None = None,
    external_blobs: Iterable[str] | None = None,
    durability: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Graph:
    """Make an empty graph with this schema text at an address. A `durability` that is given is
    kept in the graph, for everybody who opens it. `storage_options`: see `open`."""
    context = lifecycle.init_graph(
        str(uri),
        schema,
        actor=actor,
        external_blobs=external_blobs,
        durability=durability,
        storage_options=storage_options,
    )
    return Graph(context)


@reports_exhaustion
@checked
def open(
    uri: str | Path,
    *,
    branch: str = MAIN,
    actor: str | Principal | None = None,
    read_only: bool = False,
    external_blobs: Iterable[str] | None = None,
    durability: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Graph:
    """Open the graph at an address. Unless read-only, this recovers interrupted writes first.

    `external_blobs` are places such as `s3://bucket/prefix/` below which new blobs may refer to
    files outside of the graph; by default none, or what the environment names. `durability` is
    `power` (what is acknowledged survives a power cut) or `process` (it survives the end of the
    process alone); by default what the graph was made with, and that is `power`.
    `storage_options` are settings of S3 for this graph alone, such as `region`, `endpoint`,
    `access_key_id` and `secret_access_key`; what they leave out comes from the `AWS_*` variables.
    """
    context = lifecycle.open_graph(
        str(uri),
        actor=actor,
        read_only=read_only,
        external_blobs=external_blobs,
        durability=durability,
        storage_options=storage_options,
    )
    return Graph(context, branch)
