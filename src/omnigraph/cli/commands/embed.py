"""`omnigraph embed`: vectors of rows that are in the graph already, or of records in a file."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph.cli.apps import new_app
from omnigraph.cli.embedfile import Records
from omnigraph.cli.options import Actor, AsJson, BranchOption, Message, Store, Types
from omnigraph.cli.pipeline import OnSpark, Progress, listener
from omnigraph.cli.targets import Targeted, open_graph
from omnigraph.cli.terminal import echo

app = new_app()


@app.command(cls=Targeted)
def embed(
    *,
    graph: Store,
    types: Types = None,
    select: Annotated[
        list[str] | None,
        typer.Option(metavar="TYPE:PROPERTY=VALUE", help="Only these rows; repeatable."),
    ] = None,
    reembed_all: Annotated[
        bool, typer.Option("--reembed-all", help="Recompute all vectors with the configured model.")
    ] = False,
    clean: Annotated[bool, typer.Option("--clean", help="Remove vectors instead.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count rows; change nothing.")] = False,
    records: Records,
    engine: Annotated[str, typer.Option(metavar="NAME", help="embedded or spark.")] = "embedded",
    branch: BranchOption = "main",
    message: Message = "",
    on_spark: OnSpark,
    progress: Progress = "auto",
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Compute vectors of @embed properties that are missing or out of date."""
    from omnigraph.cli.display import print_json
    from omnigraph.cli.writereport import load_record, print_write

    if records.are_meant:
        from omnigraph.operations.embed import EmbedOptions

        options = EmbedOptions(
            tuple(types or ()), tuple(select or ()), reembed_all, clean, engine=engine
        )
        records.fill(graph, branch, options, dry_run=dry_run, as_json=as_json)
        return
    settings = on_spark.settings() if engine == "spark" and not dry_run else None
    opened = open_graph(graph, branch, actor=actor, read_only=dry_run, spark=settings is not None)
    if dry_run:
        due = opened.count_embed(
            types=types or (), select=select or (), everything=reembed_all, clean=clean
        )
        if as_json:
            print_json({"rows": due})
        else:
            for name, rows in due.items():
                echo(f"{name}: {rows} to {'clean' if clean else 'embed'}")
        return
    done = opened.embed(
        types=types or (),
        select=select or (),
        everything=reembed_all,
        clean=clean,
        message=message,
        engine=engine,
        spark=settings,
        progress=listener(progress),
    )
    if as_json:
        print_json(load_record(done))
        return
    print_write(done, as_json=False)
    if done.commit and done.model:
        echo(f"model {done.model}")
