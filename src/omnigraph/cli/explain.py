"""`omnigraph explain`: how a query is answered."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph.cli.apps import new_app
from omnigraph.cli.options import (
    AsJson,
    AtCommit,
    AtTag,
    AtTime,
    AtVersion,
    BranchOption,
    parse_time,
)
from omnigraph.cli.pipeline import Conf, Master, Remote, spark_for
from omnigraph.cli.query import (
    EngineName,
    Params,
    ParamsFile,
    QueryFile,
    QueryName,
    QueryText,
    query_text,
)
from omnigraph.cli.targets import Targeted, open_graph
from omnigraph.cli.terminal import echo

app = new_app()


@app.command(cls=Targeted)
def explain(
    name: QueryName = None,
    file: QueryFile = None,
    text: QueryText = None,
    params: Params = None,
    params_file: ParamsFile = None,
    run: Annotated[
        bool, typer.Option("--run", help="Answer it, too, and show what each step did.")
    ] = False,
    branch: BranchOption = "main",
    commit: AtCommit = None,
    version: AtVersion = None,
    at: AtTime = None,
    tag: AtTag = None,
    engine: EngineName = "embedded",
    master: Master = None,
    remote: Remote = None,
    conf: Conf = None,
    as_json: AsJson = False,
) -> None:
    """Show how a read query would be answered, step by step."""
    from omnigraph.cli.files import read_params
    from omnigraph.cli.rendering import print_json

    spark = spark_for(engine if run else "embedded", master, remote, conf)
    found = open_graph(None, branch, read_only=True, spark=spark is not None).explain(
        query_text(file, text),
        name,
        read_params(params, params_file),
        run=run,
        commit=commit,
        version=version,
        at=parse_time(at),
        tag=tag,
        engine=engine,
        spark=spark,
    )
    if as_json:
        print_json(found.to_json())
    else:
        echo(found.to_text(), nl=False)
