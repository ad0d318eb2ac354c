"""`omnigraph fsck`: check a whole graph."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph.cli.apps import new_app
from omnigraph.cli.options import AsJson, Store
from omnigraph.cli.targets import Targeted, open_graph
from omnigraph.cli.terminal import echo

app = new_app()


@app.command(cls=Targeted)
def fsck(
    graph: Store,
    quick: Annotated[
        bool, typer.Option("--quick", help="Check only structure, not values and constraints.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check the consistency of manifests, tables, indexes and constraints."""
    from omnigraph.cli.display import print_json

    found = open_graph(graph, read_only=True).verify(quick=quick)
    if as_json:
        print_json(found.to_dict())
    else:
        for each in found.findings:
            echo(f"{each.severity}: {each.part}: {each.where}: {each.message}")
            if each.hint:
                echo(f"    {each.hint}")
        echo(
            f"{found.branches} branches, {found.commits} commits, {found.tables} tables, "
            f"{found.rows} rows: {'clean' if found.is_clean else 'not clean'}"
        )
    if not found.is_clean:
        raise typer.Exit(1)
