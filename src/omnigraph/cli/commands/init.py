"""`omnigraph init`: make an empty graph."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from omnigraph.cli import callstate
from omnigraph.cli.apps import new_app
from omnigraph.cli.options import Actor, AsJson, Store
from omnigraph.cli.startup import without_pandas
from omnigraph.cli.targets import Targeted, actor_named, place_for
from omnigraph.cli.terminal import echo

app = new_app()


@app.command(cls=Targeted)
def init(
    graph: Store,
    schema: Annotated[Path, typer.Option(metavar="FILE", help="The schema, a .pg file.")],
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="For compatibility: an incomplete init is always replaced, a graph never.",
        ),
    ] = False,
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Create an empty graph with a schema."""
    from omnigraph.cli.display import print_json
    from omnigraph.cli.files import read_text
    from omnigraph.operations.lifecycle import init_graph

    place = place_for(graph)
    source = read_text(schema)
    without_pandas()
    context = init_graph(
        place.store_uri(),
        source,
        actor=actor_named(actor),
        file=str(schema),
        durability=callstate.current().durability,
        storage_options=place.storage_options or None,
    )
    if as_json:
        print_json({"uri": context.root.uri})
    else:
        echo(f"made a graph at {context.root.uri}")
