"""`omnigraph commit`: show history, revert and cherry-pick commits."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.cli.apps import new_app
from omnigraph.cli.conflictargs import Deciding
from omnigraph.cli.diffargs import PageSize, PageToken, Wanted
from omnigraph.cli.options import Actor, AsJson, BranchOption, Message, Store, parse_time
from omnigraph.cli.targets import Listing, Targeted, open_graph
from omnigraph.cli.terminal import echo

if TYPE_CHECKING:
    from omnigraph.model.commit import Commit

app = new_app("Show history, revert and cherry-pick commits.")

CommitId = Annotated[str, typer.Argument(metavar="ID", help="Commit id or a unique prefix.")]


@app.command("list", cls=Listing)
def list_all(
    graph: Store,
    branch: BranchOption = "main",
    actor: Annotated[
        str | None, typer.Option(metavar="ACTOR", help="Only commits of this actor.")
    ] = None,
    kind: Annotated[
        str | None, typer.Option(metavar="KIND", help="Only commits of this kind, such as `load`.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only commits since this time.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List the commits of a branch, newest first."""
    from omnigraph.cli.display import print_json, print_records

    found = open_graph(graph, branch, read_only=True).commits(_filter(actor, kind, since))
    records = [record(commit) for commit in islice(found, limit)]
    if as_json:
        print_json({"commits": records})
    else:
        columns = ("graph_commit_id", "created_at", "actor", "kind", "branch", "message")
        print_records(records, columns)


@app.command(cls=Targeted)
def show(
    graph: Store,
    commit: CommitId,
    branch: BranchOption = "main",
    as_json: AsJson = False,
) -> None:
    """Show one commit."""
    from omnigraph.cli.display import cell, print_json

    found = record(open_graph(graph, branch, read_only=True).commit(commit))
    if as_json:
        print_json(found)
        return
    for name, value in found.items():
        echo(f"{name:<22}{cell(value)}")


@app.command(cls=Targeted)
def changes(
    *,
    graph: Store,
    commit: CommitId,
    branch: BranchOption = "main",
    page_token: PageToken = None,
    limit: PageSize = 1000,
    wanted: Wanted,
    as_json: AsJson = False,
) -> None:
    """Show the changes of a commit, compared with its first parent."""
    from omnigraph.cli.diffargs import print_array, print_change, print_changes_page

    opened, filter = open_graph(graph, branch, read_only=True), wanted.filter()
    if page_token is not None:
        page = opened.commit_changes_page(commit, filter, page_token=page_token, limit=limit)
        print_changes_page(page, as_json=as_json)
        return
    found = opened.commit_changes(commit, filter)
    if as_json:
        print_array("changes", found)
        return
    for change in found:
        print_change(change)


@app.command(cls=Targeted)
def revert(
    *,
    graph: Store,
    commit: CommitId,
    branch: BranchOption = "main",
    deciding: Deciding,
    message: Message = "",
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Undo a commit with a new commit."""
    decided, opened = deciding.decisions(), open_graph(graph, branch, actor=actor)
    with deciding.told():
        made = opened.revert(commit, message=message, **decided)
    _print_made(made, as_json=as_json)


@app.command("cherry-pick", cls=Targeted)
def cherry_pick(
    *,
    graph: Store,
    commit: CommitId,
    branch: BranchOption = "main",
    deciding: Deciding,
    message: Message = "",
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Apply the changes of a commit of another branch."""
    decided, opened = deciding.decisions(), open_graph(graph, branch, actor=actor)
    with deciding.told():
        made = opened.cherry_pick(commit, message=message, **decided)
    _print_made(made, as_json=as_json)


def _print_made(made: Commit | None, *, as_json: bool) -> None:
    from omnigraph.cli.display import print_json

    if as_json:
        print_json({"commit": record(made) if made else None})
    else:
        echo(f"commit {made.id}" if made else "nothing to change; no commit")


def record(commit: Commit) -> dict[str, Any]:
    """A commit as the program prints it."""
    from omnigraph.cli.display import moment
    from omnigraph.cli.elder import commit_fields

    return {
        "graph_commit_id": commit.id,
        "graph_branch": commit.branch,
        "graph_manifest_version": commit.sequence,
        "branch": commit.branch,
        "parents": list(commit.parents),
        "actor": commit.actor,
        "kind": str(commit.kind),
        "message": commit.message,
        "created_at": moment(commit.created_at_us),
        "tables_changed": len(commit.changes),
        "details": dict(commit.details),
        **commit_fields(commit),
    }


def _filter(actor: str | None, kind: str | None, since: str | None) -> Any:
    from omnigraph.arguments import microseconds
    from omnigraph.errors import InvalidArgumentError
    from omnigraph.model.commit import CommitKind
    from omnigraph.operations.inspection import CommitFilter

    if kind is not None and kind not in set(CommitKind):
        raise InvalidArgumentError(
            f"There is no kind of commit {kind!r}.", hint=f"Use one of {', '.join(CommitKind)}."
        )
    moment = parse_time(since)
    return CommitFilter(
        actor=actor,
        kind=CommitKind(kind) if kind else None,
        since_us=microseconds(moment, "--since") if moment else None,
    )
