"""`omnigraph schema`: show and change the schema of a graph."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.apps import new_app
from omnigraph.cli.options import Actor, AsJson, BranchOption, Message, Store
from omnigraph.cli.pipeline import OnSpark
from omnigraph.cli.targets import Targeted, open_graph
from omnigraph.cli.terminal import echo

if TYPE_CHECKING:
    from omnigraph.operations.migrate import SchemaPlan

app = new_app("Show and change the schema of a graph.")

SchemaFile = Annotated[
    Path, typer.Option("--schema", metavar="FILE", help="The new schema, a .pg file.")
]
AllowDataLoss = Annotated[
    bool, typer.Option("--allow-data-loss", help="Delete the data of dropped types and properties.")
]


@app.command("get", cls=Targeted, hidden=True)  # the elder's other name of it
@app.command(cls=Targeted)
def show(graph: Store, branch: BranchOption = "main", as_json: AsJson = False) -> None:
    """Print the schema of a branch."""
    from omnigraph.cli.display import print_json

    opened = open_graph(graph, branch, read_only=True)
    text = opened.schema()
    if as_json:
        found = {"schema_hash": opened.snapshot().catalog.hash, "source": text}
        print_json({**found, "schema_source": text})
    else:
        echo(text, nl=False)


@app.command(cls=Targeted)
def plan(
    graph: Store,
    schema: SchemaFile,
    branch: BranchOption = "main",
    allow_data_loss: AllowDataLoss = False,
    as_json: AsJson = False,
) -> None:
    """Show the steps to a new schema; changes nothing."""
    from omnigraph.cli.display import print_json
    from omnigraph.cli.elder import schema_fields
    from omnigraph.cli.files import read_text

    opened = open_graph(graph, branch, read_only=True)
    planned = opened.plan_schema(
        read_text(schema), allow_data_loss=allow_data_loss, file=str(schema)
    )
    if as_json:
        steps = len(planned.plan.steps)
        elder = schema_fields(opened, supported=planned.plan.supported, applied=False, steps=steps)
        print_json({**elder, **planned.to_dict()})
        return
    _print_planned(planned)
    if not planned.plan.steps:
        echo("nothing to change")


@app.command(cls=Targeted)
def apply(
    *,
    graph: Store,
    schema: SchemaFile,
    branch: BranchOption = "main",
    allow_data_loss: AllowDataLoss = False,
    message: Message = "",
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Engine that writes rows: embedded or spark; default: spark for millions of rows.",
        ),
    ] = None,
    on_spark: OnSpark,
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Apply a new schema to a branch and its data, in one commit.

    Shows the plan first, with the number of affected rows.
    """
    from omnigraph.cli.display import print_json
    from omnigraph.cli.elder import schema_fields
    from omnigraph.cli.files import read_text

    text, name = read_text(schema), str(schema)
    settings = on_spark.settings() if engine == "spark" else None
    opened = open_graph(graph, branch, actor=actor, spark=engine == "spark")
    planned = opened.plan_schema(text, allow_data_loss=allow_data_loss, file=name)
    if planned.plan.supported and not as_json:
        _print_planned(planned)
    change = opened.apply_schema(
        text,
        allow_data_loss=allow_data_loss,
        message=message,
        file=name,
        engine=engine,
        spark=settings,
    )
    commit_id = change.commit.id if change.commit else None
    if as_json:
        counts = {"rows": planned.rows, "written": planned.written}
        steps = len(change.plan.steps)
        elder = schema_fields(opened, supported=True, applied=commit_id is not None, steps=steps)
        print_json({**elder, **change.plan.to_dict(), **counts, "graph_commit_id": commit_id})
        return
    echo(f"applied in commit {commit_id}" if commit_id else "the schema is accepted already")


def _print_planned(planned: SchemaPlan) -> None:
    for step in planned.plan.steps:
        mode = f", {step.mode}" if step.mode else ""
        echo(f"{step.tier:<12}{step.code}  {step.entity}: {step.message}{mode}")
    for name, rows in planned.rows.items():
        written = planned.written.get(name)
        echo(f"{name} holds {rows} rows; {'all' if written else 'none'} of them must be written")
