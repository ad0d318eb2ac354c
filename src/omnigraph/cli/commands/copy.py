"""`omnigraph copy`: a whole graph, elsewhere."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph.cli.apps import new_app
from omnigraph.cli.options import Actor, AsJson, Store
from omnigraph.cli.targets import Targeted, open_graph
from omnigraph.cli.terminal import echo

app = new_app()


@app.command(cls=Targeted)
def copy(
    graph: Store,
    to: Annotated[str, typer.Option("--to", metavar="PLACE", help="An empty folder or address.")],
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Copy a graph with branches, tags and history, also while it is in use."""
    from dataclasses import asdict

    from omnigraph.cli.display import print_json

    done = open_graph(graph, actor=actor, to=to).copy(to)
    if as_json:
        print_json(asdict(done))
        return
    echo(f"copied {done.objects} files, {done.bytes} bytes, to {done.place}")
