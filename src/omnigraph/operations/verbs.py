"""The list of verbs, and `run`, the only way to call one.

    run(context, Query("query q() { match { $p: Person } return { $p.name } }"))

Each entry has a name, the request that the verb takes, the function that carries it out, the action
and the resource that are admitted first, and whether the verb is long: one that may run for minutes
and reports progress. The result is the type parameter of the request.

Guarantees: a verb runs only after `admit` let it pass. Functions are loaded when they are first
called, so that this module loads neither an engine nor Lance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from omnigraph.errors import InvalidArgumentError
from omnigraph.operations import requests as r
from omnigraph.operations import resources as on
from omnigraph.operations.admission import Action, Resource, admit

if TYPE_CHECKING:
    from omnigraph.operations.context import Context

R = TypeVar("R")


@dataclass(frozen=True)
class Verb:
    """One thing that can be done with a graph. `function` is `module:name` in `operations`."""

    name: str
    request: type[r.Request[Any]]
    function: str
    action: Action | Callable[[Any], Action]
    resource: Callable[[Any], Resource]
    is_long: bool = False

    @cached_property
    def module(self) -> ModuleType:
        """The module of the function; loaded when it is first needed."""
        return import_module(f"omnigraph.operations.{self.function.partition(':')[0]}")

    @property
    def call(self) -> Callable[[Context, Any], Any]:
        found: Callable[[Context, Any], Any] = getattr(self.module, self.function.partition(":")[2])
        return found

    @property
    def result(self) -> str:
        """The type of the result, as it is written in the request."""
        for base in getattr(self.request, "__orig_bases__", ()):
            for found in get_args(base):
                return str(getattr(found, "__forward_arg__", getattr(found, "__name__", found)))
        raise TypeError(f"{self.request.__name__} does not name a result")

    @property
    def is_stream(self) -> bool:
        """Whether the result is read piece by piece."""
        return self.result.startswith("Iterator[")


def run(context: Context, request: r.Request[R]) -> R:
    """Carry a request out, if its principal may.

    Raises:
        DeniedError: The principal may not, or the context is read-only.
        InvalidArgumentError: There is no verb for the request.
    """
    verb = BY_REQUEST.get(type(request))
    if verb is None:
        raise InvalidArgumentError(
            f"No verb takes a {type(request).__name__}.",
            hint="Build one of the requests in `omnigraph.operations.requests`.",
        )
    action = verb.action if isinstance(verb.action, Action) else verb.action(request)
    admit(context, action, verb.resource(request))
    if verb.name not in RESTRICTABLE:
        context.whole(f"The operation {verb.name}")
    result: R = verb.call(context, request)
    return result


def _if_confirmed(action: Action) -> Callable[[Any], Action]:
    """What only reports unless it is confirmed."""
    return lambda request: action if request.confirm else Action.READ


_A = Action
VERBS: tuple[Verb, ...] = (
    Verb("query", r.Query, "query:query", _A.READ, on.at_target),
    Verb("explain", r.Explain, "explain:explain", _A.READ, on.at_target),
    Verb("snapshot", r.PinSnapshot, "inspection:snapshot", _A.READ, on.at_target),
    Verb("schema", r.ReadSchema, "inspection:schema", _A.READ, on.at_target),
    Verb("commits", r.ListCommits, "inspection:commits", _A.READ, on.on_branch),
    Verb("commit", r.FindCommit, "inspection:commit", _A.READ, on.graph),
    Verb("commit_graph", r.ReadCommitGraph, "inspection:commit_graph", _A.READ, on.graph),
    Verb("diff", r.Diff, "diff:diff", _A.READ, on.graph),
    Verb("export", r.Export, "export:export", _A.EXPORT, on.exported, is_long=True),
    Verb("export_lines", r.ExportLines, "export:lines", _A.EXPORT, on.at_target, is_long=True),
    Verb("copy", r.CopyGraph, "copy:copy_graph", _A.EXPORT, on.graph, is_long=True),
    Verb("algorithm", r.RunAlgorithm, "algorithm:algorithm", _A.READ, on.at_target, is_long=True),
    Verb("blob_stat", r.StatBlob, "blob:stat_blob", _A.READ, on.at_blob),
    Verb("blob", r.ReadBlob, "blob:read_range", _A.READ, on.at_blob),
    Verb("mutate", r.Mutate, "mutate:mutate", _A.CHANGE, on.on_branch),
    Verb("ingest", r.Ingest, "ingest:ingest", _A.CHANGE, on.ingested),
    Verb("load", r.Load, "load:load", _A.CHANGE, on.loaded, is_long=True),
    Verb("replay", r.Replay, "replay:replay", _A.CHANGE, on.on_branch),
    Verb("embed", r.Embed, "embed:embed", _A.CHANGE, on.embedded, is_long=True),
    Verb("count_embed", r.CountEmbed, "embed:count_due", _A.READ, on.embedded),
    Verb(
        "write_algorithm",
        r.WriteAlgorithm,
        "algorithm:write_back",
        _A.CHANGE,
        on.on_branch,
        is_long=True,
    ),
    Verb("plan_schema", r.PlanSchema, "migrate:plan_schema", _A.READ, on.on_branch),
    Verb(
        "apply_schema",
        r.ApplySchema,
        "migrate:apply_schema",
        _A.SCHEMA_APPLY,
        on.schema,
        is_long=True,
    ),
    Verb("branches", r.ListBranches, "branch:all_branches", _A.READ, on.graph),
    Verb("create_branch", r.CreateBranch, "branch:create_branch", _A.BRANCH_CREATE, on.started),
    Verb("delete_branch", r.DeleteBranch, "branch:delete_branch", _A.BRANCH_DELETE, on.deleted),
    Verb("rename_branch", r.RenameBranch, "branch:rename_branch", _A.BRANCH_RENAME, on.renamed),
    Verb("tags", r.ListTags, "branch:all_tags", _A.READ, on.graph),
    Verb("create_tag", r.CreateTag, "branch:create_tag", _A.TAG_CREATE, on.tagged),
    Verb("delete_tag", r.DeleteTag, "branch:delete_tag", _A.TAG_DELETE, on.tag),
    Verb("merge", r.Merge, "merge:merge", _A.BRANCH_MERGE, on.merged, is_long=True),
    Verb("preview_merge", r.PreviewMerge, "merge:preview_merge", _A.READ, on.graph, is_long=True),
    Verb("revert", r.Revert, "revert:revert", _A.CHANGE, on.on_branch),
    Verb("cherry_pick", r.CherryPick, "revert:cherry_pick", _A.BRANCH_MERGE, on.picked),
    Verb("rebase", r.Rebase, "rebase:rebase", _A.BRANCH_MERGE, on.rebased, is_long=True),
    Verb("commit_changes", r.ReadCommitChanges, "changes:all_changes_in", _A.READ, on.by_commit),
    Verb(
        "commit_changes_page", r.ReadCommitChangesPage, "changes:changes_in", _A.READ, on.by_commit
    ),
    Verb("poll_changes", r.PollChanges, "changes:poll", _A.READ, on.filtered),
    Verb("changes", r.FollowChanges, "changes:follow", _A.READ, on.filtered),
    Verb("capture_baseline", r.CaptureBaseline, "changes:baseline", _A.EXPORT, on.filtered),
    Verb("baseline", r.StreamBaseline, "baseline:stream_baseline", _A.EXPORT, on.filtered),
    Verb("install_baseline", r.InstallBaseline, "baseline:install", _A.EXPORT, on.filtered),
    Verb("find_offset", r.FindOffset, "changes:find_offset", _A.READ, on.on_branch),
    Verb("table_changes", r.ReadTableChanges, "changes:table_changes", _A.READ, on.on_branch),
    Verb("type_changes", r.ReadTypeChanges, "changes:type_changes", _A.READ, on.filtered),
    Verb("stats", r.ReadStats, "stats:stats", _A.READ, on.on_branch),
    Verb("verify", r.Verify, "verify:verify", _A.READ, on.graph, is_long=True),
    Verb("optimize", r.Optimize, "maintain:optimize", _A.MAINTAIN, on.on_types, is_long=True),
    Verb(
        "ensure_indices",
        r.EnsureIndices,
        "maintain:ensure_indices",
        _A.MAINTAIN,
        on.on_types,
        is_long=True,
    ),
    Verb("plan_optimize", r.PlanOptimize, "maintain:plan_optimize", _A.READ, on.on_types),
    Verb("lag", r.MeasureLag, "reconcile:lag_of", _A.READ, on.on_branch),
    Verb("reconciler", r.Reconcile, "reconcile:reconciler", _A.MAINTAIN, on.on_branch),
    Verb("cleanup", r.CleanUp, "cleanup:cleanup", _if_confirmed(_A.MAINTAIN), on.graph, True),
    Verb("repair", r.RepairDrift, "repair:repair", _if_confirmed(_A.RECOVER), on.on_branch),
    Verb("recoveries", r.ListRecoveries, "inspection:recoveries", _A.READ, on.graph),
    Verb("refresh", r.Refresh, "lifecycle:refresh", _A.RECOVER, on.on_branch),
    Verb("recover", r.Recover, "lifecycle:recover", _A.RECOVER, on.graph),
    Verb("set_durability", r.SetDurability, "lifecycle:set_durability", _A.ADMIN, on.graph),
)
# Verbs that show only what is visible to their context; others need to see everything.
RESTRICTABLE: frozenset[str] = frozenset(
    {
        "query",
        "explain",
        "snapshot",
        "algorithm",
        "mutate",
        "schema",
        "commits",
        "commit",
        "commit_graph",
        "diff",
        "export",
        "export_lines",
        "blob_stat",
        "blob",
        "branches",
        "tags",
        "commit_changes",
        "commit_changes_page",
        "poll_changes",
        "changes",
        "capture_baseline",
        "baseline",
        "install_baseline",
        "find_offset",
        "table_changes",
        "type_changes",
        "stats",
    }
)
BY_REQUEST: dict[type[Any], Verb] = {verb.request: verb for verb in VERBS}
BY_NAME: dict[str, Verb] = {verb.name: verb for verb in VERBS}
