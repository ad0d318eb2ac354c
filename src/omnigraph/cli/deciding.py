"""How conflicts are decided, as the command line says it, for whatever merges a change."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

Strategy = Annotated[
    str, typer.Option(metavar="SIDE", help="Who wins a conflict: fail, ours or theirs.")
]
TypeStrategy = Annotated[
    list[str] | None,
    typer.Option(metavar="TYPE=SIDE", help="The same for one type; may be repeated."),
]
Granularity = Annotated[
    str, typer.Option(metavar="UNIT", help="What may differ freely: property or entity.")
]
Resolutions = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Conflicts as you edited them, JSONL.")
]
ConflictsFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write conflicts there, to be edited.")
]


def decisions(
    strategy: str, type_strategy: list[str] | None, granularity: str, resolutions: Path | None
) -> dict[str, Any]:
    """The options as a graph's methods take them."""
    from omnigraph.cli.files import read_text
    from omnigraph.cli.merging import by_type

    return {
        "strategy": strategy,
        "strategies": by_type(type_strategy or []),
        "granularity": granularity,
        "resolutions": read_text(resolutions) if resolutions else None,
    }
