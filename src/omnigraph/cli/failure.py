"""How the program fails: what it prints about an error, and its exit code.

    0  success                               5  conflict with a concurrent commit
    1  failure                               6  outcome unknown, or recovery is required
    2  usage error                           7  denied
    3  the named object does not exist       8  the schema, query or data is not valid
    4  a condition was not met               9  a limit was exceeded
                                           130  stopped with Ctrl-C

Guarantees: errors go to standard error, so that standard output holds data alone; with `--json`
an error is one JSON object, `{"error": {...}}`, also when the program was called wrongly.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from omnigraph import errors
from omnigraph.cli import callstate
from omnigraph.cli.refusals import refusals
from omnigraph.cli.terminal import echo, styled

FAILED, INTERRUPTED = 1, 130
_CONFLICTS = 20  # so many are listed for a person; a file or JSON has them all

# The first class that fits decides, so that the special ones stand before the general.
_EXIT_CODES: tuple[tuple[type[errors.OmniGraphError], int], ...] = (
    (errors.InvalidArgumentError, 2),
    (errors.NotFoundError, 3),
    (errors.PreconditionFailedError, 4),
    (errors.ConflictError, 5),
    (errors.AlreadyExistsError, 5),
    (errors.CommitOutcomeUnknownError, 6),
    (errors.RecoveryRequiredError, 6),
    (errors.DeniedError, 7),
    (errors.SourceError, 8),
    (errors.InvalidDataError, 8),
    (errors.LimitExceededError, 9),
    (errors.CancelledError, INTERRUPTED),
)


def exit_code(error: errors.OmniGraphError) -> int:
    """The exit code that tells a script what to do about an error."""
    for kind, code in _EXIT_CODES:
        if isinstance(error, kind):
            return code
    return FAILED


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether a call asked for JSON; it may have been refused before that was understood."""
    asked = ("--json", "--format=json")
    return any(each in asked for each in arguments) or ("--format", "json") in pairwise(arguments)


def from_system(error: OSError) -> errors.OmniGraphError:
    """An error of the operating system about a given file."""
    place = error.filename2 or error.filename
    message = f"{place}: {error.strerror}." if place else f"{error.strerror or error}."
    if error.errno in (errno.ENOSPC, errno.EIO, errno.EDQUOT):
        return errors.StoragePermanentError(message)
    return errors.InvalidArgumentError(message, hint="Check the path and its permissions.")


def print_usage(error: Any, *, as_json: bool) -> None:
    """Tell how the program is called, after it was called wrongly."""
    if not as_json:
        error.show()
        return
    called = error.ctx.command_path if getattr(error, "ctx", None) else "omnigraph"
    hint = f"`{called} --help` shows its usage."
    print_failure(errors.InvalidArgumentError(error.format_message(), hint=hint), as_json=True)


def print_failure(error: errors.OmniGraphError, *, as_json: bool) -> None:
    """Tell the reader what happened and what to do next."""
    echo(json.dumps({"error": error.to_dict()}) if as_json else _as_text(error), err=True)


def _as_text(error: errors.OmniGraphError) -> str:
    lines = [f"{styled(f'error[{error.code}]:', 'error')} {error.message}"]
    if isinstance(error, errors.SourceError) and error.diagnostics:
        lines = [_finding(each) for each in error.diagnostics]  # they say it all, with places
    if isinstance(error, errors.InvalidDataError):
        lines += list(refusals(error, quiet=callstate.current().quiet))
    if isinstance(error, errors.MergeConflictError) and len(error.conflicts) > 1:
        shown = error.conflicts[:_CONFLICTS]
        lines += [f"  {each['kind']}: {each['message']}" for each in shown]
        unlisted = int(error.details.get("total", len(shown))) - len(shown)
        lines += [f"  and {unlisted} more"] if unlisted > 0 else []
    if error.hint:
        lines.append(f"{styled('hint:', 'hint')} {error.hint}")
    return "\n".join(lines)


def _finding(diagnostic: errors.Diagnostic) -> str:
    lines = [str(diagnostic)]
    lines += [f"    {line}" for line in (diagnostic.excerpt or "").splitlines()]
    lines += [f"    {styled('hint:', 'hint')} {diagnostic.hint}"] if diagnostic.hint else []
    return "\n".join(lines)
