"""`omnigraph shell`: talk to a graph.

    session      one conversation: the graph, its branch, queries that have names
    statements   when a text is complete, and what it is
    commands     what begins with a backslash
    completing   what could come next
    prompt       the terminal; the only part that knows prompt_toolkit

Without a terminal the same statements are read from standard input.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from omnigraph.cli.apps import new_app
from omnigraph.cli.options import Actor, BranchOption, Store
from omnigraph.cli.queryargs import RowFormat
from omnigraph.cli.targets import Interactive, open_graph

app = new_app()


@app.command(cls=Interactive)
def shell(
    graph: Store,
    branch: BranchOption = "main",
    queries: Annotated[
        list[Path] | None,
        typer.Option("--query", "-q", metavar="FILE", help="File of queries to store; repeatable."),
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Refuse mutations.")] = False,
    format: RowFormat = None,
    actor: Actor = None,
) -> None:
    """Run queries and mutations interactively."""
    from omnigraph.cli.commands.shell.conversation import Session
    from omnigraph.cli.display import chosen_format

    opened = open_graph(graph, branch, actor=actor, read_only=True)
    session = Session(
        opened,
        lambda name: open_graph(graph, name, actor=actor),
        format=chosen_format(format),
        read_only=read_only,
    )
    for file in queries or []:
        session.load(file)
    if sys.stdin.isatty():
        from omnigraph.cli.commands.shell.prompt import converse

        converse(session)
    elif not session.read_script(sys.stdin):
        raise typer.Exit(1)
