"""Files of schema and query text: the files of a command, and their language.

Files come in a fixed order, each once; a directory stands for all `.pg` and `.gq` files below it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

from omnigraph.errors import InvalidArgumentError


class Language(StrEnum):
    SCHEMA = "pg"
    QUERY = "gq"


STDIN = Path("-")


def find_sources(paths: Sequence[Path]) -> list[Path]:
    """The files that a list of files and directories stands for."""
    if not paths:
        raise InvalidArgumentError(
            "No file is named.", hint="Name files that end in .pg or .gq, or a directory."
        )
    found: dict[Path, None] = {}
    for path in paths:
        if path != STDIN and path.is_dir():
            found.update(dict.fromkeys(_below(path)))
        else:
            found[path] = None
    return list(found)


def _below(folder: Path) -> list[Path]:
    files = [path for each in Language for path in folder.rglob(f"*.{each}") if path.is_file()]
    if not files:
        raise InvalidArgumentError(
            f"There is no .pg or .gq file in {folder}.",
            hint="Schemas end in .pg, files of queries in .gq.",
        )
    return sorted(files)


def language_of(path: Path, given: Language | None = None) -> Language:
    """The language of a file, by its file extension; for standard input it must be given."""
    if path == STDIN:
        return _required(given)
    try:
        return Language(path.suffix.removeprefix("."))
    except ValueError:
        raise InvalidArgumentError(
            f"{path} is neither a schema nor a file of queries.",
            hint="Schemas end in .pg, files of queries in .gq.",
        ) from None


def _required(language: Language | None) -> Language:
    if language is None:
        raise InvalidArgumentError(
            "The language of standard input is not known.",
            hint="Add --language pg or --language gq.",
        )
    return language
