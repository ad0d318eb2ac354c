"""`omnigraph version`: which OmniGraph this is, and on what it stands."""

from __future__ import annotations

from typing import Annotated

import typer

import omnigraph
from omnigraph.cli.apps import new_app
from omnigraph.cli.terminal import echo

app = new_app()

# Distribution names. The ones that an extra brings may be missing.
PARTS = ("pylance", "pyarrow", "datafusion", "obstore", "pyspark")


@app.command()
def version(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Print the versions of OmniGraph and its parts."""
    import json

    parts = _versions()
    if as_json:
        echo(json.dumps({"omnigraph": omnigraph.__version__, **parts}))
        return
    echo(f"omnigraph {omnigraph.__version__}")
    for name, number in parts.items():
        echo(f"  {name} {number or 'not installed'}")


def _versions() -> dict[str, str | None]:
    import platform
    from importlib import metadata

    found: dict[str, str | None] = {"python": platform.python_version()}
    for part in PARTS:
        try:
            found[part] = metadata.version(part)
        except metadata.PackageNotFoundError:
            found[part] = None
    return found
