"""Ctrl-C: stops the work and reports its outcome.

A write is made visible in one step, so it was either not done or done. If the signal came between
the two, while tables moved, what waits is finished or undone here, by the recovery that the next
writer would run.

Guarantees: what is said is read from the graph afterwards, not guessed; a second Ctrl-C ends the
program at once and leaves the rest to the next writer.
"""

from __future__ import annotations

import signal
from itertools import takewhile
from typing import TYPE_CHECKING

from omnigraph.cli import callstate

if TYPE_CHECKING:
    from omnigraph.graph import Graph

EXIT_CODE = 130
DECLINED = 1


_asked = False


def install() -> None:
    """Remember that Ctrl-C was pressed, besides raising KeyboardInterrupt: native code that is
    being imported or called may swallow the exception, and `check` raises it again."""

    def hear(signal_number: int, frame: object) -> None:
        global _asked
        _asked = True
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, hear)


def check() -> None:
    """Raise if a stop was requested."""
    if _asked:
        raise KeyboardInterrupt


def forget() -> None:
    """Reset the state of a previous request."""
    global _asked
    _asked = False


def tell() -> None:
    """Say what a stopped command has done."""
    from omnigraph.cli.terminal import echo

    forget()  # what follows may take a moment, and a second Ctrl-C ends it
    call = callstate.current()
    try:
        if call.making is not None:
            echo(_outcome_of_making(call.making), err=True)
        elif call.writing is not None:
            echo(_outcome(call.writing, call.began), err=True)
        else:
            echo("stopped; nothing was changed", err=True)
    except KeyboardInterrupt:
        echo("stopped; `omnigraph recovery list` shows pending recoveries", err=True)


def _outcome(graph: Graph, began: float) -> str:
    from omnigraph.errors import OmniGraphError

    try:
        graph.recover()
        made = _commits_since(graph, began)
    except OmniGraphError as error:
        return f"stopped; what was done could not be read: {error.message}"
    if not made:
        return "stopped; nothing was changed"
    return f"stopped, but it was done already: commit {', '.join(made)}"


def _outcome_of_making(uri: str) -> str:
    import omnigraph
    from omnigraph.errors import OmniGraphError

    try:
        made = omnigraph.open(uri, read_only=True)
    except OmniGraphError:
        return f"stopped; there is no graph at {uri}"
    commits = sum(1 for _ in made.commits())
    return f"stopped; there is a graph at {uri}, with {commits} commits: remove it to try again"


def _commits_since(graph: Graph, began: float) -> list[str]:
    """This actor's commits that are younger than the command, also those that recovery finished."""
    began_us = began * 1_000_000
    recent = takewhile(lambda commit: commit.created_at_us >= began_us, graph.commits())
    own = [commit.id for commit in recent if commit.actor == graph.actor]
    finished = [
        row["commit_id"]
        for row in graph.recoveries().audit
        if row["created_at_us"] >= began_us
        and row["actor"] == graph.actor
        and row["outcome"] == "rolled_forward"
    ]
    return [*own[::-1], *finished]
