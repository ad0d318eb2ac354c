"""`omnigraph mutate`: change the graph."""

from __future__ import annotations

from omnigraph.cli.apps import new_app
from omnigraph.cli.options import Actor, AsJson, BranchOption, Once
from omnigraph.cli.queryargs import Asked
from omnigraph.cli.targets import Targeted, open_graph

app = new_app()


@app.command(cls=Targeted)
def mutate(
    *,
    asked: Asked,
    branch: BranchOption = "main",
    once: Once,
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Run a mutation as one commit."""
    from omnigraph.cli.elder import change_fields
    from omnigraph.cli.queryargs import name_of
    from omnigraph.cli.writereport import print_write

    opened = open_graph(None, branch, actor=actor)
    with asked.question() as question:
        result = opened.mutate(*question, **once.conditions())
        elder = change_fields(opened, name_of(question), result) if as_json else {}
    print_write(result, elder, as_json=as_json)
