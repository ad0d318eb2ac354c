"""The fields that the elder's command line printed with `--json`, found in ours.

`ELDER` holds its documented shapes. `APART` are the fields that we print under another name or
not at all, each with the reason; a field that appears must be taken off that list.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from omnigraph.cli import main

SHAPES: dict[str, Any] = json.loads((Path(__file__).parent / "cli" / "shapes.json").read_text())

COMMIT = {
    "graph_commit_id": "text",
    "graph_branch": "text",
    "graph_manifest_version": "number",
    "parent_commit_id": "text",
    "merged_parent_commit_id": "null",
    "actor_id": "text",
    "created_at": "number",
}
COUNTED = [{"name": "text", "entities_loaded": "number"}]
LOADED = {
    "uri": "text",
    "branch": "text",
    "base_branch": "null",
    "branch_created": "bool",
    "mode": "text",
    "nodes": COUNTED,
    "total_entities": "number",
    "actor_id": "text",
    "commit": COMMIT,
}
ELDER: dict[str, Any] = {
    "query": {
        "query_name": "text",
        "target": {"branch": "text", "snapshot": "null"},
        "row_count": "number",
        "columns": ["text"],
        "graph_commit_id": "text",
    },
    "mutate": {
        "branch": "text",
        "query_name": "text",
        "affected_nodes": "number",
        "affected_edges": "number",
        "actor_id": "text",
        "commit": COMMIT,
    },
    "load": LOADED,
    "ingest": LOADED,
    "branch create": {"uri": "text", "from": "text", "name": "text", "actor_id": "text"},
    "branch delete": {"uri": "text", "name": "text", "actor_id": "text"},
    "branch list": {"branches": ["text"]},
    "branch merge": {
        "source": "text",
        "target": "text",
        "outcome": "text",
        "actor_id": "text",
        "branch_deleted": "bool",
        "branch_delete_error": "null",
    },
    "commit list": {"commits": [COMMIT]},
    "commit show": COMMIT,
    "snapshot": {
        "graph_branch": "text",
        "graph_manifest_version": "number",
        "internal_schema_version": "number",
        "datasets": [
            {
                "entity_kind": "text",
                "type_name": "text",
                "dataset_path": "text",
                "published_dataset_version": "number",
                "native_dataset_branch": "null",
                "entity_count": "number",
            }
        ],
    },
    "schema show": {"schema_source": "text"},
    "schema plan": {"uri": "text", "supported": "bool", "step_count": "number"},
    "schema apply": {
        "uri": "text",
        "supported": "bool",
        "applied": "bool",
        "step_count": "number",
        "graph_manifest_version": "number",
    },
    "blob stat": {
        "selector": {"entity": "text", "type": "text", "id": "text", "property": "text"},
        "kind": "text",
        "size": "number",
        "etag": "text",
        "target": {"branch": "text", "resolved_snapshot": "text"},
    },
    "optimize": {
        "uri": "text",
        "datasets": [
            {
                "type_key": "text",
                "fragments_removed": "number",
                "fragments_added": "number",
                "committed": "bool",
                "published_dataset_version": "number",
                "lance_head_version": "number",
            }
        ],
    },
    "cleanup": {"uri": "text", "keep_versions": "number", "older_than_secs": "null"},
    "repair": {
        "uri": "text",
        "confirm": "bool",
        "force": "bool",
        "graph_manifest_version": "number",
    },
    "login": {"server": "text", "credentials_path": "text", "declared": "bool"},
    "logout": {"server": "text", "credentials_path": "text"},
    "lint": {
        "status": "text",
        "schema_source": {"kind": "text"},
        "queries_processed": "number",
        "errors": "number",
        "warnings": "number",
        "infos": "number",
    },
    "init": {"uri": "text"},
    "profile list": {"profiles": [{"binding": "text", "scope_kind": "text", "target": "text"}]},
}

# A field of the elder's -> why it is not found in ours as it was there.
APART = {
    "created_at": "ours is ISO text; the number is created_at_us",
    "branches": "ours are records; the names are branch_names",
    "fragments_added": "how many files compaction wrote is not kept",
    "published_dataset_version": "maintenance does not print versions; `snapshot` does",
    "lance_head_version": "as above",
    "binding": "ours has scope_kind and target apart",
}


def missing(elder: Any, ours: Any, place: str = "") -> list[str]:
    """Fields of the elder's that ours lacks, or has as another kind of value."""
    if isinstance(elder, dict):
        if not isinstance(ours, dict):
            return [place]
        found: list[str] = []
        for name, kind in elder.items():
            inner = f"{place}.{name}" if place else name
            found += missing(kind, ours[name], inner) if name in ours else [inner]
        return found
    if isinstance(elder, list):
        if not isinstance(ours, list) or not ours:
            return [place]
        return missing(elder[0], ours[0], place)
    fits = elder == ours or "null" in (elder, ours)  # what may be null is so here or there
    return [] if fits else [place]


@pytest.mark.parametrize("command", ELDER)
def test_18_28_fields_of_the_elder(command: str) -> None:
    lacking = {each.rpartition(".")[2] for each in missing(ELDER[command], SHAPES[command])}
    assert lacking <= set(APART), f"`{command}` lacks {sorted(lacking - set(APART))}"


def test_18_28_what_is_apart_is_still_apart() -> None:
    lacking = {
        each.rpartition(".")[2]
        for command, shape in ELDER.items()
        for each in missing(shape, SHAPES[command])
    }
    assert lacking == set(APART)


@pytest.mark.parametrize("word", ["lint", "check"])
def test_18_28_query_lint_is_lint(
    word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s.pg").write_text("node Person { name: String @key }")
    (tmp_path / "q.gq").write_text("query q() { match { $p: Person } return { $p.name } }")
    files = ["--query", str(tmp_path / "q.gq"), "--schema", str(tmp_path / "s.pg")]
    assert main.run(["query", word, *files]) == 0
    said = capsys.readouterr()
    assert "1 file checked, errors: 0" in said.out
    assert said.err == f"warning: query {word} is called lint now\n"
