"""`omnigraph mutate`: change the graph."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph.cli.apps import new_app
from omnigraph.cli.options import Actor, AsJson, BranchOption
from omnigraph.cli.query import Params, ParamsFile, QueryFile, QueryName, QueryText, query_text
from omnigraph.cli.targets import Targeted, open_graph

app = new_app()

Message = Annotated[str, typer.Option("--message", "-m", metavar="TEXT", help="Why.")]
IfCommit = Annotated[
    str | None,
    typer.Option(metavar="ID", help="Only while the branch stands at this commit."),
]
IdempotencyKey = Annotated[
    str | None,
    typer.Option(metavar="KEY", help="A repeated call with this key has the first one's outcome."),
]


@app.command(cls=Targeted)
def mutate(
    name: QueryName = None,
    file: QueryFile = None,
    text: QueryText = None,
    params: Params = None,
    params_file: ParamsFile = None,
    branch: BranchOption = "main",
    message: Message = "",
    if_commit: IfCommit = None,
    idempotency_key: IdempotencyKey = None,
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Run a mutation as one commit."""
    from omnigraph.cli.files import read_params
    from omnigraph.cli.writes import print_write

    result = open_graph(None, branch, actor=actor).mutate(
        query_text(file, text),
        name,
        read_params(params, params_file),
        message=message,
        if_commit=if_commit,
        idempotency_key=idempotency_key,
    )
    print_write(result, as_json=as_json)
