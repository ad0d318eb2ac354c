"""`omnigraph export`: a snapshot as files."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph.cli.apps import new_app
from omnigraph.cli.options import AsJson, BranchOption, State, Store, Types
from omnigraph.cli.pipeline import OnSpark, Progress, listener
from omnigraph.cli.targets import Targeted, open_graph
from omnigraph.cli.terminal import binary_output, echo
from omnigraph.errors import InvalidArgumentError

app = new_app()


@app.command(cls=Targeted)
def export(
    *,
    graph: Store,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            "--out",
            metavar="PLACE",
            help="File (.jsonl), folder or s3:// address; - for standard output.",
        ),
    ] = "-",
    format: Annotated[
        str | None, typer.Option(metavar="FORMAT", help="jsonl, parquet, arrow or csv.")
    ] = None,
    types: Types = None,
    engine: Annotated[str, typer.Option(metavar="NAME", help="embedded or spark.")] = "embedded",
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Allow a target that is not empty.")
    ] = False,
    branch: BranchOption = "main",
    state: State,
    on_spark: OnSpark,
    progress: Progress = "auto",
    as_json: AsJson = False,
) -> None:
    """Export a snapshot as JSONL, Parquet, Arrow or CSV."""
    from omnigraph.cli.display import print_json

    opened = open_graph(graph, branch, read_only=True, spark=engine == "spark")
    if to == "-":
        _require_lines(format, engine)
        for piece in opened.export_lines(types=types or (), **state.chosen()):
            binary_output().write(piece)
        return
    result = opened.export(
        to,
        format=format,
        types=types or (),
        engine=engine,
        overwrite=overwrite,
        **state.chosen(),
        spark=on_spark.settings(),
        progress=listener(progress),
    )
    if as_json:
        shown = result.to_json()
        print_json({"graph_commit_id": shown.pop("commit"), **shown})
        return
    for name, rows in result.rows.items():
        echo(f"{name}: {rows}")
    echo(f"commit {result.commit_id}")


def _require_lines(format: str | None, engine: str) -> None:
    if format not in (None, "jsonl") or engine != "embedded":
        raise InvalidArgumentError(
            "Standard output supports only JSONL from the embedded engine.",
            hint="Name a folder: --to PLACE.",
        )
