"""What `omnigraph branch merge` does and prints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from omnigraph.cli.commands.commit import record
from omnigraph.cli.conflictargs import Deciding, counted
from omnigraph.cli.display import print_json
from omnigraph.cli.terminal import echo

if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.operations.merge import MergePreview


def show_preview(
    graph: Graph, source: str, choices: Mapping[str, Any], deciding: Deciding, *, as_json: bool
) -> None:
    """Print what a merge would do."""
    preview = graph.preview_merge(source, **choices)
    deciding.write(preview.conflicts)
    if as_json:
        print_json(_preview_record(preview))
        return
    count = len(preview.conflicts)
    refused = f"{counted(count)} stand{'' if count > 1 else 's'} in the way"
    what = refused if count else preview.outcome
    echo(f"{what}: {source} into {graph.branch_name}, from {preview.base_commit}")
    for name, counts in preview.counts.items():
        echo(f"{name}: " + ", ".join(f"{n} {verb}" for verb, n in asdict(counts).items() if n))
    for conflict in preview.conflicts:
        echo(f"conflict[{conflict.kind}]: {conflict.message}")


def run(
    graph: Graph,
    source: str,
    choices: Mapping[str, Any],
    deciding: Deciding,
    *,
    delete_branch: bool,
    message: str,
    as_json: bool,
) -> None:
    """Merge, and print what became of it."""
    with deciding.told():
        result = graph.merge(source, **choices, delete_branch=delete_branch, message=message)
    if as_json:
        print_json(
            {
                "outcome": str(result.outcome),
                "already_up_to_date": result.outcome == "already_up_to_date",
                "source": source,
                "target": result.target,
                "actor_id": graph.actor,
                "commit": record(result.commit),
                "branch_deleted": result.source_deleted,
                "branch_delete_error": result.delete_error,
            }
        )
        return
    echo(f"{result.outcome}: {source} into {result.target}, commit {result.commit.id}")
    if result.source_deleted:
        echo(f"deleted {source}")
    elif result.delete_error:
        echo(f"{source} was kept: {result.delete_error}", err=True)


def _preview_record(preview: MergePreview) -> dict[str, Any]:
    from omnigraph.merges.resolutions import conflict_to_dict

    return {
        "outcome": str(preview.outcome),
        "source": preview.source,
        "target": preview.target,
        "base_commit": preview.base_commit,
        "base_commits": list(preview.base_commits),
        "counts": {name: asdict(counts) for name, counts in preview.counts.items()},
        "conflicts": [conflict_to_dict(conflict) for conflict in preview.conflicts],
    }
