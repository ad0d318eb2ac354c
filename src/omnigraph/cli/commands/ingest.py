"""`omnigraph ingest`: write a file of rows, in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from omnigraph.cli.apps import new_app
from omnigraph.cli.options import Actor, AsJson, BranchOption, EdgeKey, Once, Start, Store, Yes
from omnigraph.cli.targets import Targeted, ask_consent, beginning, open_graph

app = new_app()


@app.command(cls=Targeted)
def ingest(
    *,
    graph: Store,
    data: Annotated[
        Path,
        typer.Option(
            metavar="FILE", help="JSONL, - for standard input; or with --type Parquet or Arrow."
        ),
    ],
    mode: Annotated[
        str, typer.Option(metavar="MODE", help="append, merge or overwrite.")
    ] = "merge",
    type: Annotated[
        str | None, typer.Option(metavar="TYPE", help="Type of the rows of Parquet or Arrow.")
    ] = None,
    edge_key: EdgeKey = None,
    branch: BranchOption = "main",
    start: Start = None,
    once: Once,
    yes: Yes = False,
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Write a file of rows as one commit, without Spark."""
    import sys

    from omnigraph.cli.elder import load_fields
    from omnigraph.cli.files import require_file
    from omnigraph.cli.writereport import print_write

    if mode == "overwrite":
        ask_consent(graph, "replace rows", yes=yes)
    source = sys.stdin.buffer.read() if str(data) == "-" else require_file(data)
    opened = open_graph(graph, branch, actor=actor)
    with beginning(opened, start) as created:
        result = opened.ingest(
            source, mode, type=type, edge_key=edge_key or (), **once.conditions()
        )
    elder = load_fields(opened, result.affected, mode, start, created=created)
    print_write(result, elder, as_json=as_json)
