"""`omnigraph profile`: what the operator's configuration says."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from omnigraph.cli.apps import new_app
from omnigraph.cli.options import AsJson
from omnigraph.cli.targets import operator
from omnigraph.cli.terminal import echo

app = new_app("Show the profiles of your configuration.")


@app.command("list")
def list_all(as_json: AsJson = False) -> None:
    """List the profiles and their targets."""
    from omnigraph.cli.display import print_json, print_records
    from omnigraph.config.addresses import PROFILE_VARIABLE

    active = os.environ.get(PROFILE_VARIABLE)
    records = [_record(name, name == active) for name in operator().profiles]
    if as_json:
        print_json({"profiles": records})
    elif not records:
        echo(f"there is no profile in {operator().path}")
    else:
        print_records(records, ("name", "scope_kind", "target", "default_graph", "active", "error"))


@app.command()
def show(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Name of the profile; default: the active one."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the target of a profile, and the actor."""
    from omnigraph.cli.display import cell, print_json
    from omnigraph.cli.targets import actor_named
    from omnigraph.config.addresses import Address, resolve_scope

    scope = resolve_scope(operator(), Address(profile=name))
    shown = {
        "origin": scope.origin,
        "scope_kind": str(scope.kind),
        "target": scope.address,
        "default_graph": scope.graph,
        "actor": actor_named(None),
        "config": str(operator().path),
    }
    if as_json:
        print_json(shown)
        return
    for key, value in shown.items():
        echo(f"{key:<15}{cell(value)}".rstrip())


def _record(name: str, active: bool) -> dict[str, Any]:
    """One profile; a broken one says why instead of a target."""
    from omnigraph.config.addresses import profile_scope
    from omnigraph.errors import OmniGraphError

    record: dict[str, Any] = {"name": name, "active": active}
    try:
        scope = profile_scope(operator(), name)
    except OmniGraphError as error:
        return record | {
            "scope_kind": None,
            "target": None,
            "default_graph": None,
            "valid": False,
            "error": error.message,
        }
    return record | {
        "scope_kind": str(scope.kind),
        "target": scope.address,
        "default_graph": scope.graph,
        "valid": True,
        "error": None,
    }
