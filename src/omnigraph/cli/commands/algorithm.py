"""`omnigraph algorithm`: graph algorithms on Spark."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph.cli.apps import new_app
from omnigraph.cli.options import Actor, AsJson, BranchOption, State, Store
from omnigraph.cli.pipeline import OnSpark, Progress, heard
from omnigraph.cli.targets import Targeted, open_graph

app = new_app()


@app.command(cls=Targeted)
def algorithm(
    *,
    graph: Store,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="degree, components, pagerank, labels, triangles, paths or core.",
        ),
    ],
    edges: Annotated[
        list[str] | None,
        typer.Option("--edge", metavar="TYPE", help="Only edges of this type; repeatable."),
    ] = None,
    weight: Annotated[
        str | None, typer.Option(metavar="PROPERTY", help="Numeric property of the edges.")
    ] = None,
    sources: Annotated[
        list[str] | None,
        typer.Option("--from", metavar="TYPE/ID", help="Start node of paths; repeatable."),
    ] = None,
    undirected: Annotated[
        bool, typer.Option("--undirected", help="Follow edges in both directions.")
    ] = False,
    rounds: Annotated[
        int | None, typer.Option(metavar="N", help="Maximum number of rounds.")
    ] = None,
    write: Annotated[
        str | None, typer.Option(metavar="PROPERTY", help="Store the result in this property.")
    ] = None,
    limit: Annotated[
        int, typer.Option(metavar="N", min=0, help="Maximum number of printed rows.")
    ] = 1000,
    branch: BranchOption = "main",
    state: State,
    on_spark: OnSpark,
    progress: Progress = "auto",
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Run a graph algorithm, on Spark."""
    from omnigraph.cli.display import print_json, print_records
    from omnigraph.cli.writereport import print_write
    from omnigraph.engines.spark.jobprogress import observed
    from omnigraph.operations.algorithm import AlgorithmOptions

    options = AlgorithmOptions(
        edges=tuple(edges or ()),
        weight=weight,
        sources=tuple(sources or ()),
        directed=not undirected,
        rounds=rounds,
        spark=on_spark.settings(),
    )
    opened = open_graph(graph, branch, actor=actor, read_only=write is None, spark=True)
    if write is not None:
        with heard(progress):
            done = opened.write_algorithm(name, write, options)
        print_write(done, as_json=as_json)
        return
    with heard(progress):
        frame = opened.algorithm(name, options, **state.chosen())
        with observed(frame.sparkSession, "gather the results") as told:
            rows = [row.asDict() for row in frame.orderBy("type", "id").limit(limit).collect()]
            told.add(len(rows))
    if as_json:
        print_json({"rows": rows})
    else:
        print_records(rows, frame.columns)
