"""`omnigraph diff`: what differs between two states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from omnigraph.cli.apps import new_app
from omnigraph.cli.diffargs import Wanted
from omnigraph.cli.options import AsJson, Store
from omnigraph.cli.pipeline import OnSpark
from omnigraph.cli.queryargs import EngineName
from omnigraph.cli.targets import Targeted, open_graph
from omnigraph.errors import CommitNotFoundError

app = new_app()

_STATE = "a branch, branch@version, a tag, or a commit"


@app.command(cls=Targeted)
def diff(
    *,
    graph: Store,
    before: Annotated[str, typer.Argument(metavar="FROM", help=f"The older state: {_STATE}.")],
    after: Annotated[str, typer.Argument(metavar="TO", help="The newer state, likewise.")] = "main",
    wanted: Wanted,
    engine: EngineName = "embedded",
    on_spark: OnSpark,
    as_json: AsJson = False,
) -> None:
    """Show which entities differ between two states."""
    from omnigraph.cli.diffargs import print_array, print_change

    spark = on_spark.started(engine)
    opened = open_graph(graph, read_only=True, spark=spark is not None)
    try:
        changes = opened.diff(before, after, wanted.filter(), engine=engine, spark=spark)
    except CommitNotFoundError as error:
        raise _clearer(error, (before, after)) from error
    if as_json:
        print_array("changes", changes)
        return
    for change in changes:
        print_change(change)


def _clearer(error: CommitNotFoundError, words: Sequence[str]) -> CommitNotFoundError:
    """A word is taken as a commit only when it is nothing else."""
    for word in words:
        if word.upper() == error.details.get("commit"):
            return CommitNotFoundError(
                f"There is no branch, tag or commit {word!r}.",
                hint="List the branches, the tags or the commits to see which exist.",
                commit=word,
            )
    return error
