"""`omnigraph diff`: what differs between two states."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph.cli.apps import new_app
from omnigraph.cli.changing import Kinds, Operations, Types
from omnigraph.cli.options import AsJson, Store
from omnigraph.cli.pipeline import Conf, Master, Remote, spark_for
from omnigraph.cli.query import EngineName
from omnigraph.cli.targets import Targeted, open_graph

app = new_app()

_STATE = "a branch, branch@version, a tag, or a commit"


@app.command(cls=Targeted)
def diff(
    graph: Store,
    before: Annotated[str, typer.Argument(metavar="FROM", help=f"The older state: {_STATE}.")],
    after: Annotated[str, typer.Argument(metavar="TO", help="The newer state, likewise.")] = "main",
    kind: Kinds = None,
    type_: Types = None,
    op: Operations = None,
    engine: EngineName = "embedded",
    master: Master = None,
    remote: Remote = None,
    conf: Conf = None,
    as_json: AsJson = False,
) -> None:
    """Show which entities differ between two states."""
    from omnigraph.cli.changing import print_array, print_change
    from omnigraph.operations.diff import filter_of

    wanted = filter_of(kind or [], type_ or [], op or [])
    spark = spark_for(engine, master, remote, conf)
    opened = open_graph(graph, read_only=True, spark=spark is not None)
    changes = opened.diff(before, after, wanted, engine=engine, spark=spark)
    if as_json:
        print_array("changes", changes)
        return
    for change in changes:
        print_change(change)
