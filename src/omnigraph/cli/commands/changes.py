"""`omnigraph changes`: the change feed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.apps import new_app
from omnigraph.cli.diffargs import PageSize, PageToken, Wanted
from omnigraph.cli.options import AsJson, BranchOption, Store
from omnigraph.cli.targets import Targeted, open_graph
from omnigraph.cli.terminal import echo

if TYPE_CHECKING:
    from omnigraph.model.feed import FeedPage

app = new_app("Read the change feed of a graph.")


@app.command(cls=Targeted)
def poll(
    *,
    graph: Store,
    branch: BranchOption = "main",
    start: Annotated[
        str, typer.Option(metavar="WHERE", help="Start: now, beginning or after:COMMIT.")
    ] = "now",
    cursor: Annotated[
        str | None, typer.Option(metavar="CURSOR", help="Continue from this cursor.")
    ] = None,
    page_token: PageToken = None,
    limit: PageSize = 1000,
    wanted: Wanted,
    as_json: AsJson = False,
) -> None:
    """Print the changes of a branch commit by commit, then a cursor to continue from."""
    opened, filter = open_graph(graph, branch, read_only=True), wanted.filter()
    page = opened.poll_changes(
        filter, start=start, cursor=cursor, page_token=page_token, limit=limit
    )
    _print_page(page, as_json=as_json)
    while page_token is None and page.next_page_token is not None:
        page = opened.poll_changes(filter, page_token=page.next_page_token, limit=limit)
        _print_page(page, as_json=as_json)


@app.command(cls=Targeted)
def baseline(
    *,
    graph: Store,
    branch: BranchOption = "main",
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Output file; default: standard output."),
    ] = None,
    wanted: Wanted,
    as_json: AsJson = False,
) -> None:
    """Write a full state as JSONL, then a cursor to continue from it."""
    import json

    from omnigraph.cli.files import require_place
    from omnigraph.operations.baseline import terminal

    opened, filter = open_graph(graph, branch, read_only=True), wanted.filter()
    if out is None:
        for record in opened.baseline(filter):
            echo(json.dumps(record, ensure_ascii=False))
        return
    captured = opened.install_baseline(require_place(out), filter)
    if as_json:
        echo(json.dumps(terminal(captured)))
    else:
        echo(f"wrote commit {captured.snapshot.commit_id} to {out}")
        echo(f"cursor {captured.cursor}")


def _print_page(page: FeedPage, *, as_json: bool) -> None:
    """JSON has one line per block and one for the end of the page."""
    import json

    from omnigraph.cli.diffargs import block_to_dict, print_change
    from omnigraph.cli.display import moment

    for block in page.blocks:
        if as_json:
            echo(json.dumps(block_to_dict(block), ensure_ascii=False))
            continue
        cause = block.cause
        echo(f"commit {cause.commit_id}  {moment(cause.authored_at_us)}  {cause.actor}")
        for change in block.changes:
            print_change(change)
    end = {
        "cursor": page.cursor,
        "next_page_token": page.next_page_token,
        "caught_up": page.caught_up,
    }
    if as_json:
        echo(json.dumps(end))
    elif page.cursor is not None:
        echo(f"cursor {page.cursor}")
