"""`omnigraph query`: ask the graph."""

from __future__ import annotations

from pathlib import Path
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
from omnigraph.cli.rendering import Format
from omnigraph.cli.targets import Targeted, open_graph
from omnigraph.errors import InvalidArgumentError

app = new_app()

QueryFile = Annotated[
    Path | None, typer.Option("--query", "-q", metavar="FILE", help="File of queries, .gq.")
]
QueryText = Annotated[
    str | None, typer.Option("--query-string", "-e", metavar="GQ", help="A query as text.")
]
QueryName = Annotated[
    str | None, typer.Argument(metavar="NAME", help="Which query, when there are several.")
]
Params = Annotated[str | None, typer.Option(metavar="JSON", help="Parameters, a JSON object.")]
ParamsFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Parameters, a file with a JSON object.")
]
EngineName = Annotated[
    str, typer.Option("--engine", metavar="NAME", help="embedded, or spark for large graphs.")
]
RowFormat = Annotated[Format | None, typer.Option("--format", help="How to print the rows.")]


@app.command(cls=Targeted)
def query(
    name: QueryName = None,
    file: QueryFile = None,
    text: QueryText = None,
    params: Params = None,
    params_file: ParamsFile = None,
    branch: BranchOption = "main",
    commit: AtCommit = None,
    version: AtVersion = None,
    at: AtTime = None,
    tag: AtTag = None,
    engine: EngineName = "embedded",
    master: Master = None,
    remote: Remote = None,
    conf: Conf = None,
    format: RowFormat = None,
    as_json: AsJson = False,
) -> None:
    """Run a read query and print its rows."""
    from omnigraph.cli.files import read_params
    from omnigraph.cli.rendering import chosen_format, print_result

    spark = spark_for(engine, master, remote, conf)
    result = open_graph(None, branch, read_only=True, spark=spark is not None).query(
        query_text(file, text),
        name,
        read_params(params, params_file),
        commit=commit,
        version=version,
        at=parse_time(at),
        tag=tag,
        engine=engine,
        spark=spark,
    )
    print_result(result, chosen_format(format, as_json=as_json))


def query_text(file: Path | None, text: str | None) -> str:
    """The text of the queries, from exactly one of the two places."""
    from omnigraph.cli.files import read_text

    if (file is None) == (text is None):
        raise InvalidArgumentError(
            "A query comes from a file or from the command line.",
            hint="Give one of --query FILE and -e 'query …'.",
        )
    return text if text is not None else read_text(file or Path("-"))
