"""`omnigraph import`: a new graph out of an export or of another graph."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from omnigraph.cli import callstate
from omnigraph.cli.apps import new_app
from omnigraph.cli.options import Actor, AsJson, Store
from omnigraph.cli.targets import Targeted, actor_named, place_for
from omnigraph.cli.terminal import echo

app = new_app()


@app.command("import", cls=Targeted)
def import_(
    graph: Store,
    source: Annotated[
        str,
        typer.Option("--from", metavar="PLACE", help="An export (a file or a folder), or a graph."),
    ],
    schema: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Schema of an export, a .pg file."),
    ] = None,
    branch: Annotated[
        str, typer.Option(metavar="NAME", help="Branch of the source graph.")
    ] = "main",
    format: Annotated[
        str | None,
        typer.Option(metavar="FORMAT", help="jsonl, parquet or arrow; default: by file name."),
    ] = None,
    engine: Annotated[str, typer.Option(metavar="NAME", help="embedded or spark.")] = "embedded",
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Create a graph from an export, or from one state of another graph."""
    import omnigraph
    from omnigraph.cli.display import print_json
    from omnigraph.cli.files import read_text
    from omnigraph.operations.transfer import import_graph

    place = place_for(graph).store_uri()
    done = import_graph(
        place,
        source,
        None if schema is None else read_text(schema),
        actor=actor_named(actor),
        format=format,
        engine=engine,
        file=None if schema is None else str(schema),
        branch=branch,
    )
    if durability := callstate.current().durability:
        omnigraph.open(place, actor=actor_named(actor)).set_durability(durability)
    result = done.loaded
    rows = {name: counts.inserted for name, counts in result.affected.items()}
    commit_id = result.commit.id if result.commit else None
    if as_json:
        print_json({"graph_commit_id": commit_id, "rows": rows})
        return
    for name, count in rows.items():
        echo(f"{name}: {count}")
    echo(f"imported in commit {commit_id}" if commit_id else "the export was empty")
