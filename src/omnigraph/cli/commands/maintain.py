"""`omnigraph maintain`: keep a graph optimized."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.apps import new_app
from omnigraph.cli.options import Actor, AsJson, BranchOption, Store
from omnigraph.cli.targets import Targeted, open_graph
from omnigraph.cli.terminal import echo

if TYPE_CHECKING:
    from omnigraph.operations.reconcile import Reconciler

app = new_app()


@app.command(cls=Targeted)
def maintain(
    graph: Store,
    branch: BranchOption = "main",
    watch: Annotated[
        bool, typer.Option("--watch", help="Run until stopped, instead of one round.")
    ] = False,
    interval: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="Time between rounds.")
    ] = 30.0,
    unindexed_rows: Annotated[
        int, typer.Option(min=0, metavar="N", help="Maximum number of unindexed rows.")
    ] = 10_000,
    small_files: Annotated[
        int, typer.Option(min=1, metavar="N", help="Maximum number of small files of a table.")
    ] = 16,
    lag: Annotated[
        bool, typer.Option("--lag", help="Only show the unprocessed rows and files.")
    ] = False,
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Optimize tables that exceed given limits, once or continuously."""
    from omnigraph.cli.commands.optimize import print_upkeep
    from omnigraph.cli.display import print_json, print_records
    from omnigraph.operations.reconcile import Bounds

    opened = open_graph(graph, branch, actor=actor, read_only=lag)
    if lag:
        seen = opened.lag()
        if as_json:
            print_json(seen.to_dict())
        else:
            columns = ("type_name", "rows", "unindexed_rows", "small_files", "deleted_rows")
            print_records([asdict(table) for table in seen.tables], columns)
        return
    bounds = Bounds(unindexed_rows=unindexed_rows, small_files=small_files)
    worker = opened.reconciler(bounds=bounds, interval_s=interval)
    if watch:
        _watch(worker)
        return
    done = worker.reconcile()
    if as_json:
        print_json({"lag": worker.lag().to_dict(), "done": done.to_dict() if done else None})
    elif done is None:
        echo("within bounds")
    else:
        print_upkeep(done)


def _watch(worker: Reconciler) -> None:
    """Let it run until Ctrl-C, and tell of every round."""
    import time

    with worker:
        seen = -1
        try:
            while True:
                lag = worker.lag()
                if lag.rounds != seen:
                    seen = lag.rounds
                    late = f", {lag.last_error}" if lag.last_error else ""
                    echo(f"round {seen}: {lag.unindexed_rows} rows unindexed{late}", err=True)
                time.sleep(0.2)
        except KeyboardInterrupt:
            echo("stopping", err=True)
