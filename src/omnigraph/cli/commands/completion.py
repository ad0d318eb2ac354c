"""`omnigraph completion`: what a shell needs to complete commands and options."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from omnigraph.cli.apps import new_app
from omnigraph.cli.terminal import echo

app = new_app()

VARIABLE = "_OMNIGRAPH_COMPLETE"


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"
    POWERSHELL = "powershell"


@app.command()
def completion(
    shell: Annotated[Shell, typer.Argument(help="Shell of the script.")],
) -> None:
    """Print a shell completion script."""
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    script = get_completion_script(prog_name="omnigraph", complete_var=VARIABLE, shell=shell)
    echo(script)
