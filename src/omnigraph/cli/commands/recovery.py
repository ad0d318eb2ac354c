"""`omnigraph recovery`: what was interrupted, and what became of it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from omnigraph.cli.apps import new_app
from omnigraph.cli.options import Actor, AsJson, Store
from omnigraph.cli.targets import Listing, Targeted, open_graph
from omnigraph.cli.terminal import echo

app = new_app("List and recover interrupted writes.")


@app.command("list", cls=Listing)
def list_all(
    graph: Store,
    pending: Annotated[bool, typer.Option("--pending", help="Only pending recoveries.")] = False,
    as_json: AsJson = False,
) -> None:
    """List pending and finished recoveries."""
    from omnigraph.cli.display import moment, print_json, print_records

    found = open_graph(graph, read_only=True).recoveries()
    waiting: list[dict[str, Any]] = [
        {
            "operation_id": sidecar.id,
            "kind": sidecar.kind,
            "branch": sidecar.branch,
            "actor": sidecar.actor,
            "outcome": "pending",
            "created_at": moment(sidecar.commits[0].created_at_us),
        }
        for sidecar in found.pending
    ]
    done = [] if pending else [_audited(row) for row in found.audit]
    if as_json:
        print_json({"pending": waiting, "audit": done})
    else:
        columns = ("operation_id", "kind", "branch", "actor", "outcome", "created_at")
        print_records([*waiting, *done], columns)


@app.command(cls=Targeted)
def run(graph: Store, actor: Actor = None, as_json: AsJson = False) -> None:
    """Recover interrupted writes now, instead of at the next open for writing."""
    from omnigraph.cli.display import print_json

    before = len(open_graph(graph, read_only=True).recoveries().pending)
    after = len(open_graph(graph, actor=actor).recoveries().pending)
    if as_json:
        print_json({"recovered": before - after})
    else:
        echo(f"recovered {before - after}")


def _audited(row: dict[str, Any]) -> dict[str, Any]:
    import json

    from omnigraph.cli.display import moment

    return {
        **row,
        "created_at": moment(row["created_at_us"]),
        "tables": json.loads(row["tables"]),
    }
