"""Logging: standard library loggers with structured fields, silent until a program configures it.

A room takes a logger of its own and passes fields beside a fixed message, never inside it:

    log = logs.logger(__name__)
    log.info("commit published", extra=logs.fields(branch="main", tables=3))

As a library OmniGraph attaches only a null handler, so it prints nothing and leaves the host
program's logging alone. `configure` is for programs (the command line, the server): one handler on
the `omnigraph` logger, writing to standard error as text or as one JSON object per line.

Guarantees: calling `configure` again replaces its own handler and nothing else; a field that JSON
does not know is written as text, so a log call never raises for its values.

Absent on purpose: log files, rotation, and configuration by environment; the caller has a shell.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import IO, Any, Final

from omnigraph.errors import InvalidArgumentError

LEVELS: Final = ("debug", "info", "warning", "error", "critical")
ROOT: Final = "omnigraph"

_FIELDS = "omnigraph_fields"  # the attribute of a LogRecord that carries our fields


def logger(name: str) -> logging.Logger:
    """The logger of a module; pass `__name__`."""
    return logging.getLogger(name)


def fields(**values: Any) -> dict[str, Any]:
    """Structured fields, to be passed as `extra=`."""
    return {_FIELDS: values}


class TextFormatter(logging.Formatter):
    """`12:30:01.250 INFO commit: commit published branch=main tables=3`."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S.%f")[:-3]
        room = record.name.removeprefix(f"{ROOT}.")
        parts = [f"{moment} {record.levelname} {room}: {record.getMessage()}"]
        parts += [f"{name}={_word(value)}" for name, value in _fields_of(record).items()]
        line = " ".join(parts)
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonFormatter(logging.Formatter):
    """One object per line; fields of the call come last and cannot hide the fixed ones."""

    def format(self, record: logging.LogRecord) -> str:
        fixed: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            fixed["exception"] = self.formatException(record.exc_info)
        return json.dumps(
            fixed | {k: v for k, v in _fields_of(record).items() if k not in fixed}, default=str
        )


def _fields_of(record: logging.LogRecord) -> dict[str, Any]:
    found = getattr(record, _FIELDS, None)
    return found if isinstance(found, dict) else {}


def _word(value: Any) -> str:
    text = str(value)
    return json.dumps(text) if not text or any(mark in text for mark in ' "=\n') else text


class _OwnHandler(logging.StreamHandler[IO[str]]):
    """Marks the handler that `configure` may replace."""


def configure(
    level: str = "warning", *, as_json: bool = False, stream: IO[str] | None = None
) -> None:
    """Write the log of a program to `stream` (default: standard error)."""
    if level.lower() not in LEVELS:
        raise InvalidArgumentError(
            f"There is no log level {level!r}.", hint=f"Choose one of {', '.join(LEVELS)}."
        )
    handler = _OwnHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if as_json else TextFormatter())
    root = logging.getLogger(ROOT)
    for old in [each for each in root.handlers if isinstance(each, _OwnHandler)]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level.upper())
    root.propagate = False  # otherwise a host's root handler would print every line twice


def silence() -> None:
    """Undo `configure`."""
    root = logging.getLogger(ROOT)
    for old in [each for each in root.handlers if isinstance(each, _OwnHandler)]:
        root.removeHandler(old)
    root.setLevel(logging.NOTSET)
    root.propagate = True


logging.getLogger(ROOT).addHandler(logging.NullHandler())
