"""Arguments and options that several commands share, and what they turn into.

Guarantees: the same word means the same thing in every command.
Deliberately absent: which graph is meant; `targets` finds that out.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from omnigraph.cli import suggestions
from omnigraph.cli.bundles import Bundle
from omnigraph.errors import InvalidArgumentError

Store = Annotated[
    str | None,
    typer.Argument(
        metavar="GRAPH",
        help="The graph: a path, file://, s3://, or a name from your configuration.",
        show_default=False,
        autocompletion=suggestions.stores,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
BranchOption = Annotated[
    str,
    typer.Option(
        "--branch",
        metavar="NAME",
        help="Branch to work on.",
        autocompletion=suggestions.branches,
    ),
]
Start = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="BRANCH",
        help="Create the branch from this one if it does not exist.",
        autocompletion=suggestions.branches,
    ),
]
Types = Annotated[
    list[str] | None,
    typer.Option(
        "--type",
        metavar="TYPE",
        help="Only this type; repeatable.",
        autocompletion=suggestions.types,
    ),
]
Actor = Annotated[str | None, typer.Option("--as", metavar="ACTOR", help="Actor of the commit.")]
Message = Annotated[str, typer.Option("--message", "-m", metavar="TEXT", help="Why.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]
EdgeKey = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES", help="Properties that identify edges without an id, such as src,dst."
    ),
]
AtCommit = Annotated[
    str | None,
    typer.Option("--commit", "--snapshot", metavar="ID", help="Commit id or a unique prefix."),
]


@dataclass(frozen=True)
class State(Bundle):
    """Which state of a branch is meant: its head, unless one of these says otherwise."""

    commit: AtCommit = None
    version: Annotated[
        int | None, typer.Option("--version", metavar="N", help="Version of the branch.")
    ] = None
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="TIME", help="Time, for example 2026-11-16T09:30:00Z."),
    ] = None
    tag: Annotated[
        str | None,
        typer.Option("--tag", metavar="NAME", help="Tag.", autocompletion=suggestions.tags),
    ] = None

    def chosen(self) -> dict[str, Any]:
        """The state as a graph's methods take it."""
        moment = parse_time(self.at)
        return {"commit": self.commit, "version": self.version, "at": moment, "tag": self.tag}


@dataclass(frozen=True)
class Once(Bundle):
    """Why a write is made, and when it must not be."""

    message: Message = ""
    if_commit: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Succeed only if the head of the branch is this commit."),
    ] = None
    idempotency_key: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="A repeated call with this key returns the first result."),
    ] = None

    def conditions(self) -> dict[str, Any]:
        """The conditions as a graph's methods take them."""
        return {
            "message": self.message,
            "if_commit": self.if_commit,
            "idempotency_key": self.idempotency_key,
        }


def parse_time(text: str | None) -> datetime | None:
    """A moment as a person writes it; without a zone it is UTC."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidArgumentError(
            f"{text!r} is not a moment in time.", hint="Write it as 2026-11-16T09:30:00Z."
        ) from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
