"""`omnigraph branch`: create, list, rename, delete and merge branches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.cli.apps import new_app
from omnigraph.cli.conflictargs import Deciding
from omnigraph.cli.options import Actor, AsJson, Message, State, Store, Yes
from omnigraph.cli.pipeline import OnSpark
from omnigraph.cli.targets import Listing, Targeted, ask_consent, open_graph
from omnigraph.cli.terminal import echo

if TYPE_CHECKING:
    from omnigraph.history.branchlist import BranchInfo

app = new_app("Create, list, merge and delete branches.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the branch.")]


@app.command(cls=Targeted)
def create(
    *,
    graph: Store,
    name: Name,
    start: Annotated[
        str, typer.Option("--from", metavar="BRANCH", help="Branch to start from.")
    ] = "main",
    state: State,
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Create a branch at the head of another branch, or at an older state."""
    from omnigraph.cli.display import print_json
    from omnigraph.cli.elder import branch_fields

    opened = open_graph(graph, start, actor=actor)
    opened.create_branch(name, **state.chosen())
    if as_json:
        print_json({**branch_fields(opened, name), "branch": name, "from": start})
    else:
        echo(f"began {name} on {start}")


@app.command("list", cls=Listing)
def list_all(graph: Store, as_json: AsJson = False) -> None:
    """List the branches, with the commits each is ahead of and behind its parent."""
    from omnigraph.cli.display import print_json, print_records

    records = [_record(info) for info in open_graph(graph, read_only=True).branches()]
    if as_json:
        print_json({"branches": records, "branch_names": [each["name"] for each in records]})
    else:
        print_records(records, ("name", "head", "changed_at", "parent", "ahead", "behind"))


@app.command(cls=Targeted)
def rename(
    graph: Store,
    old: Annotated[str, typer.Argument(metavar="OLD", help="Current name.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="New name.")],
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Rename a branch."""
    from omnigraph.cli.display import print_json

    open_graph(graph, actor=actor).rename_branch(old, new)
    if as_json:
        print_json({"branch": new, "renamed_from": old})
    else:
        echo(f"renamed {old} to {new}")


@app.command(cls=Targeted)
def delete(
    graph: Store,
    name: Name,
    with_children: Annotated[
        bool, typer.Option("--with-children", help="Also if other branches were created from it.")
    ] = False,
    yes: Yes = False,
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Delete a branch."""
    from omnigraph.cli.display import print_json
    from omnigraph.cli.elder import branch_fields

    ask_consent(graph, f"delete the branch {name}", yes=yes)
    opened = open_graph(graph, actor=actor)
    opened.delete_branch(name, with_children=with_children)
    if as_json:
        print_json({**branch_fields(opened, name), "branch": name, "deleted": True})
    else:
        echo(f"deleted {name}")


@app.command(cls=Targeted)
def merge(
    *,
    graph: Store,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="Branch to merge.")],
    into: Annotated[str, typer.Option(metavar="BRANCH", help="Branch to merge it into.")] = "main",
    preview: Annotated[
        bool, typer.Option("--preview", help="Show what would change; write nothing.")
    ] = False,
    deciding: Deciding,
    delete_branch: Annotated[
        bool, typer.Option("--delete-branch", help="Delete the source after the merge.")
    ] = False,
    message: Message = "",
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Engine that compares tables: embedded or spark; default: by size.",
        ),
    ] = None,
    on_spark: OnSpark,
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Merge a branch into another, as one commit."""
    from omnigraph.cli import mergereport

    spark = on_spark.started(engine)
    opened = open_graph(graph, into, actor=actor, read_only=preview, spark=spark is not None)
    choices = {**deciding.decisions(), "engine": engine, "spark": spark}
    if preview:
        mergereport.show_preview(opened, source, choices, deciding, as_json=as_json)
    else:
        mergereport.run(
            opened,
            source,
            choices,
            deciding,
            delete_branch=delete_branch,
            message=message,
            as_json=as_json,
        )


@app.command(cls=Targeted)
def rebase(
    *,
    graph: Store,
    name: Name,
    onto: Annotated[
        str, typer.Option(metavar="BRANCH", help="Branch to repeat the commits on.")
    ] = "main",
    deciding: Deciding,
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Repeat the commits of a branch on top of another branch."""
    from omnigraph.cli.commands.commit import record
    from omnigraph.cli.display import print_json

    opened = open_graph(graph, name, actor=actor)
    with deciding.told():
        commits = opened.rebase(onto, **deciding.decisions())
    if as_json:
        print_json({"branch": name, "onto": onto, "commits": [record(each) for each in commits]})
    else:
        echo(f"put {len(commits)} commits of {name} on {onto}")


def _record(info: BranchInfo) -> dict[str, Any]:
    from omnigraph.cli.display import moment

    return {
        "name": info.branch.name,
        "head": info.head.id,
        "version": info.head.sequence,
        "changed_at": moment(info.head.created_at_us),
        "age_seconds": info.age_us // 1_000_000,
        "parent": info.parent,
        "ahead": info.ahead,
        "behind": info.behind,
    }
