"""`omnigraph snapshot`: what a query would read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omnigraph.cli.apps import new_app
from omnigraph.cli.options import AsJson, BranchOption, State, Store
from omnigraph.cli.targets import Listing, open_graph

if TYPE_CHECKING:
    from omnigraph.model.snapshot import Snapshot

app = new_app()


@app.command(cls=Listing)
def snapshot(
    *,
    graph: Store,
    branch: BranchOption = "main",
    state: State,
    as_json: AsJson = False,
) -> None:
    """Print the types, versions and row counts of a snapshot."""
    from omnigraph.cli.display import print_json, print_records, print_remark
    from omnigraph.cli.elder import snapshot_fields

    found = open_graph(graph, branch, read_only=True).snapshot(**state.chosen())
    types = _types(found)
    if as_json:
        print_json(
            {
                "graph_commit_id": found.commit_id,
                "graph_branch": found.branch,
                "graph_manifest_version": found.sequence,
                "schema_hash": found.catalog.hash,
                "types": types,
                **snapshot_fields(found),
            }
        )
        return
    print_remark(f"{found.branch} at {found.commit_id} (version {found.sequence})")
    print_records(types, ("kind", "type", "entities", "version"))


def _types(found: Snapshot) -> list[dict[str, Any]]:
    rows = []
    for table in found.catalog.tables():
        version = found.table(table.id)
        rows.append(
            {
                "kind": str(table.kind),
                "type": table.name,
                "entities": version.rows if version else 0,
                "version": version.version if version else None,
            }
        )
    return rows
