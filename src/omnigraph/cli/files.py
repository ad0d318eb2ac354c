"""Reading the files that commands are given, with errors that say what is wrong with them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from omnigraph.errors import InvalidArgumentError, SourceError


def read_text(path: Path) -> str:
    """The text of a file, `-` for standard input."""
    if str(path) == "-":
        return sys.stdin.read()
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise InvalidArgumentError(f"There is no file {path}.", hint="Check the path.") from error
    except IsADirectoryError as error:
        raise InvalidArgumentError(f"{path} is a directory, not a file.") from error
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(f"{path} is not UTF-8 text (byte {error.start}).") from error
    except OSError as error:
        raise InvalidArgumentError(f"{path} cannot be read: {error.strerror}.") from error


def read_params(text: str | None, file: Path | None) -> dict[str, Any]:
    """Query parameters from `--params` and `--params-file`; the former wins."""
    params = _object(read_text(file), f"file {file}") if file else {}
    if text is not None:
        params.update(_object(text, "--params"))
    return params


def _object(text: str, source: str) -> dict[str, Any]:
    from omnigraph.model.strictjson import read_json

    try:
        value = read_json(text)
    except ValueError as error:
        raise InvalidArgumentError(
            f"The parameters in {source} are not JSON: {error}.",
            hint='Write them as an object: \'{"name": "Ada"}\'.',
        ) from error
    if not isinstance(value, dict):
        raise InvalidArgumentError(f"The parameters in {source} are not a JSON object.")
    return value


def require_file(path: Path) -> Path:
    """The path, if there is a file at it."""
    if not path.exists():
        raise InvalidArgumentError(f"There is no file {path}.", hint="Check the path.")
    if path.is_dir():
        raise InvalidArgumentError(f"{path} is a directory, not a file.")
    return path


def require_place(path: Path) -> Path:
    """The path, if a file could be written there."""
    if path.is_dir():
        raise InvalidArgumentError(f"{path} is a directory, not a file.")
    if not path.parent.is_dir():
        raise InvalidArgumentError(f"There is no folder {path.parent}.", hint="Create it first.")
    return path


@contextmanager
def naming(file: Path | None) -> Iterator[None]:
    """Findings in a text tell the file that it came from."""
    try:
        yield
    except SourceError as error:
        if file is None:
            raise
        named = [replace(each, file=each.file or str(file)) for each in error.diagnostics]
        raise type(error)(error.message, diagnostics=named, hint=error.hint) from error
