"""`omnigraph stats`: what a graph holds and how it lies on disk."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from omnigraph.cli.apps import new_app
from omnigraph.cli.options import AsJson, BranchOption, Store
from omnigraph.cli.targets import Listing, open_graph

app = new_app()


@app.command(cls=Listing)
def stats(
    graph: Store,
    branch: BranchOption = "main",
    disk: Annotated[
        bool, typer.Option("--disk", help="Also count the disk space of older versions.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Count types, rows, bytes, files, index coverage and history."""
    from omnigraph.cli.display import print_json, print_records, print_remark

    found = open_graph(graph, branch, read_only=True).stats(disk=disk)
    shown = found.to_dict()
    if as_json:
        print_json(shown)
        return
    columns = ["kind", "type_name", "rows", "files", "bytes", "indexed", "missing"]
    columns[5:5] = ["disk_bytes", "versions"] if disk else []
    print_records([_record(each) for each in shown["types"]], columns)
    print_remark(
        f"{found.branch} at {found.commit_id}: {found.commits} commits, {found.branches} branches, "
        f"{found.tags} tags, {found.pending_recoveries} recoveries pending"
    )


def _record(one: dict[str, Any]) -> dict[str, Any]:
    indexed = [
        f"{index['column']} ({index['kind']}{_behind(index['unindexed_rows'])})"
        for index in one["indexes"]
    ]
    return {**one, "indexed": ", ".join(indexed), "missing": ", ".join(one["missing"])}


def _behind(rows: int) -> str:
    return f", {rows} rows behind" if rows else ""
