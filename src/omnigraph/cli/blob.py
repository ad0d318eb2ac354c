"""`omnigraph blob`: look at blobs and read them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from omnigraph.cli.apps import new_app
from omnigraph.cli.options import (
    AsJson,
    AtCommit,
    AtTag,
    AtTime,
    AtVersion,
    BranchOption,
    parse_time,
)
from omnigraph.cli.targets import Targeted, open_graph
from omnigraph.cli.terminal import binary_output, echo

app = new_app("Look at blobs and read them.")

TypeName = Annotated[str, typer.Argument(metavar="TYPE", help="Node or edge type.")]
EntityId = Annotated[str, typer.Argument(metavar="ID", help="Id of the node or edge.")]
PropertyName = Annotated[str, typer.Argument(metavar="PROPERTY", help="Its Blob property.")]


@app.command(cls=Targeted)
def stat(
    type_name: TypeName,
    id: EntityId,
    property: PropertyName,
    branch: BranchOption = "main",
    commit: AtCommit = None,
    version: AtVersion = None,
    at: AtTime = None,
    tag: AtTag = None,
    as_json: AsJson = False,
) -> None:
    """Print a blob's size and etag, or where it lies."""
    from omnigraph.cli.rendering import cell, print_json

    opened = open_graph(None, branch, read_only=True)
    found = opened.blob_stat(
        type_name, id, property, commit=commit, version=version, at=parse_time(at), tag=tag
    ).to_dict()
    if as_json:
        print_json(found)
        return
    for name, value in found.items():
        echo(f"{name:<18}{cell(value)}")


@app.command(cls=Targeted)
def get(
    type_name: TypeName,
    id: EntityId,
    property: PropertyName,
    offset: Annotated[int, typer.Option(metavar="N", help="First byte.")] = 0,
    length: Annotated[int | None, typer.Option(metavar="N", help="How many bytes.")] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write; else standard output.")
    ] = None,
    branch: BranchOption = "main",
    commit: AtCommit = None,
    version: AtVersion = None,
    at: AtTime = None,
    tag: AtTag = None,
) -> None:
    """Write a blob's bytes, all or a range of them."""
    opened = open_graph(None, branch, read_only=True)
    pieces = opened.blob(
        type_name,
        id,
        property,
        offset=offset,
        length=length,
        commit=commit,
        version=version,
        at=parse_time(at),
        tag=tag,
    )
    first = next(pieces, b"")  # fails, if it does, before an existing file is touched
    if out is None:
        stream = binary_output()
        stream.write(first)
        stream.writelines(pieces)
        return
    with out.open("wb") as file:
        file.write(first)
        file.writelines(pieces)
