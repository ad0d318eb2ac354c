"""Options to resolve conflicts, for merge, revert, cherry-pick and rebase."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.cli.bundles import Bundle
from omnigraph.cli.terminal import echo
from omnigraph.errors import InvalidArgumentError, MergeConflictError

if TYPE_CHECKING:
    from omnigraph.model.conflict import MergeConflict

_ASK = (
    "Write the conflicts with --conflicts FILE, decide them there and give the file back with "
    "--resolutions FILE; or let a side win with --strategy."
)
_EDIT = (
    "Set `resolution` on each line to ours, theirs, delete or an object of values, and do it again "
    "with --resolutions {}."
)


@dataclass(frozen=True)
class Deciding(Bundle):
    """Who wins, by type or altogether, and what was decided by hand."""

    strategy: Annotated[
        str, typer.Option(metavar="SIDE", help="Resolution of conflicts: fail, ours or theirs.")
    ] = "fail"
    type_strategy: Annotated[
        list[str] | None,
        typer.Option(metavar="TYPE=SIDE", help="The same for one type; may be repeated."),
    ] = None
    granularity: Annotated[
        str, typer.Option(metavar="UNIT", help="Unit of conflicts: property or entity.")
    ] = "property"
    resolutions: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Edited file of conflicts, JSONL.")
    ] = None
    conflicts: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write conflicts to this file, for editing.")
    ] = None

    def decisions(self) -> dict[str, Any]:
        """The options as a graph's methods take them."""
        return {
            "strategy": self.strategy,
            "strategies": by_type(self.type_strategy or []),
            "granularity": self.granularity,
            "resolutions": self._edited,
        }

    @cached_property
    def _edited(self) -> str | None:
        """The text of the file that was given back; standard input is read once."""
        from omnigraph.cli.files import read_text

        return read_text(self.resolutions) if self.resolutions else None

    def write(self, conflicts: Sequence[MergeConflict]) -> None:
        """Put conflicts into the file that was asked for, after what is decided already."""
        from omnigraph.cli.files import require_place
        from omnigraph.merges.resolutions import write_conflicts

        if self.conflicts is not None:
            text = write_conflicts(conflicts, self._edited or "")
            require_place(self.conflicts).write_text(text, encoding="utf-8")
            echo(f"wrote {counted(len(conflicts))} to {self.conflicts}", err=True)

    @contextmanager
    def told(self) -> Iterator[None]:
        """Say how to go on where something in the block does not combine."""
        try:
            yield
        except MergeConflictError as error:
            self.write(error.every)
            error.hint = _ASK if self.conflicts is None else _EDIT.format(self.conflicts)
            raise


def counted(conflicts: int) -> str:
    return f"{conflicts} conflict{'' if conflicts == 1 else 's'}"


def by_type(pairs: Sequence[str]) -> dict[str, str]:
    """`Person=ours` and the like, as a mapping."""
    found = {}
    for pair in pairs:
        name, equals, side = pair.partition("=")
        if not equals or not name:
            raise InvalidArgumentError(
                f"{pair!r} names no type and side.", hint="Write it as Person=ours."
            )
        found[name] = side
    return found
