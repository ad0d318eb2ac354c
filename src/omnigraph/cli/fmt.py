"""`omnigraph fmt`: schemas and queries in their one style."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from omnigraph.cli.apps import new_app
from omnigraph.cli.options import AsJson
from omnigraph.cli.sources import STDIN, Language, find_sources, language_of
from omnigraph.cli.terminal import echo
from omnigraph.errors import InvalidArgumentError

app = new_app()


@app.command()
def fmt(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Files (.pg, .gq) or directories; - for stdin."),
    ],
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; fail if a file is not in style.")
    ] = False,
    language: Annotated[
        Language | None, typer.Option(help="Language of what comes from standard input.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write schemas and queries in their one style; comments are kept."""
    from omnigraph.cli.files import read_text

    if files == [STDIN]:
        text = _format(read_text(STDIN), _required(language))
        echo(text, nl=False)
        return
    changed: list[Path] = []
    sources = find_sources(files)
    for path in sources:
        before = read_text(path)
        after = _format(before, language_of(path), str(path))
        if after != before:
            changed.append(path)
            if not check:
                path.write_text(after, encoding="utf-8", newline="\n")
    _print(changed, len(sources), check=check, as_json=as_json)
    if check and changed:
        raise typer.Exit(1)


def _required(language: Language | None) -> Language:
    if language is None:
        raise InvalidArgumentError(
            "What comes from standard input has no name that says its language.",
            hint="Add --language pg or --language gq.",
        )
    return language


def _format(text: str, language: Language, file: str | None = None) -> str:
    if language is Language.SCHEMA:
        from omnigraph.lang.pg import format_schema

        return format_schema(text, file)
    from omnigraph.lang.gq import format_queries

    return format_queries(text, file)


def _print(changed: list[Path], total: int, *, check: bool, as_json: bool) -> None:
    if as_json:
        from omnigraph.cli.rendering import print_json

        print_json({"changed": [str(path) for path in changed], "files": total})
        return
    verb = "is not in style" if check else "written"
    for path in changed:
        echo(f"{path}: {verb}")
    if not changed:
        echo(f"{total} files are in style" if total != 1 else "the file is in style")
