"""What `diff`, `changes` and `commit changes` share: filter options, and printing changes.

Guarantees: changes are printed as they are read; nothing is held back to be counted or aligned.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.cli.bundles import Bundle
from omnigraph.cli.terminal import echo

if TYPE_CHECKING:
    from omnigraph.model.change import Change, ChangeFilter
    from omnigraph.model.feed import Block, FeedPage


@dataclass(frozen=True)
class Wanted(Bundle):
    """Which changes are shown: all, unless these say otherwise."""

    kind: Annotated[
        list[str] | None,
        typer.Option("--kind", metavar="KIND", help="Only `node` or `edge`; may be repeated."),
    ] = None
    type_: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="TYPE", help="Only this type; may be repeated."),
    ] = None
    op: Annotated[
        list[str] | None,
        typer.Option("--op", metavar="OP", help="Only `insert`, `update` or `delete`; repeatable."),
    ] = None

    def filter(self) -> ChangeFilter:
        from omnigraph.operations.diff import filter_of

        return filter_of(self.kind or [], self.type_ or [], self.op or [])


PageToken = Annotated[
    str | None,
    typer.Option(metavar="TOKEN", help="Print only the page after this token."),
]
PageSize = Annotated[int, typer.Option(min=1, help="Number of changes per page.")]

_MARKS = {"insert": "+", "update": "~", "delete": "-"}


def print_change(change: Change) -> None:
    """A change as one line for people."""
    before, after = _shown_image(change.before), _shown_image(change.after)
    parts = [
        f"{name}: {_short(before.get(name))} → {_short(after.get(name))}"
        if before and after
        else f"{name}: {_short(value)}"
        for name, value in (after or before).items()
        if repr(before.get(name)) != repr(after.get(name))
    ]
    head = f"{_MARKS[change.op]} {change.kind} {change.type_name} {change.id}"
    echo(f"{head}  {', '.join(parts)}".rstrip())


def _shown_image(image: Mapping[str, Any] | None) -> dict[str, Any]:
    """An image with the ends of an edge as they are called everywhere else."""
    from omnigraph.model.catalog import DST_COLUMN, SRC_COLUMN

    ends = {SRC_COLUMN: "from", DST_COLUMN: "to"}
    return {ends.get(name, name): value for name, value in (image or {}).items()}


def print_array(name: str, changes: Iterable[Change]) -> None:
    """One JSON object with one array, written piece by piece."""
    from omnigraph.operations.diff import change_to_dict

    echo(f'{{"{name}": [', nl=False)
    for number, change in enumerate(changes):
        echo(",\n " if number else "\n ", nl=False)
        echo(json.dumps(change_to_dict(change), ensure_ascii=False), nl=False)
    echo("\n]}")


def block_to_dict(block: Block) -> dict[str, Any]:
    from dataclasses import asdict

    from omnigraph.cli.elder import cause_fields
    from omnigraph.operations.diff import change_to_dict

    cause = asdict(block.cause)
    cause["graph_commit_id"] = cause.pop("commit_id")
    cause.update(cause_fields(block.cause))
    return {"cause": cause, "changes": [change_to_dict(change) for change in block.changes]}


def print_changes_page(page: FeedPage, *, as_json: bool) -> None:
    """One page of a single commit's changes."""
    changes = [change for block in page.blocks for change in block.changes]
    if not as_json:
        for change in changes:
            print_change(change)
        return
    from omnigraph.operations.diff import change_to_dict

    value = {
        "changes": [change_to_dict(change) for change in changes],
        "next_page_token": page.next_page_token,
    }
    echo(json.dumps(value, ensure_ascii=False))


def _short(value: Any) -> str:
    text = f"{len(value)} bytes" if isinstance(value, bytes) else json.dumps(value, default=str)
    return text if len(text) <= 40 else f"{text[:39]}…"
