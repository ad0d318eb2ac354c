"""`omnigraph fmt`: format schemas and queries."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NoReturn

import typer

from omnigraph.cli.apps import new_app
from omnigraph.cli.options import AsJson
from omnigraph.cli.terminal import echo
from omnigraph.cli.textfiles import STDIN, Language, find_sources, language_of
from omnigraph.errors import SourceError

app = new_app()


@app.command()
def fmt(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Files (.pg, .gq) or directories; - for stdin."),
    ],
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; fail if a file is not formatted.")
    ] = False,
    language: Annotated[Language | None, typer.Option(help="Language of standard input.")] = None,
    as_json: AsJson = False,
) -> None:
    """Format schemas and queries; comments are kept."""
    from omnigraph.cli.files import read_text

    if files == [STDIN]:
        _pass_on(read_text(STDIN), language_of(STDIN, language), check=check)
        return
    # Everything is read before anything is written: wrong use changes nothing.
    texts = [(path, language_of(path), read_text(path)) for path in find_sources(files)]
    changed: list[Path] = []
    unreadable: list[SourceError] = []
    for path, own, before in texts:
        try:
            after = _format(before, own, str(path))
        except SourceError as error:
            unreadable.append(error)
            continue
        if after != before:
            changed.append(path)
            if not check:
                path.write_text(after, encoding="utf-8", newline="\n")
    if changed or not unreadable:
        _print(changed, len(texts), check=check, as_json=as_json)
    if unreadable:
        _refuse(unreadable)
    if check and changed:
        raise typer.Exit(1)


def _pass_on(text: str, language: Language, *, check: bool) -> None:
    formatted = _format(text, language)
    if not check:
        echo(formatted, nl=False)
    elif formatted != text:
        echo("standard input is not formatted")
        raise typer.Exit(1)


def _refuse(unreadable: list[SourceError]) -> NoReturn:
    """One failure that tells the findings of all files that cannot be read."""
    found = [each for error in unreadable for each in error.diagnostics]
    raise type(unreadable[0])(unreadable[0].message, diagnostics=found)


def _format(text: str, language: Language, file: str | None = None) -> str:
    if language is Language.SCHEMA:
        from omnigraph.lang.pg import format_schema

        return format_schema(text, file)
    from omnigraph.lang.gq import format_queries

    return format_queries(text, file)


def _print(changed: list[Path], total: int, *, check: bool, as_json: bool) -> None:
    if as_json:
        from omnigraph.cli.display import print_json

        print_json({"changed": [str(path) for path in changed], "files": total})
        return
    verb = "is not in style" if check else "written"
    for path in changed:
        echo(f"{path}: {verb}")
    if not changed:
        echo(f"{total} files are in style" if total != 1 else "the file is in style")
