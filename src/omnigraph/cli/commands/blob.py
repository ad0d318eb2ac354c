"""`omnigraph blob`: inspect and read blobs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.cli.apps import new_app
from omnigraph.cli.options import AsJson, BranchOption, State
from omnigraph.cli.targets import LEFT_OUT, Targeted, open_graph
from omnigraph.cli.terminal import binary_output, echo
from omnigraph.errors import InvalidArgumentError

if TYPE_CHECKING:
    from omnigraph.graph import Graph

app = new_app("Inspect and read blobs.")

_KINDS = ("node", "edge")


class _Cell(Targeted):
    """A command about one property of one node or edge; its first word KIND may be left out."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._words[0].required = False

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing and len(self.split(ctx, args)[1]) < len(self._words):
            args = [LEFT_OUT, *args]
        return super().parse_args(ctx, args)


EntityKind = Annotated[
    str, typer.Argument(metavar="KIND", help="node or edge; optional.", show_default=False)
]
TypeName = Annotated[str, typer.Argument(metavar="TYPE", help="Node or edge type.")]
EntityId = Annotated[str, typer.Argument(metavar="ID", help="Id of the node or edge.")]
PropertyName = Annotated[str, typer.Argument(metavar="PROPERTY", help="Its Blob property.")]


@app.command(cls=_Cell)
def stat(
    *,
    kind: EntityKind,
    type_name: TypeName,
    id: EntityId,
    property: PropertyName,
    branch: BranchOption = "main",
    state: State,
    as_json: AsJson = False,
) -> None:
    """Print the size and etag of a blob, or its external address."""
    from omnigraph.cli.display import cell, print_json
    from omnigraph.cli.elder import blob_fields

    opened = _opened(branch, kind, type_name)
    stat = opened.blob_stat(type_name, id, property, **state.chosen())
    found = stat.to_dict()
    if as_json:
        print_json({**blob_fields(opened, stat, state.chosen()), **found})
        return
    for name, value in found.items():
        echo(f"{name:<18}{cell(value)}")


@app.command(cls=_Cell)
def get(
    *,
    kind: EntityKind,
    type_name: TypeName,
    id: EntityId,
    property: PropertyName,
    offset: Annotated[int, typer.Option(metavar="N", help="First byte.")] = 0,
    length: Annotated[int | None, typer.Option(metavar="N", help="How many bytes.")] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Output file; default: standard output.")
    ] = None,
    branch: BranchOption = "main",
    state: State,
) -> None:
    """Write the bytes of a blob, or a range of them."""
    from omnigraph.cli.files import require_place

    opened = _opened(branch, kind, type_name)
    pieces = opened.blob(type_name, id, property, offset=offset, length=length, **state.chosen())
    first = next(pieces, b"")  # fails, if it does, before an existing file is touched
    if out is None:
        stream = binary_output()
        stream.write(first)
        stream.writelines(pieces)
        return
    with require_place(out).open("wb") as file:
        file.write(first)
        file.writelines(pieces)


def _opened(branch: str, kind: str, type_name: str) -> Graph:
    if kind not in (LEFT_OUT, *_KINDS):
        raise InvalidArgumentError(f"{kind!r} is neither node nor edge.")
    opened = open_graph(None, branch, read_only=True)
    if kind in _KINDS:
        catalog = opened.snapshot().catalog
        table = catalog.node(type_name) or catalog.edge(type_name)
        if table is not None and str(table.kind) != kind:
            raise InvalidArgumentError(f"{type_name} is a type of {table.kind}s, not of {kind}s.")
    return opened
