"""`omnigraph tag`: name commits that must stay readable."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from omnigraph.cli.apps import new_app
from omnigraph.cli.options import Actor, AsJson, AtCommit, BranchOption, Store
from omnigraph.cli.targets import Listing, Targeted, open_graph
from omnigraph.cli.terminal import echo

app = new_app("Create, list and delete tags, which keep commits readable.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the tag.")]


@app.command(cls=Targeted)
def create(
    graph: Store,
    name: Name,
    branch: BranchOption = "main",
    commit: AtCommit = None,
    message: Annotated[str, typer.Option("--message", "-m", metavar="TEXT", help="Why.")] = "",
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Tag the head of a branch, or any commit."""
    from omnigraph.cli.display import print_json

    opened = open_graph(graph, branch, actor=actor)
    tag = opened.create_tag(name, commit=commit, message=message)
    if as_json:
        print_json(asdict(tag))
    else:
        echo(f"tagged {tag.commit_id} as {name}")


@app.command("list", cls=Listing)
def list_all(graph: Store, as_json: AsJson = False) -> None:
    """List the tags."""
    from omnigraph.cli.display import print_json, print_records

    records = [asdict(tag) for tag in open_graph(graph, read_only=True).tags()]
    if as_json:
        print_json({"tags": records})
    else:
        print_records(records, ("name", "commit_id", "actor", "message"))


@app.command(cls=Targeted)
def delete(graph: Store, name: Name, actor: Actor = None, as_json: AsJson = False) -> None:
    """Delete a tag. Its commit is kept while anything else needs it."""
    from omnigraph.cli.display import print_json

    open_graph(graph, actor=actor).delete_tag(name)
    if as_json:
        print_json({"tag": name, "deleted": True})
    else:
        echo(f"deleted {name}")
