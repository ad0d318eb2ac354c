"""`omnigraph load`: inputs of any size and form, as one commit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from omnigraph.cli.apps import new_app
from omnigraph.cli.options import Actor, AsJson, BranchOption, EdgeKey, Once, Start, Store, Yes
from omnigraph.cli.pipeline import OnSpark, Progress, listener, start_session
from omnigraph.cli.targets import Targeted, ask_consent, beginning, open_graph
from omnigraph.cli.terminal import echo

app = new_app()

Data = Annotated[
    list[str],
    typer.Option(
        metavar="PATH",
        help="File, pattern, folder, s3:// address or table:NAME; may be repeated.",
    ),
]


@app.command(cls=Targeted)
def load(
    *,
    graph: Store,
    data: Data,
    mode: Annotated[
        str, typer.Option(metavar="MODE", help="append, merge or overwrite.")
    ] = "append",
    type: Annotated[
        str | None,
        typer.Option(metavar="TYPE", help="Type of the rows, unless the input contains it."),
    ] = None,
    mapping: Annotated[
        Path | None, typer.Option(metavar="FILE", help="YAML file that maps files to types.")
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(
            metavar="FORMAT", help="jsonl, csv, parquet, arrow or lance; default: by file name."
        ),
    ] = None,
    types: Annotated[
        list[str] | None,
        typer.Option(
            "--replace", metavar="TYPE", help="With overwrite: also delete all rows of this type."
        ),
    ] = None,
    engine: Annotated[str, typer.Option(metavar="NAME", help="spark or embedded.")] = "spark",
    on_error: Annotated[
        str, typer.Option(metavar="WAY", help="Invalid records: fail or quarantine.")
    ] = "fail",
    rejects: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Folder for quarantined records.")
    ] = None,
    embed: Annotated[
        bool, typer.Option("--embed", help="Compute @embed vectors that the input lacks.")
    ] = False,
    edge_key: EdgeKey = None,
    branch: BranchOption = "main",
    start: Start = None,
    once: Once,
    on_spark: OnSpark,
    progress: Progress = "auto",
    yes: Yes = False,
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Load inputs of any size as one commit, on Spark."""
    from omnigraph.cli.display import print_json
    from omnigraph.cli.elder import load_fields
    from omnigraph.cli.writereport import load_record, print_write

    if mode == "overwrite":
        ask_consent(graph, "replace rows", yes=yes)
    settings = on_spark.settings()
    if engine == "spark" and not settings.is_open:
        start_session(settings, "omnigraph.graph", "omnigraph.operations.load")
    opened = open_graph(graph, branch, actor=actor, spark=engine == "spark")
    with beginning(opened, start) as created:
        result = opened.load(
            data,
            mode,
            type=type,
            mapping=_mapping(mapping),
            format=format,
            types=types or (),
            engine=engine,
            on_error=on_error,
            rejects=rejects,
            embed=embed,
            edge_key=edge_key or (),
            **once.conditions(),
            spark=settings,
            progress=listener(progress),
        )
    if as_json:
        elder = load_fields(opened, result.affected, mode, start, created=created)
        print_json({**load_record(result), **elder})
        return
    print_write(result, as_json=False)
    if result.rejected:
        echo(f"{result.rejected} records were refused; see {result.rejects}")


def _mapping(file: Path | None) -> Any:
    if file is None:
        return None
    import yaml

    from omnigraph.cli.files import read_text
    from omnigraph.errors import InvalidArgumentError

    try:
        return yaml.safe_load(read_text(file))
    except yaml.YAMLError as error:
        raise InvalidArgumentError(f"The mapping {file} is not YAML: {error}.") from error
