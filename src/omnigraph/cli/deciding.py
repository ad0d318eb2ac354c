"""How conflicts are decided, as the command line says it, for whatever merges a change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from omnigraph.cli.bundles import Bundle
from omnigraph.errors import InvalidArgumentError


@dataclass(frozen=True)
class Deciding(Bundle):
    """Who wins, by type or altogether, and what was decided by hand."""

    strategy: Annotated[
        str, typer.Option(metavar="SIDE", help="Who wins a conflict: fail, ours or theirs.")
    ] = "fail"
    type_strategy: Annotated[
        list[str] | None,
        typer.Option(metavar="TYPE=SIDE", help="The same for one type; may be repeated."),
    ] = None
    granularity: Annotated[
        str, typer.Option(metavar="UNIT", help="What may differ freely: property or entity.")
    ] = "property"
    resolutions: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Conflicts as you edited them, JSONL.")
    ] = None

    def decisions(self) -> dict[str, Any]:
        """The options as a graph's methods take them."""
        from omnigraph.cli.files import read_text

        return {
            "strategy": self.strategy,
            "strategies": by_type(self.type_strategy or []),
            "granularity": self.granularity,
            "resolutions": read_text(self.resolutions) if self.resolutions else None,
        }


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
