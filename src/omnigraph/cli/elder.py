"""Fields of `--json` for compatibility with the Rust version.

They stand beside ours in the same object. Where the elder used one of our names for another kind of
value, ours stays: `created_at` is a text here and `created_at_us` the number of microseconds,
`branches` are records here and `branch_names` the names.

Guarantees: adds fields. Only `nodes` and `edges` of `load` replace ours, which were two numbers
that `affected` holds anyway.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datetime import timedelta

    from omnigraph.graph import Graph
    from omnigraph.model.commit import Commit
    from omnigraph.model.feed import Cause
    from omnigraph.model.result import Result
    from omnigraph.model.snapshot import Snapshot
    from omnigraph.model.write import Affected, WriteResult
    from omnigraph.operations.blob import BlobStat
    from omnigraph.operations.cleanup import Cleanup
    from omnigraph.operations.maintain import Upkeep
    from omnigraph.operations.repair import Repair


def commit_fields(commit: Commit) -> dict[str, Any]:
    first, merged = (*commit.parents, None, None)[:2]
    return {
        "parent_commit_id": first,
        "merged_parent_commit_id": merged,
        "actor_id": commit.actor,
        "created_at_us": commit.created_at_us,
    }


def cause_fields(cause: Cause) -> dict[str, Any]:
    """What a block of the change feed says about its commit."""
    return {"actor_id": cause.actor, "authored_at": cause.authored_at_us}


def read_fields(result: Result, state: Mapping[str, Any]) -> dict[str, Any]:
    """A read: the query, what it was asked of, and how many rows came back."""
    older = any(value is not None for value in state.values())
    return {
        "query_name": result.explanation.plan.query.name,
        "target": {
            "branch": None if older else result.branch,
            "snapshot": result.commit_id if older else None,
        },
        "row_count": len(result),
    }


def change_fields(graph: Graph, query_name: str, result: WriteResult) -> dict[str, Any]:
    return {
        "branch": graph.branch_name,
        "query_name": query_name,
        "affected_nodes": result.nodes,
        "affected_edges": result.edges,
        "actor_id": graph.actor,
    }


def load_fields(
    graph: Graph, affected: Mapping[str, Affected], mode: str, start: str | None, *, created: bool
) -> dict[str, Any]:
    """A load or an ingest: how many entities of each type it wrote, and where."""
    written = {
        edges: [
            {"name": name, "entities_loaded": counts.inserted + counts.updated}
            for name, counts in sorted(affected.items())
            if counts.is_edge is edges
        ]
        for edges in (False, True)
    }
    return {
        "uri": graph.uri,
        "branch": graph.branch_name,
        "base_branch": start,
        "branch_created": created,
        "mode": mode,
        "nodes": written[False],
        "edges": written[True],
        "total_entities": sum(
            each["entities_loaded"] for listed in written.values() for each in listed
        ),
        "actor_id": graph.actor,
    }


def snapshot_fields(snapshot: Snapshot) -> dict[str, Any]:
    """Every table at its version; edges first, each kind by name."""
    from omnigraph.storage.manifest import FORMAT_VERSION

    found = []
    for table in snapshot.catalog.tables():
        version = snapshot.table(table.id)
        if version is not None:
            found.append(
                {
                    "entity_kind": str(table.kind),
                    "type_name": table.name,
                    "dataset_path": version.path,
                    "published_dataset_version": version.version,
                    "native_dataset_branch": version.fork,
                    "entity_count": version.rows,
                }
            )
    found.sort(key=lambda each: (each["entity_kind"], each["type_name"]))
    return {"internal_schema_version": FORMAT_VERSION, "datasets": found}


def branch_fields(graph: Graph, name: str) -> dict[str, Any]:
    """A branch that was made or deleted."""
    return {"uri": graph.uri, "name": name, "actor_id": graph.actor}


def schema_fields(graph: Graph, *, supported: bool, applied: bool, steps: int) -> dict[str, Any]:
    return {
        "uri": graph.uri,
        "supported": supported,
        "applied": applied,
        "step_count": steps,
        "graph_manifest_version": graph.snapshot().sequence,
    }


def blob_fields(graph: Graph, stat: BlobStat, state: Mapping[str, Any]) -> dict[str, Any]:
    older = any(value is not None for value in state.values())
    catalog = graph.snapshot(**state).catalog
    is_node = catalog.node(stat.selector.type_name) is not None
    return {
        "selector": {
            "entity": "node" if is_node else "edge",
            "type": stat.selector.type_name,
            "id": stat.selector.id,
            "property": stat.selector.property,
        },
        "target": {
            **({"snapshot": stat.commit_id} if older else {"branch": graph.branch_name}),
            "resolved_snapshot": stat.commit_id,
        },
    }


def optimize_fields(graph: Graph, done: Upkeep) -> dict[str, Any]:
    datasets = [
        {
            "type_key": f"{table.kind}:{table.type_name}",
            "fragments_removed": table.files_moved,
            "committed": bool(done.commits) and not table.is_idle,
            "skipped": table.skipped,
            "pending_indexes": [
                {"property": index.property, "reason": index.pending} for index in table.pending
            ],
        }
        for table in done.tables
    ]
    return {"uri": graph.uri, "datasets": datasets}


def repair_fields(graph: Graph, done: Repair, *, confirm: bool, force: bool) -> dict[str, Any]:
    datasets = [
        {
            "type_key": _type_key(graph.snapshot(), drift.type_name),
            "published_dataset_version": drift.pinned.version,
            "lance_head_version": drift.head,
            "classification": str(drift.verdict),
            "action": str(remedy),
            "operations": list(drift.operations),
            "error": None,
        }
        for drift, remedy in done.items
    ]
    version = graph.snapshot().sequence
    return {
        "uri": graph.uri,
        "confirm": confirm,
        "force": force,
        "graph_manifest_version": version,
        "datasets": datasets,
    }


def cleanup_fields(
    graph: Graph, done: Cleanup, keep: int | None, older_than: timedelta | None
) -> dict[str, Any]:
    snapshot = graph.snapshot()
    versions = ((table, snapshot.table(table.id)) for table in snapshot.catalog.tables())
    names = {version.path: table.name for table, version in versions if version is not None}
    datasets = [
        {
            "type_key": _type_key(snapshot, names.get(table.path)),
            "dataset_path": table.path,
            "bytes_removed": table.bytes,
            "old_versions_removed": table.versions,
            "error": table.error,
        }
        for table in done.tables
    ]
    return {
        "uri": graph.uri,
        "keep_versions": keep,
        "older_than_secs": None if older_than is None else int(older_than.total_seconds()),
        "datasets": datasets,
    }


def _type_key(snapshot: Snapshot, name: str | None) -> str | None:
    """`node:Person`; None for a table of no type that the branch has now."""
    found = next((t for t in snapshot.catalog.tables() if t.name == name), None)
    return None if found is None else f"{found.kind}:{found.name}"
