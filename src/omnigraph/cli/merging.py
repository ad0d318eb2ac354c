"""What `omnigraph branch merge` does and prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnigraph.cli.commit import record
from omnigraph.cli.files import require_place
from omnigraph.cli.rendering import print_json
from omnigraph.cli.terminal import echo
from omnigraph.errors import MergeConflictError

if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.model.conflict import MergeConflict
    from omnigraph.operations.merge import MergePreview


def show_preview(
    graph: Graph, source: str, choices: Mapping[str, Any], file: Path | None, *, as_json: bool
) -> None:
    """Print what a merge would do."""
    preview = graph.preview_merge(source, **choices)
    _write_conflicts(preview.conflicts, file, choices)
    if as_json:
        print_json(_preview_record(preview))
        return
    count = len(preview.conflicts)
    refused = f"{_counted(count)} stand{'' if count > 1 else 's'} in the way"
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
    file: Path | None,
    *,
    delete_branch: bool,
    message: str,
    as_json: bool,
) -> None:
    """Merge, and print what became of it."""
    try:
        result = graph.merge(source, **choices, delete_branch=delete_branch, message=message)
    except MergeConflictError as error:
        error.hint = (
            "Write the conflicts with --conflicts FILE, decide them there and give the file back "
            "with --resolutions FILE; or let a side win with --strategy."
        )
        if file is not None:
            preview = graph.preview_merge(source, **choices)
            _write_conflicts(preview.conflicts, file, choices)
            error.hint = (
                "Set `resolution` on each line to ours, theirs, delete or an object of values, and "
                f"merge again with --resolutions {file}."
            )
        raise
    if as_json:
        print_json(
            {
                "outcome": str(result.outcome),
                "source": source,
                "target": result.target,
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


def _write_conflicts(
    conflicts: Sequence[MergeConflict], file: Path | None, choices: Mapping[str, Any]
) -> None:
    from omnigraph.operations.merging.resolutions import write_conflicts

    if file is not None:
        text = write_conflicts(conflicts, choices["resolutions"] or "")
        require_place(file).write_text(text, encoding="utf-8")
        echo(f"wrote {_counted(len(conflicts))} to {file}", err=True)


def _counted(conflicts: int) -> str:
    return f"{conflicts} conflict{'' if conflicts == 1 else 's'}"


def _preview_record(preview: MergePreview) -> dict[str, Any]:
    from omnigraph.operations.merging.resolutions import conflict_to_dict

    return {
        "outcome": str(preview.outcome),
        "source": preview.source,
        "target": preview.target,
        "base_commit": preview.base_commit,
        "counts": {name: asdict(counts) for name, counts in preview.counts.items()},
        "conflicts": [conflict_to_dict(conflict) for conflict in preview.conflicts],
    }
