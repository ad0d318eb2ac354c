"""`omnigraph query`: ask the graph."""

from __future__ import annotations

from omnigraph.cli.apps import new_app
from omnigraph.cli.options import AsJson, BranchOption, State
from omnigraph.cli.pipeline import OnSpark, Progress, heard
from omnigraph.cli.queryargs import Asked, EngineName, RowFormat
from omnigraph.cli.targets import Targeted, open_graph

app = new_app()


@app.command(cls=Targeted)
def query(
    *,
    asked: Asked,
    branch: BranchOption = "main",
    state: State,
    engine: EngineName = "embedded",
    on_spark: OnSpark,
    progress: Progress = "auto",
    format: RowFormat = None,
    as_json: AsJson = False,
) -> None:
    """Run a read query and print its rows."""
    from omnigraph.cli.display import chosen_format, print_result

    spark = on_spark.started(engine)
    opened = open_graph(None, branch, read_only=True, spark=spark is not None)
    with heard(progress, engine):
        with asked.question() as question:
            result = opened.query(*question, **state.chosen(), engine=engine, spark=spark)
        print_result(result, chosen_format(format, as_json=as_json), state.chosen())
