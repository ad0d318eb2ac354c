"""`omnigraph optimize`: compact files and build indexes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.apps import new_app
from omnigraph.cli.options import Actor, AsJson, BranchOption, Store
from omnigraph.cli.pipeline import OnSpark
from omnigraph.cli.targets import Targeted, open_graph
from omnigraph.cli.terminal import echo, note

if TYPE_CHECKING:
    from omnigraph.operations.maintain import Upkeep

app = new_app()

Types = Annotated[
    list[str] | None, typer.Option("--type", metavar="TYPE", help="Only this type; repeatable.")
]


@app.command(cls=Targeted)
def optimize(
    *,
    graph: Store,
    branch: BranchOption = "main",
    types: Types = None,
    indexes_only: Annotated[
        bool, typer.Option("--indexes-only", help="Build indexes only; do not compact files.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the planned work; change nothing.")
    ] = False,
    engine: Annotated[
        str, typer.Option(metavar="NAME", help="Engine that writes files: embedded or spark.")
    ] = "embedded",
    on_spark: OnSpark,
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Compact files, build indexes, store adjacency lists."""
    from omnigraph.cli.display import print_json
    from omnigraph.cli.elder import optimize_fields

    settings = on_spark.settings() if engine == "spark" and not dry_run else None
    opened = open_graph(graph, branch, actor=actor, read_only=dry_run, spark=settings is not None)
    if dry_run:
        done = opened.plan_optimize(types=types, compact=not indexes_only)
    else:
        act = opened.ensure_indices if indexes_only else opened.optimize
        done = act(types=types, report=_tell, engine=engine, spark=settings)
    if as_json:
        print_json({**optimize_fields(opened, done), **done.to_dict()})
    else:
        print_upkeep(done)


def print_upkeep(done: Upkeep) -> None:
    """What maintenance did, table by table."""
    for table in done.tables:
        told = [f"{table.files_moved} files put together"] if table.files_moved else []
        told += [f"without {', '.join(table.columns)}, dropped"] if table.columns else []
        told += [f"{index.kind} index of {index.property}" for index in table.built]
        told += [f"{i.kind} index of {i.property} pending: {i.pending}" for i in table.pending]
        told += [f"skipped: {table.skipped}"] if table.skipped else []
        if told:
            echo(f"{table.type_name}: {'; '.join(told)}")
    if done.is_empty:
        echo("nothing to do")
    for commit in done.commits:
        echo(f"commit {commit.id}")


def _tell(text: str) -> None:
    note(text)
