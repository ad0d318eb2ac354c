"""`omnigraph explain`: how a query is answered."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph.cli.apps import new_app
from omnigraph.cli.options import AsJson, BranchOption, State
from omnigraph.cli.pipeline import OnSpark
from omnigraph.cli.queryargs import Asked, EngineName
from omnigraph.cli.targets import Targeted, open_graph
from omnigraph.cli.terminal import echo

app = new_app()


@app.command(cls=Targeted)
def explain(
    *,
    asked: Asked,
    run: Annotated[
        bool, typer.Option("--run", help="Run the query and show rows and time of each step.")
    ] = False,
    branch: BranchOption = "main",
    state: State,
    engine: EngineName = "embedded",
    on_spark: OnSpark,
    as_json: AsJson = False,
) -> None:
    """Show the plan of a read query."""
    from omnigraph.cli.display import print_json

    spark = on_spark.started(engine if run else "embedded")
    opened = open_graph(None, branch, read_only=True, spark=spark is not None)
    with asked.question() as question:
        found = opened.explain(*question, run=run, **state.chosen(), engine=engine, spark=spark)
    if as_json:
        print_json(found.to_json())
    else:
        echo(found.to_text(), nl=False)
