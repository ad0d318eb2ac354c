"""`omnigraph repair`: tables that are ahead of the manifest, and graphs that were moved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.apps import new_app
from omnigraph.cli.options import Actor, AsJson, BranchOption, Store
from omnigraph.cli.targets import Targeted, open_graph
from omnigraph.cli.terminal import echo, note

if TYPE_CHECKING:
    from omnigraph.operations.repair import Repair

app = new_app()


@app.command(cls=Targeted)
def repair(
    graph: Store,
    branch: BranchOption = "main",
    confirm: Annotated[
        bool, typer.Option("--confirm", help="Execute, instead of a preview.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Also publish changes of rows.")] = False,
    discard: Annotated[
        bool, typer.Option("--discard", help="Discard changes of rows instead.")
    ] = False,
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Repair tables that differ from the manifest, damaged files, and moved graphs."""
    from omnigraph.cli.display import print_json
    from omnigraph.cli.elder import repair_fields

    opened = open_graph(graph, branch, actor=actor, read_only=not confirm)
    done = opened.repair(confirm=confirm, force=force, discard=discard)
    if as_json:
        elder = repair_fields(opened, done, confirm=confirm, force=force)
        print_json({**elder, **done.to_dict()})
    else:
        _tell(done)
    if confirm and done.refused:
        echo(
            "some tables were not changed: publish (--force) or discard (--discard) their changes",
            err=True,
        )
        raise typer.Exit(1)


def _tell(done: Repair) -> None:
    from omnigraph.cli.display import print_records

    for loss in done.losses:
        verb = "went" if done.executed else "would go"
        echo(f"{verb} back to the newest whole commit: {loss.message}")
        for path in loss.files:
            echo(f"    damaged: {path}")
    if done.strays:
        verb = "brought home" if done.executed else "would bring home"
        echo(f"the graph was copied or moved: {verb} {done.strays} manifests of branches")
    if done.items:
        columns = ("type_name", "published", "head", "operations", "verdict", "remedy")
        print_records(done.to_dict()["tables"], columns)
    elif done.executed or not (done.strays or done.losses):
        echo("no drift")
    if done.commit:
        echo(f"commit {done.commit.id}")
    elif not done.executed and (done.items or done.strays or done.losses):
        note("run it with --confirm to execute")
