"""Output on the terminal: data on standard output, everything else on standard error.

A progress line is never mixed with other output; colour is used on a terminal only, and not if
NO_COLOR is set; `--quiet` suppresses notes, but not data and errors.
"""

from __future__ import annotations

import os
import sys
from typing import BinaryIO, TextIO

import typer

from omnigraph.cli import callstate, progressline

# What a piece of text is, and how it looks.
_LOOKS = {"error": {"fg": "red", "bold": True}, "hint": {"fg": "cyan"}, "head": {"bold": True}}


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print data, or with `err` something that must be said."""
    progressline.clear()
    typer.echo(_printable(text, sys.stderr if err else sys.stdout), err=err, nl=nl)


def _printable(text: str, stream: TextIO) -> str:
    """Text that the stream's encoding can hold: anything else is written out as an escape."""
    if text.isascii():
        return text
    encoding = stream.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def note(text: str) -> None:
    """Print a note to standard error, unless --quiet is set."""
    if not callstate.current().quiet:
        echo(text, err=True)


def binary_output() -> BinaryIO:
    """Standard output for bytes."""
    progressline.clear()
    return sys.stdout.buffer


def styled(text: str, look: str, *, err: bool = True) -> str:
    """Text in a look of its own, where the stream is a terminal."""
    return typer.style(text, **_LOOKS[look]) if has_colour(err=err) else text  # type: ignore[arg-type]


def has_colour(*, err: bool) -> bool:
    stream = sys.stderr if err else sys.stdout
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
